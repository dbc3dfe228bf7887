"""`metadata.managedFields`: who owns which fields, decoded, changed and encoded again.

Enters: entries as they stand on the wire. Leaves: the same, ordered and bounded as Kubernetes does. Must not look at objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from moorage.apiserver.apply.fieldset import FieldSet
from moorage.core.meta import JsonObject

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"
BEFORE_FIRST_APPLY = "before-first-apply"


@dataclass(frozen=True, slots=True)
class Manager:
    """Who wrote: appliers are known whatever version they used, updaters by version too."""

    name: str
    operation: str
    subresource: str = ""
    api_version: str = ""

    def __str__(self) -> str:
        """As conflicts print it."""
        text = '"' + self.name.replace("\\", "\\\\").replace('"', '\\"') + '"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


@dataclass(frozen=True, slots=True)
class Owned:
    """What one manager owns, since when, and in which version it spoke last."""

    fields: FieldSet
    api_version: str
    time: str = ""


Managers: TypeAlias = dict[Manager, Owned]


def decode(entries: Iterable[Mapping[str, Any]] | None) -> Managers:
    """Managers of an object.

    Raises:
        ValueError: an entry is no fieldsV1 entry.
    """
    found: Managers = {}
    for entry in entries or ():
        if not entry:
            continue
        operation, version = entry.get("operation", ""), entry.get("apiVersion", "")
        if operation not in (APPLY, UPDATE) or entry.get("fieldsType", "FieldsV1") != "FieldsV1":
            raise ValueError(
                f"operation {operation!r} of managedFields is neither Apply nor Update, or fieldsType is not FieldsV1"
            )
        by_version = version if operation == UPDATE else ""
        manager = Manager(entry.get("manager", ""), operation, entry.get("subresource", ""), by_version)
        found[manager] = Owned(FieldSet.from_wire(entry.get("fieldsV1") or {}), version, entry.get("time") or "")
    return found


def encode(managers: Managers) -> list[JsonObject]:
    """Entries for the wire: appliers first, then by time, name, version and subresource; empty ones are dropped."""
    entries = [_entry(manager, owned) for manager, owned in _bounded(managers).items() if owned.fields]
    return sorted(entries, key=_order)


def _order(entry: JsonObject) -> tuple[str, ...]:
    return tuple(entry.get(name, "") for name in ("operation", "time", "manager", "apiVersion", "subresource"))


def _entry(manager: Manager, owned: Owned) -> JsonObject:
    entry: JsonObject = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": owned.api_version,
        "time": owned.time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned.fields.to_wire(),
        "subresource": manager.subresource,
    }
    return {name: value for name, value in entry.items() if value != ""}


def _bounded(managers: Managers) -> Managers:
    """At most ten updaters: the oldest are joined, so that an object does not grow with each new client."""
    updaters = [item for item in managers.items() if item[0].operation == UPDATE and item[1].fields]
    if len(updaters) <= MAX_UPDATE_MANAGERS:
        return managers
    updaters.sort(key=lambda item: (item[1].time, item[0].name))
    kept = dict(managers)
    spare = len(updaters) - MAX_UPDATE_MANAGERS
    for manager, owned in updaters:
        joined = Manager(ANCIENT, UPDATE, "", owned.api_version)
        before = kept.get(joined)
        if manager == joined:
            continue
        spare -= before is not None
        del kept[manager]
        kept[joined] = owned if before is None else replace(owned, fields=before.fields.union(owned.fields))
        if spare <= 0:
            break
    return kept
