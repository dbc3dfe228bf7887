"""What the Pocket-ID rooms may do with other people's resources: the RBAC rules of the operator.

Source: spec/pocketid.md 6.4. Secrets are read where a resource names them and written as our children; an external server needs no more.
"""

from __future__ import annotations

from typing import Final

from moorage.runtime.install import Access

_READ: Final = ("get", "list", "watch")
_APPLIED: Final = (*_READ, "create", "patch")

ACCESS: Final = (
    Access("", ("secrets",), (*_APPLIED, "update", "delete")),
    Access("", ("configmaps",), ("get",)),
    Access("", ("services",), (*_APPLIED, "delete")),
    Access("", ("persistentvolumeclaims",), _APPLIED),
    Access("apps", ("deployments", "statefulsets"), (*_APPLIED, "delete")),
    Access("gateway.networking.k8s.io", ("httproutes",), (*_APPLIED, "delete")),
)
