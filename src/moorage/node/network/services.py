"""Which pods stand behind a Service, and what its Endpoints object says. Pure.

Enters: Services and pods as they stand on the wire. Leaves: backends by port, and the `subsets` to store.
Source: Kubernetes API reference, Service and Endpoints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from moorage.core.meta import JsonObject, is_terminating


@dataclass(frozen=True, slots=True)
class Target:
    """One pod behind a Service."""

    pod: JsonObject
    ip: str
    ready: bool


def selects(service: JsonObject, pod: JsonObject) -> bool:
    """Whether the Service's selector matches the pod; a Service without selector matches none."""
    selector: Mapping[str, str] = service["spec"].get("selector") or {}
    labels = pod["metadata"].get("labels") or {}
    return bool(selector) and all(labels.get(key) == value for key, value in selector.items())


def is_ready(pod: JsonObject) -> bool:
    """Whether the pod's Ready condition is True."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def targets(service: JsonObject, pods: Iterable[JsonObject]) -> list[Target]:
    """The pods behind a Service, those that are not ready included, sorted by name; ended and ending ones are left out."""
    found = []
    for pod in pods:
        status = pod.get("status") or {}
        gone = is_terminating(pod) or status.get("phase") in ("Succeeded", "Failed") or not status.get("podIP")
        if selects(service, pod) and not gone:
            ready = is_ready(pod) or bool(service["spec"].get("publishNotReadyAddresses"))
            found.append(Target(pod, status["podIP"], ready))
    return sorted(found, key=lambda target: str(target.pod["metadata"]["name"]))


def target_port(port: JsonObject, pod: JsonObject) -> int | None:
    """The pod's port for a port of a Service; None when the pod has no port of that name."""
    wanted = port.get("targetPort") or port["port"]
    if isinstance(wanted, int):
        return wanted
    if wanted.isdecimal():
        return int(wanted)
    for container in [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]:
        for item in container.get("ports") or ():
            if item.get("name") == wanted:
                return int(item["containerPort"])
    return None


def backends(service: JsonObject, pods: Iterable[JsonObject]) -> dict[int, list[tuple[str, int]]]:
    """Ready backends for each TCP port of a Service with a selector."""
    behind = [target for target in targets(service, pods) if target.ready]
    found: dict[int, list[tuple[str, int]]] = {}
    for port in tcp_ports(service):
        numbers = [(target.ip, target_port(port, target.pod)) for target in behind]
        found[port["port"]] = [(ip, number) for ip, number in numbers if number is not None]
    return found


def backends_of_endpoints(service: JsonObject, endpoints: JsonObject | None) -> dict[int, list[tuple[str, int]]]:
    """Backends for each TCP port of a Service without selector: what somebody wrote into its Endpoints."""
    found: dict[int, list[tuple[str, int]]] = {}
    for port in tcp_ports(service):
        behind = found.setdefault(port["port"], [])
        for subset in (endpoints or {}).get("subsets") or ():
            for item in subset.get("ports") or ():
                if item.get("name", "") == port.get("name", ""):
                    behind += [(address["ip"], item["port"]) for address in subset.get("addresses") or ()]
    return found


def tcp_ports(service: JsonObject) -> list[JsonObject]:
    """The ports that can be forwarded."""
    return [port for port in service["spec"].get("ports") or () if port.get("protocol", "TCP") == "TCP"]


def subsets(service: JsonObject, pods: Iterable[JsonObject]) -> list[JsonObject]:
    """The `subsets` of a Service's Endpoints: pods that share their port numbers share a subset."""
    groups: dict[tuple[tuple[str, int, str], ...], list[Target]] = {}
    for target in targets(service, pods):
        ports = []
        for port in service["spec"].get("ports") or ():
            number = target_port(port, target.pod)
            if number is not None:
                ports.append((port.get("name", ""), number, port.get("protocol", "TCP")))
        groups.setdefault(tuple(ports), []).append(target)
    return [_subset(ports, group) for ports, group in sorted(groups.items())]


def _subset(ports: tuple[tuple[str, int, str], ...], group: list[Target]) -> JsonObject:
    subset: JsonObject = {}
    for field, ready in (("addresses", True), ("notReadyAddresses", False)):
        addresses = [_address(target) for target in group if target.ready is ready]
        if addresses:
            subset[field] = addresses
    if ports:
        named = [{"name": name, "port": number, "protocol": protocol} for name, number, protocol in ports]
        subset["ports"] = [{key: value for key, value in item.items() if value != ""} for item in named]
    return subset


def _address(target: Target) -> JsonObject:
    meta = target.pod["metadata"]
    reference = {"kind": "Pod", "namespace": meta["namespace"], "name": meta["name"], "uid": meta["uid"]}
    address = {"ip": target.ip, "targetRef": reference}
    node = target.pod["spec"].get("nodeName")
    return {**address, "nodeName": node} if node else address
