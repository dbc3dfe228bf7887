"""How the built-in kinds that Moorage touches are addressed. Source: Kubernetes 1.36 discovery."""

from __future__ import annotations

from typing import Final

from moorage.core.meta import ResourceType

NAMESPACES: Final = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
SECRETS: Final = ResourceType("", "v1", "Secret", "secrets")
CONFIG_MAPS: Final = ResourceType("", "v1", "ConfigMap", "configmaps")
SERVICES: Final = ResourceType("", "v1", "Service", "services")
ENDPOINTS: Final = ResourceType("", "v1", "Endpoints", "endpoints")
PODS: Final = ResourceType("", "v1", "Pod", "pods")
PVCS: Final = ResourceType("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
CORE_EVENTS: Final = ResourceType("", "v1", "Event", "events")
EVENTS: Final = ResourceType("events.k8s.io", "v1", "Event", "events")

DEPLOYMENTS: Final = ResourceType("apps", "v1", "Deployment", "deployments")
REPLICA_SETS: Final = ResourceType("apps", "v1", "ReplicaSet", "replicasets")
STATEFUL_SETS: Final = ResourceType("apps", "v1", "StatefulSet", "statefulsets")
JOBS: Final = ResourceType("batch", "v1", "Job", "jobs")
CRON_JOBS: Final = ResourceType("batch", "v1", "CronJob", "cronjobs")

LEASES: Final = ResourceType("coordination.k8s.io", "v1", "Lease", "leases")
PDBS: Final = ResourceType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICIES: Final = ResourceType("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")

CLUSTER_ROLES: Final = ResourceType("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = ResourceType(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False
)

CRDS: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
MUTATING_WEBHOOKS: Final = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "MutatingWebhookConfiguration",
    "mutatingwebhookconfigurations",
    namespaced=False,
)
VALIDATING_WEBHOOKS: Final = ResourceType(
    "admissionregistration.k8s.io",
    "v1",
    "ValidatingWebhookConfiguration",
    "validatingwebhookconfigurations",
    namespaced=False,
)
