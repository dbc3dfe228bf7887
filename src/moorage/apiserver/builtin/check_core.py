"""Rules of the core group's kinds: ConfigMap, Secret, Service, PersistentVolumeClaim, Event, Endpoints; and Lease.

Enters: defaulted objects and the stored ones. Leaves: complaints. Source: API reference of core/v1; recorded refusals.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import ipaddress
import json
from collections.abc import Mapping
from typing import Any

from moorage.apiserver.builtin.fields import (
    IMMUTABLE,
    PROTOCOLS,
    Errors,
    complaints,
    ip_address,
    labels,
    named,
    one_of,
    port,
    port_or_name,
    quantity,
)
from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.schema import duplicate, forbidden, invalid, required, too_long
from moorage.schema.fielderror import Verbatim, go_json

_LIMIT = 1024 * 1024
_FIXED = "field is immutable when `immutable` is set"
_PARTS = {
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
}
_POD_NETWORK = ipaddress.ip_network("127.96.0.0/11")
"""Where the node gives pods their addresses (spec/embedded.md, Node)."""
_SERVICE_TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_ACCESS = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def _keys(path: str, data: Mapping[str, Any] | None) -> Errors:
    for key in data or {}:
        yield from complaints(f"{path}[{key}]", key, names.config_key(key))


def _size(data: Mapping[str, str] | None, *, encoded: bool) -> int:
    return sum(len(value) * 3 // 4 if encoded else len(value.encode()) for value in (data or {}).values())


def _frozen(obj: JsonObject, old: JsonObject | None, *fields: str) -> Errors:
    if old is None or not old.get("immutable"):
        return
    if not obj.get("immutable"):
        yield forbidden("immutable", _FIXED)
    for name in fields:
        if (obj.get(name) or {}) != (old.get(name) or {}):
            yield forbidden(name, _FIXED)


def check_config_map(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a ConfigMap."""
    yield from _frozen(obj, old, "data", "binaryData")
    data, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    for key in data:
        yield from complaints(f"data[{key}]", key, names.config_key(key))
        if key in binary:
            yield invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
    yield from _keys("binaryData", binary)
    if _size(data, encoded=False) + _size(binary, encoded=True) > _LIMIT:
        yield too_long("[]", "", _LIMIT)  # as Kubernetes prints a path without a name


def check_secret(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a Secret. No value of it ever stands in one."""
    if old is not None and obj.get("type") != old.get("type"):
        yield invalid("type", obj.get("type"), IMMUTABLE)
    yield from _frozen(obj, old, "data")
    data = obj.get("data") or {}
    yield from _keys("data", data)
    if _size(data, encoded=True) > _LIMIT:
        yield too_long("data", "", _LIMIT)
    yield from _secret_parts(obj, data)


def _secret_parts(obj: JsonObject, data: Mapping[str, str]) -> Errors:
    kind = obj.get("type") or ""
    for name in _PARTS.get(kind, ()):
        if name not in data:
            yield required(f"data[{name}]")
        elif name.startswith(".docker") and (wrong := _json_complaint(data[name])):
            yield invalid(f"data[{name}]", "<secret contents redacted>", wrong)
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        yield required("data[username]")
        yield required("data[password]")
    name = "kubernetes.io/service-account.name"
    if kind == "kubernetes.io/service-account-token" and not (obj["metadata"].get("annotations") or {}).get(name):
        yield required(f"metadata.annotations[{name}]")


def _json_complaint(encoded: str) -> str:
    try:
        text = base64.b64decode(encoded).decode()
        json.loads(text)
    except (binascii.Error, UnicodeDecodeError):
        return "not text"
    except ValueError:
        return (
            f"invalid character {text[:1]!r} looking for beginning of value" if text else "unexpected end of JSON input"
        )
    return ""


def check_service(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a Service."""
    spec = obj["spec"]
    ports, kind = spec.get("ports") or [], spec.get("type")
    if not ports and kind != "ExternalName" and spec.get("clusterIP") != "None":
        yield required("spec.ports")
    if kind == "ExternalName" and spec.get("clusterIP"):
        yield forbidden("spec.clusterIPs", "may not be set for ExternalName services")
    if kind in ("NodePort", "LoadBalancer") and spec.get("clusterIP") == "None":
        yield invalid("spec.clusterIPs[0]", "None", f"may not be set to 'None' for {kind} services")
    if kind == "ExternalName":
        yield from _external_name(spec.get("externalName") or "")
    yield from _service_ports(ports)
    yield from labels("spec.selector", spec.get("selector"))
    yield from one_of("spec.sessionAffinity", spec.get("sessionAffinity"), "ClientIP", "None")
    yield from one_of("spec.type", kind, *_SERVICE_TYPES)
    if kind != "LoadBalancer" and ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress"):
        yield forbidden("status.loadBalancer.ingress", "may only be used when `spec.type` is 'LoadBalancer'")
    yield from _cluster_addresses(spec, None if old is None else old["spec"])


def _external_name(name: str) -> Errors:
    if not name:
        yield required("spec.externalName")
    else:
        yield from complaints("spec.externalName", name, names.dns1123_subdomain(name.removesuffix(".")))


def _service_ports(ports: list[JsonObject]) -> Errors:
    seen_names: set[str] = set()
    for index, item in enumerate(ports):
        here, name = f"spec.ports[{index}]", item.get("name") or ""
        if not name and len(ports) > 1:
            yield required(f"{here}.name")
        elif name and (wrong := names.dns1123_label(name)):
            yield from complaints(f"{here}.name", name, wrong)
        elif name and name in seen_names:
            yield duplicate(f"{here}.name", name)
        seen_names.add(name)
        yield from port(f"{here}.port", item.get("port"))
        yield from one_of(f"{here}.protocol", item.get("protocol"), *PROTOCOLS)
        yield from port_or_name(f"{here}.targetPort", item.get("targetPort"))
    yield from _repeated_ports(ports)


def _repeated_ports(ports: list[JsonObject]) -> Errors:
    seen: set[tuple[Any, Any]] = set()
    for index, item in enumerate(ports):
        key = (item.get("protocol"), item.get("port"))
        if key in seen:
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            yield duplicate(f"spec.ports[{index}]", Verbatim(go_json(shown)))
        seen.add(key)


def _cluster_addresses(spec: Mapping[str, Any], old: Mapping[str, Any] | None) -> Errors:
    found = spec.get("clusterIPs") or ([spec["clusterIP"]] if spec.get("clusterIP") else [])
    for index, address in enumerate(found if spec.get("type") != "ExternalName" else ()):
        if address != "None":
            yield from ip_address(f"spec.clusterIPs[{index}]", address)
    before = (old or {}).get("clusterIPs") or []
    changed = bool(before) and bool(found) and (found[0] != before[0] or spec.get("clusterIP", found[0]) != before[0])
    if changed and "ExternalName" not in (spec.get("type"), (old or {}).get("type")):
        given = spec.get("clusterIP")
        yield invalid("spec.clusterIPs[0]", [given] if given else found, "may not change once set")


def check_claim(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a PersistentVolumeClaim."""
    spec = obj["spec"]
    modes = spec.get("accessModes") or ()
    if not modes:
        yield required("spec.accessModes", "at least 1 access mode is required")
    for mode in modes:
        yield from one_of("spec.accessModes", mode, *_ACCESS)
    storage = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    if storage is None:
        yield required("spec.resources[storage]")
    else:
        yield from quantity("spec.resources[storage]", storage, positive=True)
    if old is not None and _claim_shape(spec, old["spec"]) != _claim_shape(old["spec"], old["spec"]):
        text = (
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
        )
        yield forbidden("spec", f"{text}\n{_claim_difference(old['spec'], spec)}")


def _claim_shape(spec: Mapping[str, Any], old: Mapping[str, Any]) -> JsonObject:
    free = {"resources", "volumeAttributesClassName"} if old.get("volumeName") else {"volumeName"}
    return {name: value for name, value in spec.items() if name not in free}


_CLAIM_FIELDS = (
    "accessModes", "selector", "resources", "volumeName", "storageClassName", "volumeMode", "dataSource", "dataSourceRef",
    "volumeAttributesClassName",
)  # fmt: skip


def _claim_difference(old: Mapping[str, Any], spec: Mapping[str, Any]) -> str:
    """What changed, as Kubernetes prints two claims side by side."""
    before, after = (json.dumps(_claim_shown(item), indent=1, ensure_ascii=False).splitlines() for item in (old, spec))
    lines = list(difflib.unified_diff(before, after, lineterm=""))[2:]
    return "".join(f"{line}\n" for line in lines)


def _claim_shown(spec: Mapping[str, Any]) -> JsonObject:
    shown = {f"{name[0].upper()}{name[1:]}": spec.get(name) for name in _CLAIM_FIELDS}
    resources = spec.get("resources") or {}
    shown["Resources"] = {"Limits": resources.get("limits"), "Requests": resources.get("requests")}
    shown["VolumeName"] = spec.get("volumeName") or ""
    return shown


def check_event(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about an Event of the core view."""
    about = (obj.get("involvedObject") or {}).get("namespace") or ""
    if old is None and about and about != obj["metadata"].get("namespace", about):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")


def check_new_event(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about an Event of group events.k8s.io, whose rules are stricter."""
    about = (obj.get("regarding") or {}).get("namespace") or ""
    if old is None and about and about != obj["metadata"].get("namespace", about):
        yield invalid("involvedObject.namespace", about, "does not match event.namespace")
    if not obj.get("eventTime"):
        yield required("eventTime")
    else:
        yield from _reporter(obj)
    if obj.get("type") not in ("Normal", "Warning"):
        yield invalid("type", "", f"has invalid value: {obj.get('type') or ''}")


def _reporter(obj: JsonObject) -> Errors:
    controller = obj.get("reportingController") or ""
    yield from named("reportingController", controller)
    yield from complaints("reportingController", controller, names.qualified_name(controller))
    for name in ("reportingInstance", "action", "reason"):
        yield from named(name, obj.get(name))


def check_endpoints(obj: JsonObject, _old: JsonObject | None) -> Errors:
    """Complaints about Endpoints."""
    for index, subset in enumerate(obj.get("subsets") or ()):
        path = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            yield required(path, "must specify `addresses` or `notReadyAddresses`")
        for kind in ("addresses", "notReadyAddresses"):
            for number, address in enumerate(subset.get(kind) or ()):
                yield from _endpoint_address(f"{path}.{kind}[{number}].ip", address.get("ip") or "")
        for number, item in enumerate(subset.get("ports") or ()):
            yield from port(f"{path}.ports[{number}].port", item.get("port"))


def _endpoint_address(path: str, address: str) -> Errors:
    wrong = list(ip_address(path, address))
    yield from wrong
    if wrong:
        yield invalid(path, address, "must be a valid IP address")
    elif (found := ipaddress.ip_address(address)).is_loopback and found not in _POD_NETWORK:
        yield invalid(path, address, "may not be in the loopback range (127.0.0.0/8, ::1/128)")


def check_lease(obj: JsonObject, _old: JsonObject | None) -> Errors:
    """Complaints about a Lease."""
    spec = obj.get("spec") or {}
    duration, transitions = spec.get("leaseDurationSeconds"), spec.get("leaseTransitions")
    if isinstance(duration, int) and duration <= 0:
        yield invalid("spec.leaseDurationSeconds", duration, "must be greater than 0")
    if isinstance(transitions, int) and transitions < 0:
        yield invalid("spec.leaseTransitions", transitions, "must be greater than or equal to 0")
