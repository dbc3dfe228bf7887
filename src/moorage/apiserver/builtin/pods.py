"""Defaults of pods and pod templates.

Enters: a pod spec as decoded; it is changed in place. Must not check anything. Source: API reference of PodSpec, Container, Probe,
Volume; answers of kube-apiserver 1.36.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from moorage.apiserver.builtin.quantities import canonical, canonical_values
from moorage.core.meta import JsonObject

_MODE = 0o644
_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_IMAGE = re.compile(rf"(?:[A-Za-z0-9.-]+(?::\d+)?/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@\S+)?")
_PROBE = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
}


def fill(obj: JsonObject, defaults: JsonObject) -> None:
    """Sets what is missing."""
    for name, value in defaults.items():
        obj.setdefault(name, value)


def containers_of(spec: JsonObject) -> Iterator[JsonObject]:
    """All containers of a pod: init containers, containers, ephemeral ones."""
    for name in ("initContainers", "containers", "ephemeralContainers"):
        yield from spec.get(name) or ()


def default_pod_spec(spec: JsonObject) -> None:
    """The defaults that a pod and a pod template share."""
    fill(spec, _POD)
    spec.setdefault("securityContext", {})
    if spec.get("serviceAccountName"):
        spec["serviceAccount"] = spec["serviceAccountName"]
    elif spec.get("serviceAccount"):
        spec["serviceAccountName"] = spec["serviceAccount"]
    for container in containers_of(spec):
        _default_container(container, host=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or ():
        _default_volume(volume)
    canonical_values(spec.get("overhead"))


def default_pod(obj: JsonObject) -> None:
    """The defaults of a pod itself: those of its spec, service links, requests from limits."""
    spec = obj.setdefault("spec", {})
    default_pod_spec(spec)
    spec.setdefault("enableServiceLinks", True)
    for container in containers_of(spec):
        resources = container.get("resources") or {}
        if limits := resources.get("limits"):
            resources["requests"] = {**limits, **(resources.get("requests") or {})}
    status = obj.get("status") or {}
    if status.get("podIP") and not status.get("podIPs"):
        status["podIPs"] = [{"ip": status["podIP"]}]


def pull_policy(image: str) -> str:
    """`Always` for an image without tag or with `latest`, `IfNotPresent` for all others and for what is no image name."""
    if not _IMAGE.fullmatch(image):
        return "IfNotPresent"
    name, _, digest = image.partition("@")
    tag = name.rpartition("/")[2].partition(":")[2]
    return "Always" if not digest and tag in ("", "latest") else "IfNotPresent"


def _default_container(container: JsonObject, *, host: bool) -> None:
    fill(
        container,
        {
            "imagePullPolicy": pull_policy(container.get("image") or ""),
            "terminationMessagePath": "/dev/termination-log",
            "terminationMessagePolicy": "File",
        },
    )
    container.setdefault("resources", {})
    for name in ("limits", "requests"):
        canonical_values(container["resources"].get(name))
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if host:
            port.setdefault("hostPort", port.get("containerPort"))
    for item in container.get("env") or ():
        _default_source(item.get("valueFrom") or {})
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if isinstance(probe := container.get(name), dict):
            _default_probe(probe)
    for handler in (container.get("lifecycle") or {}).values():
        if isinstance(handler, dict):
            _default_http(handler)


def _default_probe(probe: JsonObject) -> None:
    for name, value in _PROBE.items():
        probe[name] = probe.get(name) or value
    _default_http(probe)
    if isinstance(grpc := probe.get("grpc"), dict):
        grpc.setdefault("service", "")


def _default_http(handler: JsonObject) -> None:
    if isinstance(request := handler.get("httpGet"), dict):
        request["path"] = request.get("path") or "/"
        request["scheme"] = request.get("scheme") or "HTTP"


def _default_source(source: JsonObject) -> None:
    if isinstance(field := source.get("fieldRef"), dict):
        field["apiVersion"] = field.get("apiVersion") or "v1"
    if isinstance(resource := source.get("resourceFieldRef"), dict):
        resource["divisor"] = canonical(resource.get("divisor") or "0")


def _default_volume(volume: JsonObject) -> None:
    if not any(isinstance(source, dict) for name, source in volume.items() if name != "name"):
        volume["emptyDir"] = {}
    for name in ("secret", "configMap", "downwardAPI", "projected"):
        if isinstance(source := volume.get(name), dict):
            source.setdefault("defaultMode", _MODE)
    if isinstance(path := volume.get("hostPath"), dict):
        path.setdefault("type", "")
    if isinstance(empty := volume.get("emptyDir"), dict) and "sizeLimit" in empty:
        empty["sizeLimit"] = canonical(empty["sizeLimit"])
    _default_files(volume.get("downwardAPI"))
    for source in (volume.get("projected") or {}).get("sources") or ():
        _default_files(source.get("downwardAPI"))
        if isinstance(token := source.get("serviceAccountToken"), dict):
            token.setdefault("expirationSeconds", 3600)


def _default_files(source: Any) -> None:
    for item in (source or {}).get("items") or ():
        _default_source(item)
