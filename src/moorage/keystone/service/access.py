"""What the Keystone rooms may do with other people's resources: the RBAC rules of the operator.

Source: spec/keystone.md 6. Secrets are read to project them and written as our children; nothing is deleted but what we own.
"""

from __future__ import annotations

from typing import Final

from moorage.runtime.install import Access

_READ: Final = ("get", "list", "watch")
_CHILD: Final = (*_READ, "create", "update", "patch", "delete")

ACCESS: Final = (
    Access("", ("secrets", "configmaps", "services", "persistentvolumeclaims"), _CHILD),
    Access("", ("pods",), ("list",)),
    Access("apps", ("deployments",), _CHILD),
    Access("batch", ("jobs", "cronjobs"), _CHILD),
    Access("policy", ("poddisruptionbudgets",), _CHILD),
    Access("networking.k8s.io", ("networkpolicies",), _CHILD),
)
