"""What the Keystone rooms may do with other people's resources: the RBAC rules of the operator.

Source: spec/keystone.md 6. Secrets are read to project them and written as our children; nothing is deleted but what we own.
"""

from __future__ import annotations

from typing import Final

from moorage.runtime.install import Access

_READ: Final = ("get", "list", "watch")
_APPLIED: Final = (*_READ, "create", "patch")
"""Server-side apply of an object that is not there needs `create`, too. What is applied goes with its owner, by garbage collection."""

ACCESS: Final = (
    Access("", ("secrets",), (*_APPLIED, "update", "delete")),
    Access("", ("configmaps",), (*_READ, "create", "delete")),
    Access("", ("services",), (*_APPLIED, "delete")),
    Access("", ("persistentvolumeclaims",), _APPLIED),
    Access("", ("pods",), ("list",)),
    Access("apps", ("deployments",), (*_APPLIED, "delete")),
    Access("batch", ("jobs",), (*_READ, "create", "delete")),
    Access("batch", ("cronjobs",), (*_APPLIED, "delete")),
    Access("policy", ("poddisruptionbudgets",), _APPLIED),
    Access("networking.k8s.io", ("networkpolicies",), (*_APPLIED, "delete")),
)
