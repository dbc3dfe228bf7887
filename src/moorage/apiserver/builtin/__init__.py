"""What kube-apiserver does to its own kinds beyond their structure: defaults, generated parts, rules.

Enters: a built-in object (its schema's own defaults are set already) and the stored one. Leaves: complaints; defaults and generated
parts are set in place. Must not store anything, nor know HTTP.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.apiserver.builtin import coregroup, policies, workloads
from moorage.apiserver.builtin.checks import validate_builtin
from moorage.apiserver.builtin.lifecycle import has_status, keep, prepare_create, prepare_status, prepare_update
from moorage.apiserver.builtin.structs import tidy
from moorage.apiserver.builtin.warn import warn_builtin
from moorage.core.meta import JsonObject, ResourceType

__all__ = [
    "default_builtin",
    "has_defaults",
    "has_status",
    "keep",
    "prepare_create",
    "prepare_status",
    "prepare_update",
    "tidy",
    "validate_builtin",
    "warn_builtin",
]

_DEFAULTS: dict[tuple[str, str], Callable[[JsonObject], None]] = {
    ("", "Secret"): coregroup.default_secret,
    ("", "Service"): coregroup.default_service,
    ("", "PersistentVolumeClaim"): coregroup.default_claim,
    ("", "Namespace"): coregroup.default_namespace,
    ("", "Endpoints"): coregroup.default_endpoints,
    ("", "Event"): coregroup.default_event,
    ("events.k8s.io", "Event"): coregroup.default_new_event,
    ("", "Pod"): coregroup.default_pod_with_status,
    ("apps", "Deployment"): workloads.default_deployment,
    ("apps", "ReplicaSet"): workloads.default_replica_set,
    ("batch", "Job"): workloads.default_job,
    ("batch", "CronJob"): workloads.default_cron_job,
    ("networking.k8s.io", "NetworkPolicy"): policies.default_network_policy,
    ("rbac.authorization.k8s.io", "Role"): policies.default_role,
    ("rbac.authorization.k8s.io", "ClusterRole"): policies.default_role,
    ("rbac.authorization.k8s.io", "RoleBinding"): policies.default_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): policies.default_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): policies.default_webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): policies.default_webhooks,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): policies.default_definition,
}


def has_defaults(rt: ResourceType) -> bool:
    """Whether values of this kind are filled in beyond what its schema says."""
    return (rt.group, rt.kind) in _DEFAULTS


def default_builtin(rt: ResourceType, obj: JsonObject) -> None:
    """Materialises, in place, the defaults that kube-apiserver prints of a decoded object that was tidied before.

    Source: answers of kube-apiserver 1.36.3 (tests/apiserver/engine/cases).
    """
    fill = _DEFAULTS.get((rt.group, rt.kind))
    if fill is not None:
        fill(obj)
