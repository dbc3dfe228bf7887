"""The roles and bindings that are always there.

Enters: nothing. Leaves: manifests. Rules of groups that are long gone or not served at all (extensions, resource.k8s.io) are left out.
Source: rules of kube-apiserver 1.36.3; kubernetes.io, "Default roles and role bindings".
"""

from __future__ import annotations

from moorage.core.meta import JsonObject

RBAC = "rbac.authorization.k8s.io"
AUTHENTICATED, UNAUTHENTICATED, MASTERS = "system:authenticated", "system:unauthenticated", "system:masters"

_READ = "get list watch"
_WRITE = "create delete deletecollection patch update"
_ALL = "create delete deletecollection get list patch update watch"
_HEALTH = "/healthz /livez /readyz /version /version/"

_VIEW = (
    ("", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers "
         "replicationcontrollers/scale serviceaccounts services services/status", _READ),
    ("", "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas "
         "resourcequotas/status", _READ),
    ("", "namespaces", _READ),
    (" events.k8s.io", "events", _READ),
    ("discovery.k8s.io", "endpointslices", _READ),
    ("apps", "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets "
             "replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status", _READ),
    ("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", _READ),
    ("batch", "cronjobs cronjobs/status jobs jobs/status", _READ),
    ("policy", "poddisruptionbudgets poddisruptionbudgets/status", _READ),
    ("networking.k8s.io", "ingresses ingresses/status networkpolicies", _READ),
)  # fmt: skip
_EDIT = (
    ("", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", _READ),
    ("", "serviceaccounts", "impersonate"),
    ("", "pods pods/attach pods/exec pods/portforward pods/proxy", _WRITE),
    ("", "pods/eviction", "create"),
    ("", "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services "
         "services/proxy", _WRITE),
    ("", "serviceaccounts/token", "create"),
    (" events.k8s.io", "events", _WRITE),
    ("apps", "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets "
             "statefulsets/scale", _WRITE),
    ("autoscaling", "horizontalpodautoscalers", _WRITE),
    ("batch", "cronjobs jobs", _WRITE),
    ("policy", "poddisruptionbudgets", _WRITE),
    ("networking.k8s.io", "ingresses networkpolicies", _WRITE),
    ("coordination.k8s.io", "leases", _ALL),
)  # fmt: skip
_ADMIN = (
    ("authorization.k8s.io", "localsubjectaccessreviews", "create"),
    (RBAC, "rolebindings roles", _ALL),
)
_BASIC = (
    ("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
    ("authentication.k8s.io", "selfsubjectreviews", "create"),
)
_DELEGATOR = (
    ("authentication.k8s.io", "tokenreviews", "create"),
    ("authorization.k8s.io", "subjectaccessreviews", "create"),
)
_DISCOVERY = "/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"
_MONITORING = "/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"
_ISSUER = "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"


def _resources(rows: tuple[tuple[str, str, str], ...]) -> list[JsonObject]:
    """Rules from rows of groups, resources and verbs; a leading blank in the groups stands for the core group."""
    return [
        {
            "verbs": verbs.split(),
            "apiGroups": groups.split(" ") if groups.strip() else [""],
            "resources": resources.split(),
        }
        for groups, resources, verbs in rows
    ]


def _paths(paths: str) -> list[JsonObject]:
    return [{"verbs": ["get"], "nonResourceURLs": paths.split()}]


def _meta(name: str, labels: JsonObject | None = None) -> JsonObject:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **(labels or {})},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }


def _role(name: str, rules: list[JsonObject] | None, *, into: str = "", gathers: str = "") -> JsonObject:
    labels = {f"{RBAC}/aggregate-to-{into}": "true"} if into else None
    made: JsonObject = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": _meta(name, labels),
        "rules": rules,
    }
    if gathers:
        made["aggregationRule"] = {
            "clusterRoleSelectors": [{"matchLabels": {f"{RBAC}/aggregate-to-{gathers}": "true"}}]
        }
    return made


def cluster_roles() -> list[JsonObject]:
    """The ClusterRoles; `admin`, `edit` and `view` gather theirs from labelled ones."""
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    monitoring = [*_paths(_MONITORING), *_resources((("", "nodes/metrics", "get"),))]
    return [
        _role("cluster-admin", everything),
        _role("admin", None, gathers="admin"),
        _role("edit", None, into="admin", gathers="edit"),
        _role("view", None, into="edit", gathers="view"),
        _role("system:aggregate-to-admin", _resources(_ADMIN), into="admin"),
        _role("system:aggregate-to-edit", _resources(_EDIT), into="edit"),
        _role("system:aggregate-to-view", _resources(_VIEW), into="view"),
        _role("system:auth-delegator", _resources(_DELEGATOR)),
        _role("system:basic-user", _resources(_BASIC)),
        _role("system:discovery", _paths(_DISCOVERY)),
        _role("system:monitoring", monitoring),
        _role("system:public-info-viewer", _paths(_HEALTH)),
        _role("system:service-account-issuer-discovery", _paths(_ISSUER)),
    ]


_BOUND = (
    ("cluster-admin", (MASTERS,)),
    ("system:basic-user", (AUTHENTICATED,)),
    ("system:discovery", (AUTHENTICATED,)),
    ("system:monitoring", ("system:monitoring",)),
    ("system:public-info-viewer", (AUTHENTICATED, UNAUTHENTICATED)),
    ("system:service-account-issuer-discovery", ("system:serviceaccounts",)),
)


def cluster_role_bindings() -> list[JsonObject]:
    """The ClusterRoleBindings; each has the name of its role."""
    return [
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": _meta(name),
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": group} for group in groups],
        }
        for name, groups in _BOUND
    ]
