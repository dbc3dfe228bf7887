"""What a kind does to an object before it is stored: status and generation, generated labels, parts that no update changes.

Enters: the defaulted object and the stored one; the object is changed in place. Must not check anything.
Source: the strategies of kube-apiserver, seen through its answers.
"""

from __future__ import annotations

from moorage.apiserver.builtin.coregroup import addresses
from moorage.apiserver.builtin.workloads import label_job
from moorage.core.meta import JsonObject, ResourceType

GENERATIONS = frozenset(
    {
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
        ("batch", "CronJob"),
        ("", "Pod"),
        ("policy", "PodDisruptionBudget"),
        ("networking.k8s.io", "NetworkPolicy"),
        ("networking.k8s.io", "Ingress"),
        ("apiextensions.k8s.io", "CustomResourceDefinition"),
        ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
        ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
    }
)
"""Kinds whose `metadata.generation` counts changes of what is wanted."""

_STATUSES = GENERATIONS | {("", "Namespace"), ("", "PersistentVolumeClaim"), ("", "Service")}
_BLANK: dict[str, JsonObject] = {
    "Pod": {"phase": "Pending"},
    "Namespace": {"phase": "Active"},
    "PersistentVolumeClaim": {"phase": "Pending"},
    "Service": {"loadBalancer": {}},
    "ReplicaSet": {"replicas": 0},
    "PodDisruptionBudget": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
}
_NO_STATUS = {"NetworkPolicy", "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration"}


def _key(rt: ResourceType) -> tuple[str, str]:
    return rt.group, rt.kind


def has_status(rt: ResourceType) -> bool:
    """Whether a built-in kind has a status that only its status subresource writes."""
    return _key(rt) in _STATUSES and rt.kind not in _NO_STATUS


def prepare_create(rt: ResourceType, obj: JsonObject) -> None:
    """A new object has no status yet, generation 1, and what the kind generates from its uid."""
    if has_status(rt) and rt.kind != "CustomResourceDefinition":
        obj["status"] = dict(_BLANK.get(rt.kind, {}))
    if _key(rt) in GENERATIONS:
        obj["metadata"]["generation"] = 1
    match rt.kind:
        case "Job":
            label_job(obj)
        case "Pod":
            obj["status"]["qosClass"] = qos_class(obj["spec"])
        case "Service":
            addresses(obj)
        case "Namespace":
            obj["spec"] = {"finalizers": ["kubernetes"]}
        case "Lease":
            _drop_election(obj)
        case "Role" | "ClusterRole":
            _no_empty_rules(obj)


def _no_empty_rules(obj: JsonObject) -> None:
    """The stored form knows no difference between an empty list and none; who sent one owns the field all the same."""
    obj["rules"] = obj.get("rules") or None


def _drop_election(obj: JsonObject) -> None:
    """Fields of coordinated election, which is not on, are dropped."""
    for name in ("strategy", "preferredHolder"):
        (obj.get("spec") or {}).pop(name, None)


def prepare_update(rt: ResourceType, obj: JsonObject, old: JsonObject, subresource: str = "") -> None:
    """Status stays as it was; a changed specification raises the generation; a Service keeps its address.

    Changed annotations raise the generation of a Deployment, too: its controller copies them.
    """
    if has_status(rt):
        keep(obj, old, "status")
    if rt.kind == "Namespace" and subresource != "finalize":
        keep(obj, old, "spec")
    if rt.kind == "Lease":
        _drop_election(obj)
    if rt.kind in ("Role", "ClusterRole"):
        _no_empty_rules(obj)
    if rt.kind == "Service":
        _keep_address(obj["spec"], old["spec"])
    if _key(rt) in GENERATIONS:
        generation = old["metadata"].get("generation", 1)
        noted = rt.kind == "Deployment" and obj["metadata"].get("annotations") != old["metadata"].get("annotations")
        obj["metadata"]["generation"] = generation + (_changed(obj, old) or noted)


_KEPT_BY_STATUS = {"Deployment": ("labels", "generation"), "Pod": ("ownerReferences", "generation")}


def prepare_status(rt: ResourceType, obj: JsonObject, old: JsonObject) -> None:
    """Only the status changes, and metadata that controllers keep beside it."""
    for name in (obj.keys() | old.keys()) - {"status", "metadata", "apiVersion", "kind"}:
        keep(obj, old, name)
    for name in _KEPT_BY_STATUS.get(rt.kind, ("generation",)):
        keep(obj["metadata"], old["metadata"], name)


def _changed(obj: JsonObject, old: JsonObject) -> bool:
    ignored = {"metadata", "status", "apiVersion", "kind"}
    return {k: v for k, v in obj.items() if k not in ignored} != {k: v for k, v in old.items() if k not in ignored}


def keep(obj: JsonObject, old: JsonObject, name: str) -> None:
    """The stored value of a field, or its absence."""
    if name in old:
        obj[name] = old[name]
    else:
        obj.pop(name, None)


_ADDRESSED = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy")


def _keep_address(spec: JsonObject, old: JsonObject) -> None:
    """An update that leaves the address out, of a Service that keeps its type, keeps the address."""
    if spec.get("type") == "ExternalName" and old.get("type") != "ExternalName":
        for name in _ADDRESSED:
            if spec.get(name) == old.get(name):
                spec.pop(name, None)
    if spec.get("type") == "ExternalName" or old.get("type") == "ExternalName":
        return
    for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if name in old:
            spec.setdefault(name, old[name])


def qos_class(spec: JsonObject) -> str:
    """Guaranteed, Burstable or BestEffort, from the cpu and memory of all containers."""
    containers = [*(spec.get("containers") or ()), *(spec.get("initContainers") or ())]
    asked = [container.get("resources") or {} for container in containers]
    amounts = [{**(item.get("requests") or {}), **(item.get("limits") or {})} for item in asked]
    if not any(name in item for item in amounts for name in ("cpu", "memory")):
        return "BestEffort"
    for item in asked:
        limits, requests = item.get("limits") or {}, item.get("requests") or {}
        if not all(name in limits and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"
