"""What the Keystone system needs of other people's resources: its lines of RBAC."""

from __future__ import annotations

from moorage.runtime.install import Access

_WRITE = ("get", "list", "watch", "create", "patch", "update", "delete")

ACCESS: tuple[Access, ...] = (
    Access("", ("secrets", "configmaps", "services", "persistentvolumeclaims"), _WRITE),
    Access("", ("namespaces",), ("get", "list", "watch")),
    Access("apps", ("deployments",), _WRITE),
    Access("batch", ("jobs", "cronjobs"), _WRITE),
    Access("policy", ("poddisruptionbudgets",), _WRITE),
    Access("networking.k8s.io", ("networkpolicies",), _WRITE),
)
