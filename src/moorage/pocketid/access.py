"""What the Pocket-ID rooms may do with other people's resources: the RBAC rules of the operator.

Source: spec/pocketid.md 6.4. Secrets are read where a resource names them and written as our children. The rest is for servers that are deployed:
no kind of theirs is deleted but a route, since everything else goes with its owner, or stays. StatefulSets and routes are asked for by name, never
listed.
"""

from __future__ import annotations

from typing import Final

from moorage.runtime.install import Access

_APPLIED: Final = ("get", "list", "watch", "create", "patch")
"""Server-side apply of an object that is not there needs `create`, too."""

ACCESS: Final = (
    Access("", ("secrets",), ("get", "list", "watch", "create", "patch", "update", "delete")),
    Access("", ("configmaps",), ("get",)),
    Access("", ("services",), _APPLIED),
    Access("", ("persistentvolumeclaims",), _APPLIED),
    Access("", ("pods",), ("list",)),
    Access("apps", ("deployments",), _APPLIED),
    Access("apps", ("statefulsets",), ("get", "create", "patch")),
    Access("gateway.networking.k8s.io", ("httproutes",), ("get", "create", "patch", "delete")),
)
