"""Rules of volumes and of the files they project.

Enters: volumes of a pod spec. Leaves: complaints. Must not know containers. Source: API reference of Volume; recorded refusals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.apiserver.builtin.fields import Errors, named, only_first, own_label
from moorage.schema import forbidden, invalid, required

_FILE_FIELDS = ("metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations")
ENVIRONMENT_FIELDS = (
    "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
    "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
)  # fmt: skip
_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def check_volumes(path: str, volumes: Any) -> Errors:
    """Complaints about the volumes of a pod."""
    seen: set[str] = set()
    for index, volume in enumerate(volumes or ()):
        here = f"{path}[{index}]"
        yield from _source(here, volume)
        yield from own_label(f"{here}.name", volume.get("name") or "", seen)


def _source(path: str, volume: Mapping[str, Any]) -> Errors:
    kinds = [name for name, source in volume.items() if name != "name" and isinstance(source, dict)]
    order = [name for name in _ORDER if name in kinds]
    yield from only_first(path, order, "volume type", lambda place, kind: _check(place, kind, volume[kind]))


def _check(path: str, kind: str, source: Mapping[str, Any]) -> Errors:
    match kind:
        case "secret":
            yield from named(f"{path}.secretName", source.get("secretName"))
            yield from _files(path, source)
        case "configMap":
            yield from named(f"{path}.name", source.get("name"))
            yield from _files(path, source)
        case "persistentVolumeClaim":
            yield from named(f"{path}.claimName", source.get("claimName"))
        case "hostPath":
            yield from _host_path(f"{path}.path", source.get("path") or "")
        case "downwardAPI":
            yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
            for item in source.get("items") or ():
                yield from _downward(path, item)
        case "projected":
            yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
            yield from _projected(path, source)


_ORDER = (
    "emptyDir", "hostPath", "secret", "nfs", "persistentVolumeClaim", "downwardAPI", "configMap", "projected", "csi", "ephemeral",
)  # fmt: skip


def _host_path(path: str, value: str) -> Errors:
    yield from named(path, value)
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def _files(path: str, source: Mapping[str, Any]) -> Errors:
    yield from _mode(f"{path}.defaultMode", source.get("defaultMode"))
    for index, item in enumerate(source.get("items") or ()):
        here = f"{path}.items[{index}]"
        yield from named(f"{here}.key", item.get("key"))
        yield from file_path(f"{here}.path", item.get("path") or "")
        yield from _mode(f"{here}.mode", item.get("mode"))


def _mode(path: str, value: Any) -> Errors:
    if isinstance(value, int) and not 0 <= value <= 0o777:
        yield invalid(path, value, _MODE)


def file_path(path: str, value: str) -> Errors:
    """A required relative path that stays inside."""
    yield from named(path, value)
    yield from relative_path(path, value)
    if value.startswith("..") and not value.startswith("../"):
        yield invalid(path, value, "must not start with '..'")


def relative_path(path: str, value: str) -> Errors:
    """A path that is relative and does not climb."""
    if value.startswith("/"):
        yield invalid(path, value, "must be a relative path")
    if ".." in value.split("/"):
        yield invalid(path, value, "must not contain '..'")


def _downward(path: str, item: Mapping[str, Any]) -> Errors:
    yield from file_path(f"{path}.path", item.get("path") or "")
    if field := item.get("fieldRef"):
        yield from field_ref(f"{path}.fieldRef", field, _FILE_FIELDS)
    elif not item.get("resourceFieldRef"):
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _mode(f"{path}.mode", item.get("mode"))


def field_ref(path: str, field: Mapping[str, Any], supported: tuple[str, ...]) -> Errors:
    """A reference to a field of the pod: a known one, or one label or annotation."""
    value = field.get("fieldPath") or ""
    plain, bracket, _ = value.partition("['")
    if bracket and plain in ("metadata.labels", "metadata.annotations") and value.endswith("']"):
        return
    if not value:
        yield required(f"{path}.fieldPath")
    elif value not in {*supported, *_KNOWN_FIELDS}:
        why = f"error converting fieldPath: field label not supported: {value}"
        yield invalid(f"{path}.fieldPath", value, why)
    elif value not in supported:
        listed = ", ".join(f'"{name}"' for name in sorted(supported))
        yield invalid(f"{path}.fieldPath", value, f"supported values: {listed}")


_KNOWN_FIELDS = {*_FILE_FIELDS, *ENVIRONMENT_FIELDS}


def _projected(path: str, source: Mapping[str, Any]) -> Errors:
    for index, item in enumerate(source.get("sources") or ()):
        here = f"{path}.sources[{index}]"
        kinds = [name for name in ("secret", "configMap", "downwardAPI", "serviceAccountToken") if item.get(name)]
        if len(kinds) > 1:
            yield forbidden(here, "may not specify more than 1 volume type per source")
        for kind in kinds[:1]:
            below = item[kind]
            if kind in ("secret", "configMap"):
                yield from named(f"{here}.{kind}.name", below.get("name"))
                yield from _files(f"{here}.{kind}", below)
            elif kind == "downwardAPI":
                for entry in below.get("items") or ():
                    yield from _downward(f"{here}.downwardAPI", entry)
            else:
                yield from file_path(f"{here}.path", below.get("path") or "")
