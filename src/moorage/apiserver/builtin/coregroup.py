"""Defaults of the small kinds of the core group: Secret, Service, PersistentVolumeClaim, Namespace, Endpoints, Event, Pod status.

Enters: objects as decoded; they are changed in place. Must not check anything. Source: API reference of core/v1.
"""

from __future__ import annotations

import base64

from moorage.apiserver.builtin.pods import default_pod, fill
from moorage.apiserver.builtin.quantities import canonical_values
from moorage.apiserver.builtin.structs import nulls
from moorage.core.meta import JsonObject


def default_secret(obj: JsonObject) -> None:
    """`stringData` goes into `data`; the type is Opaque where none is given."""
    texts = obj.pop("stringData", None) or {}
    if texts:
        encoded = {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}
        obj["data"] = {**(obj.get("data") or {}), **encoded}
    obj["type"] = obj.get("type") or "Opaque"


def default_service(obj: JsonObject) -> None:
    """Type ClusterIP, no affinity, target ports equal to ports, traffic to the whole cluster."""
    spec = obj.setdefault("spec", {})
    fill(spec, {"sessionAffinity": "None", "type": "ClusterIP"})
    if spec["sessionAffinity"] == "None":
        spec.pop("sessionAffinityConfig", None)
    else:
        client = spec.setdefault("sessionAffinityConfig", {}).setdefault("clientIP", {})
        client.setdefault("timeoutSeconds", 10800)
    for port in spec.get("ports") or ():
        port["protocol"] = port.get("protocol") or "TCP"
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port")
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if spec["type"] == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
    if spec["type"] != "ExternalName":
        spec.setdefault("internalTrafficPolicy", "Cluster")
    obj.setdefault("status", {}).setdefault("loadBalancer", {})


def default_claim(obj: JsonObject) -> None:
    """A claim of a file system."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    status = obj.setdefault("status", {})
    for name in ("limits", "requests"):
        canonical_values((spec.get("resources") or {}).get(name))
    canonical_values(status.get("capacity"))
    nulls(status.get("conditions"), "lastProbeTime", "lastTransitionTime")


def default_namespace(obj: JsonObject) -> None:
    """A namespace carries its own name as a label."""
    meta = obj["metadata"]
    if meta.get("name"):
        meta["labels"] = {**(meta.get("labels") or {}), "kubernetes.io/metadata.name": meta["name"]}


def default_endpoints(obj: JsonObject) -> None:
    """Ports are TCP."""
    for subset in obj.get("subsets") or ():
        for port in subset.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def default_event(obj: JsonObject) -> None:
    """Times and reporters are always printed."""
    nulls([obj], "firstTimestamp", "lastTimestamp", "eventTime")
    fill(obj, {"reportingComponent": "", "reportingInstance": ""})
    obj.setdefault("source", {})


def default_new_event(obj: JsonObject) -> None:
    """The same for the view of group events.k8s.io."""
    nulls([obj], "deprecatedFirstTimestamp", "deprecatedLastTimestamp", "eventTime")
    obj.setdefault("deprecatedSource", {})


def default_pod_with_status(obj: JsonObject) -> None:
    """A pod, the times of its conditions and container states included."""
    default_pod(obj)
    status = obj.get("status") or {}
    nulls(status.get("conditions"), "lastProbeTime", "lastTransitionTime")
    for name in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        for item in status.get(name) or ():
            for state in (item.get("state") or {}, item.get("lastState") or {}):
                nulls(_states(state, "running"), "startedAt")
                nulls(_states(state, "terminated"), "startedAt", "finishedAt")


def _states(state: JsonObject, name: str) -> list[JsonObject]:
    return [state[name]] if isinstance(state.get(name), dict) else []


def addresses(obj: JsonObject) -> None:
    """Fields of a Service that follow from its address: families, policy, the list of addresses."""
    spec = obj["spec"]
    if spec.get("type") == "ExternalName" or not spec.get("clusterIP"):
        return
    spec["clusterIPs"] = spec.get("clusterIPs") or [spec["clusterIP"]]
    first = spec["clusterIPs"][0]
    spec["ipFamilies"] = spec.get("ipFamilies") or ["IPv6" if ":" in first else "IPv4"]
    spec["ipFamilyPolicy"] = spec.get("ipFamilyPolicy") or "SingleStack"
