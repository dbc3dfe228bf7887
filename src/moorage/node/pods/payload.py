"""The files of configMap, secret, downwardAPI and projected volumes.

Enters: a volume of a pod spec and the facts it may refer to. Leaves: relative paths with bytes and modes, or `Missing`.
It must not touch the disk. Source: Kubernetes API reference, Volume, KeyToPath, ProjectedVolumeSource.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject
from moorage.node.pods.environment import Facts, Missing, field_value, named_data, resource_value

_DEFAULT_MODE = 0o644


@dataclass(frozen=True, slots=True)
class Content:
    """One file of a volume."""

    data: bytes
    mode: int


Payload: TypeAlias = dict[str, Content]

PROJECTIONS = ("configMap", "secret", "downwardAPI", "projected")


def payload(volume: JsonObject, facts: Facts) -> Payload:
    """The files of a volume whose source is one of PROJECTIONS.

    Raises:
        Missing: a named object or key is absent and not optional.
        InputError: two sources write one path, or a path leaves the volume.
    """
    if projected := volume.get("projected"):
        files: Payload = {}
        mode = projected.get("defaultMode", _DEFAULT_MODE)
        for source in projected.get("sources") or ():
            files |= _one(source, facts, mode)
        return files
    return _one(volume, facts, _DEFAULT_MODE)


def _one(source: JsonObject, facts: Facts, mode: int) -> Payload:
    if part := source.get("configMap"):
        return _from_object("ConfigMap", part["name"], part, facts, mode)
    if part := source.get("secret"):
        return _from_object("Secret", part.get("secretName") or part.get("name", ""), part, facts, mode)
    if part := source.get("downwardAPI"):
        return _downward(part, facts, part.get("defaultMode", mode))
    raise Missing(f"volume source {', '.join(source)}", "is not served on this node")


def _from_object(kind: str, name: str, part: JsonObject, facts: Facts, mode: int) -> Payload:
    optional = bool(part.get("optional"))
    data = named_data(kind, name, facts, optional=optional)
    default = part.get("defaultMode", mode)
    if data is None:
        return {}
    if not part.get("items"):
        return {key: Content(value, default) for key, value in data.items()}
    files: Payload = {}
    for item in part["items"]:
        if item["key"] in data:
            files[_inside(item["path"])] = Content(data[item["key"]], item.get("mode", default))
        elif not optional:
            where = f"{facts.pod['metadata'].get('namespace', '')}/{name}"
            raise Missing(f"references non-existent {kind.lower()} key: {item['key']}", f"in {where}")
    return files


def _downward(part: JsonObject, facts: Facts, mode: int) -> Payload:
    files: Payload = {}
    for item in part.get("items") or ():
        if reference := item.get("fieldRef"):
            text = field_value(reference["fieldPath"], facts)
        else:
            text = resource_value(item["resourceFieldRef"], _container(facts.pod, item["resourceFieldRef"]))
        files[_inside(item["path"])] = Content(text.encode(), item.get("mode", mode))
    return files


def _container(pod: JsonObject, reference: Mapping[str, str]) -> JsonObject:
    name = reference.get("containerName", "")
    found: JsonObject | None = next((item for item in pod["spec"]["containers"] if item["name"] == name), None)
    if found is None:
        raise Missing(f"container {name!r}", "is named by a downward API volume and is not in the pod")
    return found


def _inside(path: str) -> str:
    parts = path.split("/")
    if path.startswith("/") or ".." in parts or parts[0].startswith(".."):
        raise InputError(f"volume path {path!r}", "must be relative and must not leave the volume")
    return path
