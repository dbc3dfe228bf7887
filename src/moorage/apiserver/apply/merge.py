"""Server-side apply: a declared configuration laid over the stored object.

Enters: the stored object or None, and the applied configuration. Leaves: the merged object with `metadata.managedFields`.
Must not default or validate: that is done with what leaves here. Source: API concepts, "Server-side apply".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from moorage.apiserver.apply.compare import Difference, difference
from moorage.apiserver.apply.fieldmanagers import APPLY, BEFORE_FIRST_APPLY, UPDATE, Manager, Managers, Owned, encode
from moorage.apiserver.apply.fieldset import FieldSet
from moorage.apiserver.apply.fitting import misfit_text, misfits
from moorage.apiserver.apply.ownership import (
    UNOWNED,
    cleaned,
    conflict_texts,
    conflicts_of,
    hand_over,
    ignored_fields,
    known,
    union_of,
)
from moorage.apiserver.apply.track import decoded, plain, settled
from moorage.apiserver.apply.types import TypeMap
from moorage.apiserver.apply.values import BadValue, fields_of, merge, remove, with_named
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


class ApplyConflict(Exception):
    """Others own fields that the configuration would change; 409, reason Conflict.

    Attributes:
        causes: (field path, message) of each conflict; the cause's type on the wire is FieldManagerConflict.
    """

    def __init__(self, causes: tuple[tuple[str, str], ...], message: str) -> None:
        self.causes, self.message = causes, message
        super().__init__(message)


class ApplyInvalid(Exception):
    """The configuration cannot be applied whatever is stored; 400, reason BadRequest."""


@dataclass(frozen=True)
class _Write:
    """One apply: by whom, to which type."""

    manager: Manager
    types: TypeMap
    version: str
    time: str


def apply_object(
    live: JsonObject | None,
    applied: JsonObject,
    *,
    manager: str,
    force: bool,
    types: TypeMap,
    now: str,
    subresource: str = "",
) -> JsonObject:
    """The object after an apply; equal to `live` when the configuration changes neither fields nor owners.

    Fields that this manager applied before and now leaves out are removed, unless another manager owns them.

    Args:
        live: the stored object, or None: the answer is then the new object, without defaults.
        now: RFC 3339 UTC time with whole seconds.

    Raises:
        ApplyConflict: without `force`, a field is owned by another manager and would change.
        ApplyInvalid: managedFields were sent, or an associative list has duplicates or items without keys.
    """
    if (applied.get("metadata") or {}).get("managedFields"):
        raise ApplyInvalid("metadata.managedFields must be nil")
    write = _Write(Manager(manager, APPLY, subresource), types, applied["apiVersion"], now)
    stored = _stored(live, applied)
    managers = _managers(live, write)
    before = managers.get(write.manager)
    ignored = ignored_fields(types, subresource)
    wanted = remove(types.root, applied, ignored)
    if complaints := list(misfits(types.root, applied)):
        raise ApplyInvalid(f"failed to create typed patch object ({_title(applied)}): {misfit_text(complaints)}")
    try:
        merged, managers, changed = _applied(stored, wanted, write, managers)
    except BadValue as bad:
        raise ApplyInvalid(f"failed to create typed live object ({_title(applied)}): {bad}") from bad
    changed = changed.outside(ignored)
    found = conflicts_of(managers, changed.taken, write.manager)
    if found and not force:
        found = _beyond_last_applied(found, live, write)
    if found and not force:
        raise ApplyConflict(*conflict_texts(found))
    managers = cleaned(hand_over(managers, changed, write.manager))
    if not changed:
        merged = stored
        managers = _undated(managers, write.manager, before)
    made = copied(merged)
    if live is not None:
        _note_last_applied(made, applied, write)
    made["metadata"]["managedFields"] = encode(managers)
    if not made["metadata"]["managedFields"]:
        del made["metadata"]["managedFields"]
    return settled(live, made)


def _beyond_last_applied(
    found: list[tuple[Manager, FieldSet]], live: JsonObject | None, write: _Write
) -> list[tuple[Manager, FieldSet]]:
    """Conflicts without those about fields that kubectl's client-side apply declared: kubectl takes them over silently."""
    text = ((live or {}).get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED)
    if write.manager.name != "kubectl" or not text:
        return found
    try:
        declared = fields_of(write.types.root, json.loads(text))
    except (ValueError, AttributeError, TypeError):
        return found
    return [(manager, rest) for manager, fields in found if (rest := fields.difference(declared))]


def _undated(managers: Managers, manager: Manager, before: Owned | None) -> Managers:
    """An apply that changes no field keeps the time of the manager's last one, if there was one."""
    if manager not in managers:
        return managers
    return {**managers, manager: replace(managers[manager], time=before.time if before is not None else "")}


def _stored(live: JsonObject | None, applied: JsonObject) -> JsonObject:
    return (
        {"apiVersion": applied["apiVersion"], "kind": applied["kind"], "metadata": {}} if live is None else plain(live)
    )


def _managers(live: JsonObject | None, write: _Write) -> Managers:
    """Stored owners; those of an object that was never tracked go to `before-first-apply`."""
    if live is None:
        return {}
    managers = known(decoded(live), write.version, write.types)
    if managers or live["metadata"].get("managedFields"):
        return managers
    everything = difference(write.types.root, {"metadata": {}}, plain(live)).taken
    return cleaned(
        {Manager(BEFORE_FIRST_APPLY, UPDATE, "", write.version): Owned(everything, write.version, write.time)}
    )


def _applied(
    stored: JsonObject, wanted: JsonObject, write: _Write, managers: Managers
) -> tuple[JsonObject, Managers, Difference]:
    """The merged object without what was given up, the owners with the new claim, and what changed."""
    root = write.types.root
    merged = merge(root, stored, wanted)
    before = managers.get(write.manager)
    claim = fields_of(root, wanted).difference(UNOWNED)
    claimed = {**managers, write.manager: Owned(claim, write.version, write.time)}
    if before is not None and not claim.covers(before.fields):
        merged = _prune(merged, before.fields, claimed, write.types)
    return merged, claimed, difference(root, stored, merged)


def _prune(merged: JsonObject, last: FieldSet, managers: Managers, types: TypeMap) -> JsonObject:
    """Takes away what the manager owned and no longer claims, except what others own and what lies below it unowned."""
    root = types.root
    named_last = with_named(root, last)
    named_last = FieldSet(named_last.members - {"f:metadata"}, named_last.children)  # the server's own part stays
    bare = remove(root, merged, named_last)
    owned = with_named(root, union_of(managers.values()))
    whole = with_named(root, everything(types, merged))
    kept = with_named(root, everything(types, bare))
    bare = remove(root, merged, whole.difference(kept).difference(owned))
    kept = with_named(root, everything(types, bare))
    pruned: JsonObject = remove(root, merged, whole.difference(kept).intersection(named_last))
    return pruned


def everything(types: TypeMap, obj: Mapping[str, Any]) -> FieldSet:
    """All fields that an object has; system fields are never given up."""
    return fields_of(types.root, obj)


def _note_last_applied(made: JsonObject, applied: JsonObject, write: _Write) -> None:
    """kubectl's annotation follows its server-side applies, so that people may return to client-side apply."""
    annotations = made["metadata"].get("annotations") or {}
    if write.manager.name == "kubectl" and not write.manager.subresource and LAST_APPLIED in annotations:
        annotations[LAST_APPLIED] = (
            json.dumps(applied, sort_keys=True, separators=(",", ":"), ensure_ascii=False) + "\n"
        )


def _title(obj: Mapping[str, Any]) -> str:
    metadata, version = obj.get("metadata") or {}, str(obj.get("apiVersion"))
    full = version if "/" in version else f"/{version}"
    return f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {full}, Kind={obj.get('kind')}"
