"""Rules of containers: names, images, ports, environment, mounts, resources, probes, hooks.

Enters: containers and the names of the pod's volumes. Leaves: complaints. Must not know workloads.
Source: API reference of Container; recorded refusals. What is not promised (embedded.md point 7) is not checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.apiserver.builtin.check_volumes import ENVIRONMENT_FIELDS, field_ref, relative_path
from moorage.apiserver.builtin.fields import (
    PROTOCOLS,
    Errors,
    complaints,
    known,
    named,
    non_negatives,
    one_of,
    only_first,
    own_label,
    port,
    port_name,
    port_or_name,
    quantity,
)
from moorage.core import names
from moorage.core.quantity import parse_quantity
from moorage.schema import duplicate, invalid, required

_AMOUNTS = ("cpu", "ephemeral-storage", "memory")
_RESOURCE_FIELDS = tuple(f"{kind}.{name}" for kind in ("limits", "requests") for name in _AMOUNTS)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_ENV_NAME = "a valid environment variable name must consist only of printable ASCII characters other than '='"


def check_container(path: str, container: Mapping[str, Any], volumes: frozenset[str], taken: set[str]) -> Errors:
    """Complaints about a container; `taken` collects the names of a pod's containers."""
    yield from own_label(f"{path}.name", container.get("name") or "", taken)
    yield from named(f"{path}.image", container.get("image"))
    yield from _ports(f"{path}.ports", container.get("ports"))
    yield from _environment(path, container)
    yield from _mounts(f"{path}.volumeMounts", container.get("volumeMounts"), volumes)
    yield from one_of(f"{path}.imagePullPolicy", container.get("imagePullPolicy"), "Always", "IfNotPresent", "Never")
    yield from _resources(f"{path}.resources", container.get("resources") or {})


def check_hooks(path: str, container: Mapping[str, Any]) -> Errors:
    """Complaints about probes and lifecycle hooks."""
    for name in ("postStart", "preStop"):
        handler = (container.get("lifecycle") or {}).get(name)
        if handler is not None:
            yield from _handler(f"{path}.lifecycle.{name}", handler)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        probe = container.get(name)
        if probe is not None:
            yield from _probe(f"{path}.{name}", probe, once=name != "readinessProbe")


def _ports(path: str, ports: Any) -> Errors:
    seen: set[str] = set()
    for index, item in enumerate(ports or ()):
        here, name = f"{path}[{index}]", item.get("name") or ""
        if name:
            yield from port_name(f"{here}.name", name)
            if name in seen:
                yield duplicate(f"{here}.name", name)
            seen.add(name)
        if not item.get("containerPort"):
            yield required(f"{here}.containerPort")
        else:
            yield from port(f"{here}.containerPort", item["containerPort"])
        if item.get("hostPort"):
            yield from port(f"{here}.hostPort", item["hostPort"])
        yield from one_of(f"{here}.protocol", item.get("protocol"), *PROTOCOLS)


def _environment(path: str, container: Mapping[str, Any]) -> Errors:
    for index, item in enumerate(container.get("env") or ()):
        here, name = f"{path}.env[{index}]", item.get("name") or ""
        if not name:
            yield required(f"{here}.name")
        elif not (name.isascii() and name.isprintable()) or "=" in name:
            yield invalid(f"{here}.name", name, _ENV_NAME)
        yield from _value_source(f"{here}.valueFrom", item)
    for index, item in enumerate(container.get("envFrom") or ()):
        yield from _bulk_source(f"{path}.envFrom", index, item)


def _value_source(path: str, item: Mapping[str, Any]) -> Errors:
    source = item.get("valueFrom")
    if source is None:
        return
    kinds = [name for name in _SOURCES if source.get(name)]
    for kind in kinds:
        yield from _reference(f"{path}.{kind}", kind, source[kind])
    if not kinds:
        yield invalid(
            path, "", "must specify one of: " + ", ".join(f"`{n}`" for n in _SOURCES[:-1]) + f" or `{_SOURCES[-1]}`"
        )
    elif item.get("value"):
        yield invalid(path, "", "may not be specified when `value` is not empty")
    elif len(kinds) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")


def _reference(path: str, kind: str, source: Mapping[str, Any]) -> Errors:
    match kind:
        case "fieldRef":
            yield from field_ref(path, source, ENVIRONMENT_FIELDS)
        case "resourceFieldRef":
            if not source.get("resource"):
                yield required(f"{path}.resource")
            else:
                yield from one_of(f"{path}.resource", source["resource"], *_RESOURCE_FIELDS)
        case _:
            name, key = source.get("name") or "", source.get("key") or ""
            yield from complaints(f"{path}.name", name, names.dns1123_subdomain(name))
            yield from complaints(f"{path}.key", key, names.config_key(key)) if key else named(f"{path}.key", key)


def _bulk_source(path: str, index: int, item: Mapping[str, Any]) -> Errors:
    kinds = [name for name in ("configMapRef", "secretRef") if item.get(name) is not None]
    if not kinds:
        yield invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")
    elif len(kinds) > 1:
        yield invalid(path, "", "may not have more than one field specified at a time")
    for kind in kinds:
        yield from named(f"{path}[{index}].{kind}.name", item[kind].get("name"))


def _mounts(path: str, mounts: Any, volumes: frozenset[str]) -> Errors:
    places: set[str] = set()
    for index, mount in enumerate(mounts or ()):
        here, place = f"{path}[{index}]", mount.get("mountPath") or ""
        yield from named(f"{here}.name", mount.get("name"))
        yield from known(f"{here}.name", mount.get("name") or "", volumes)
        yield from named(f"{here}.mountPath", place)
        if place in places:
            yield invalid(f"{here}.mountPath", place, "must be unique")
        places.add(place)
        if mount.get("subPath"):
            yield from relative_path(f"{path}.subPath", mount["subPath"])


def _resources(path: str, resources: Mapping[str, Any]) -> Errors:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name, value in limits.items():
        yield from _resource_name(f"{path}.limits[{name}]", name)
        yield from quantity(f"{path}.limits[{name}]", value)
    for name, value in requests.items():
        yield from _resource_name(f"{path}.requests[{name}]", name)
        yield from quantity(f"{path}.requests[{name}]", value)
        if name in limits and _more(value, limits[name]):
            yield invalid(f"{path}.requests", value, f"must be less than or equal to {name} limit of {limits[name]}")


def _more(left: Any, right: Any) -> bool:
    try:
        return parse_quantity(left) > parse_quantity(right)
    except ValueError:
        return False


def _resource_name(path: str, name: str) -> Errors:
    yield from complaints(path, name, names.qualified_name(name))
    if "/" not in name and name not in _AMOUNTS and not name.startswith("hugepages-"):
        yield invalid(path, name, "must be a standard resource type or fully qualified")
        yield invalid(path, name, "must be a standard resource for containers")


def _probe(path: str, probe: Mapping[str, Any], *, once: bool) -> Errors:
    yield from _handler(path, probe)
    numbers = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    yield from non_negatives(probe, path, *numbers)
    if once and probe.get("successThreshold", 1) != 1:
        yield invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1")


def _handler(path: str, handler: Mapping[str, Any]) -> Errors:
    kinds = [name for name in _HANDLERS if handler.get(name) is not None]
    if not kinds:
        yield required(path, "must specify a handler type")
    yield from only_first(path, kinds, "handler type", lambda place, kind: _one_handler(place, kind, handler[kind]))


def _one_handler(path: str, kind: str, handler: Mapping[str, Any]) -> Errors:
    match kind:
        case "exec":
            yield from named(f"{path}.command", handler.get("command"))
        case "httpGet":
            yield from named(f"{path}.path", handler.get("path"))
            yield from port_or_name(f"{path}.port", handler.get("port"))
            yield from one_of(f"{path}.scheme", handler.get("scheme"), "HTTP", "HTTPS")
        case "tcpSocket":
            yield from port_or_name(f"{path}.port", handler.get("port"))
        case "grpc":
            yield from port(f"{path}.port", handler.get("port"))
