"""Which rules hold for which kind.

Enters: a defaulted built-in object and the stored one. Leaves: all complaints. Must not change either.
"""

from __future__ import annotations

from collections.abc import Callable

from moorage.apiserver.builtin import check_core, check_policies, check_workloads
from moorage.apiserver.builtin.check_pods import check_pod
from moorage.apiserver.builtin.fields import Errors
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError

_RULES: dict[tuple[str, str], Callable[[JsonObject, JsonObject | None], Errors]] = {
    ("", "ConfigMap"): check_core.check_config_map,
    ("", "Secret"): check_core.check_secret,
    ("", "Service"): check_core.check_service,
    ("", "PersistentVolumeClaim"): check_core.check_claim,
    ("", "Event"): check_core.check_event,
    ("events.k8s.io", "Event"): check_core.check_new_event,
    ("", "Endpoints"): check_core.check_endpoints,
    ("", "Pod"): check_pod,
    ("coordination.k8s.io", "Lease"): check_core.check_lease,
    ("apps", "Deployment"): check_workloads.check_deployment,
    ("apps", "ReplicaSet"): check_workloads.check_replica_set,
    ("batch", "Job"): check_workloads.check_job,
    ("batch", "CronJob"): check_workloads.check_cron_job,
    ("policy", "PodDisruptionBudget"): check_policies.check_disruption_budget,
    ("networking.k8s.io", "NetworkPolicy"): check_policies.check_network_policy,
    ("rbac.authorization.k8s.io", "Role"): check_policies.check_role,
    ("rbac.authorization.k8s.io", "ClusterRole"): check_policies.check_role,
    ("rbac.authorization.k8s.io", "RoleBinding"): check_policies.check_binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): check_policies.check_binding,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): check_policies.check_webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): check_policies.check_webhooks,
}


def validate_builtin(rt: ResourceType, obj: JsonObject, old: JsonObject | None) -> list[FieldError]:
    """Complaints about a built-in object beyond its structure and metadata (spec/embedded.md, point 7)."""
    rules = _RULES.get((rt.group, rt.kind))
    return list(rules(obj, old)) if rules is not None else []
