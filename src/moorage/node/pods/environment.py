"""Environment, command and arguments of a container, as a kubelet makes them.

Enters: a pod, a container, the data of the ConfigMaps and Secrets it names, its address. Leaves: plain text values, or a
`Missing` that says what is not there. It must not read anything by itself.
Source: Kubernetes API reference, EnvVar, EnvFromSource, `$(VAR)` expansion.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity

_REFERENCE = re.compile(r"\$(\$)|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
_SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class Missing(InputError):
    """Something that the pod names is not there; the message names it."""

    code = "missing"


Lookup = Callable[[str, str], JsonObject | None]
"""Gives the object of kind ConfigMap or Secret and a name in the pod's namespace."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a container may refer to. `pod_ip` is empty while none is allocated."""

    pod: JsonObject
    lookup: Lookup
    pod_ip: str = ""
    host_ip: str = "127.0.0.1"
    node_name: str = "local"


def expand(text: str, values: Mapping[str, str]) -> str:
    """`$(NAME)` replaced by its value; an unknown name stays as it is, `$$(NAME)` is the literal `$(NAME)`."""

    def one(found: re.Match[str]) -> str:
        return "$" if found[1] else values.get(found[2], found[0])

    return _REFERENCE.sub(one, text)


def environment(container: JsonObject, facts: Facts) -> dict[str, str]:
    """All variables of a container, `envFrom` first.

    Raises:
        Missing: a named ConfigMap, Secret or key is absent and not optional.
    """
    values: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        values.update(_from_source(source, facts))
    for item in container.get("env") or ():
        value = _value(item, container, facts, values)
        if value is not None:
            values[item["name"]] = value
    return values


def command(container: JsonObject, entrypoint: tuple[str, ...], values: Mapping[str, str]) -> list[str]:
    """The argument vector: `command` (or the image's entrypoint) and `args`, expanded.

    Raises:
        Missing: neither the container nor the image names a command.
    """
    head = list(container.get("command") or entrypoint)
    words = [expand(word, values) for word in [*head, *(container.get("args") or ())]]
    if not words:
        raise Missing(f"container {container['name']}", "no command specified")
    return words


def field_value(path: str, facts: Facts) -> str:
    """The value of a downward API field path.

    Raises:
        Missing: the path is not one that the downward API serves.
    """
    meta, spec = facts.pod["metadata"], facts.pod["spec"]
    plain = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta.get("namespace", ""),
        "metadata.uid": meta.get("uid", ""),
        "spec.nodeName": facts.node_name,
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.podIP": facts.pod_ip,
        "status.podIPs": facts.pod_ip,
        "status.hostIP": facts.host_ip,
        "status.hostIPs": facts.host_ip,
    }
    if path in plain:
        return str(plain[path])
    if path in ("metadata.labels", "metadata.annotations"):
        pairs = meta.get(path.rpartition(".")[2]) or {}
        return "\n".join(f'{key}="{_quoted(value)}"' for key, value in sorted(pairs.items()))
    if found := _SUBSCRIPT.fullmatch(path):
        return str((meta.get(found[1]) or {}).get(found[2], ""))
    raise Missing(f"field path {path!r}", "is not served by the downward API")


def resource_value(reference: JsonObject, container: JsonObject) -> str:
    """The value of a resourceFieldRef in units of its divisor, rounded up; 0 where no limit is set."""
    kind, _, name = reference["resource"].partition(".")
    amount = ((container.get("resources") or {}).get(kind) or {}).get(name, "0")
    divisor = parse_quantity(reference.get("divisor") or "1") or parse_quantity("1")
    return str(int((parse_quantity(amount) / divisor).to_integral_value(ROUND_CEILING)))


def decoded(obj: JsonObject) -> dict[str, bytes]:
    """All keys of a ConfigMap or Secret with their bytes."""
    if obj.get("kind") == "Secret":
        return {key: base64.b64decode(value) for key, value in (obj.get("data") or {}).items()}
    texts = {key: value.encode() for key, value in (obj.get("data") or {}).items()}
    return texts | {key: base64.b64decode(value) for key, value in (obj.get("binaryData") or {}).items()}


def named_data(kind: str, name: str, facts: Facts, *, optional: bool) -> dict[str, bytes] | None:
    """The data of a named ConfigMap or Secret; None where it is absent and optional.

    Raises:
        Missing: it is absent and not optional.
    """
    obj = facts.lookup(kind, name)
    if obj is not None:
        return decoded(obj)
    if optional:
        return None
    raise Missing(f'{kind.lower()} "{name}" not found')


def _from_source(source: JsonObject, facts: Facts) -> dict[str, str]:
    prefix = source.get("prefix", "")
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        if reference := source.get(field):
            data = named_data(kind, reference["name"], facts, optional=bool(reference.get("optional")))
            return {prefix + key: value.decode(errors="surrogateescape") for key, value in (data or {}).items()}
    return {}


def _value(item: JsonObject, container: JsonObject, facts: Facts, before: Mapping[str, str]) -> str | None:
    source: dict[str, Any] = item.get("valueFrom") or {}
    if not source:
        return expand(item.get("value", ""), before)
    if reference := source.get("fieldRef"):
        return field_value(reference["fieldPath"], facts)
    if reference := source.get("resourceFieldRef"):
        return resource_value(reference, container)
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference := source.get(field):
            return _key_value(kind, reference, facts)
    raise Missing(f"env {item['name']}", "valueFrom names no source that is served here")


def _key_value(kind: str, reference: JsonObject, facts: Facts) -> str | None:
    optional = bool(reference.get("optional"))
    data = named_data(kind, reference["name"], facts, optional=optional)
    if data is None:
        return None
    if reference["key"] in data:
        return data[reference["key"]].decode(errors="surrogateescape")
    if optional:
        return None
    where = f"{facts.pod['metadata'].get('namespace', '')}/{reference['name']}"
    raise Missing(f"couldn't find key {reference['key']} in {kind} {where}")


def _quoted(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
