"""RBAC, pure: who may do what, who may grant what, and the roles that are always there.

Enters: role and binding objects, request attributes. Leaves: decisions and sentences. Must not read a store, nor know HTTP.
"""

from __future__ import annotations

from moorage.apiserver.rbac.authorizer import Authorizer, Decision, RoleNotFound, aggregate
from moorage.apiserver.rbac.bootstrap import cluster_role_bindings, cluster_roles
from moorage.apiserver.rbac.rules import Attributes

__all__ = [
    "Attributes",
    "Authorizer",
    "Decision",
    "RoleNotFound",
    "aggregate",
    "cluster_role_bindings",
    "cluster_roles",
]
