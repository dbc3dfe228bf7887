"""Ownership of ordinary writes: create, update and patch.

Enters: the object before and after. Leaves: the object after, with its `metadata.managedFields`. Must not change anything else.
Source: API concepts, "Field management"; entries of operation Update.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.apiserver.apply.compare import difference
from moorage.apiserver.apply.fieldmanagers import UPDATE, Manager, Managers, Owned, decode, encode
from moorage.apiserver.apply.fieldset import FieldSet
from moorage.apiserver.apply.ownership import cleaned, hand_over, ignored_fields, known
from moorage.apiserver.apply.types import TypeMap
from moorage.apiserver.apply.values import same
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject

_NOBODY = Manager("", UPDATE)


def track_update(
    old: JsonObject | None,
    new: JsonObject,
    *,
    manager: str,
    types: TypeMap,
    now: str,
    subresource: str = "",
    api_version: str = "",
) -> JsonObject:
    """The new object with owners: the manager takes over what it changed; what went away is owned by nobody.

    Args:
        old: the stored object, or None on create.
        new: the object as sent or patched, defaulted, before the kind's strategy fills in generated fields.
        now: RFC 3339 UTC time with whole seconds.
        api_version: the version that the writer spoke; `new`'s own by default.

    `managedFields: [{}]` in `new` forgets all owners. Entries in `new` replace the stored ones, as far as they can be read.
    """
    version = api_version or new["apiVersion"]
    if new["metadata"].get("managedFields") == [{}]:
        return _with(new, [])
    managers = _managers(old, new, subresource)
    if old is not None and not managers:
        return _with(new, [])
    before = _blank(types, new) if old is None else old
    changed = difference(types.root, plain(before), plain(new)).outside(ignored_fields(types, subresource))
    managers = hand_over(known(managers, version, types), changed, _NOBODY)
    if taken := changed.taken:
        writer = Manager(manager, UPDATE, subresource, version)
        mine = managers[writer].fields if writer in managers else FieldSet()
        if cleaned({writer: Owned(taken, version)}):
            managers[writer] = Owned(mine.union(taken), version, now)
    return settled(old, _with(new, encode(cleaned(managers))))


def settled(old: JsonObject | None, new: JsonObject) -> JsonObject:
    """`new`, or the same with the old managedFields where they and the object differ in nothing but times.

    A write that changes nothing must not change the object by noting when it happened.
    """
    if old is None or not same(untimed(old), untimed(new)):
        return new
    return _with(new, old["metadata"].get("managedFields") or [])


def untimed(obj: Mapping[str, Any]) -> JsonObject:
    """The object without the times of its managedFields."""
    metadata = dict(obj["metadata"])
    entries = metadata.pop("managedFields", None) or ()
    metadata["managedFields"] = [{name: value for name, value in item.items() if name != "time"} for item in entries]
    return {**obj, "metadata": metadata}


def plain(obj: Mapping[str, Any]) -> JsonObject:
    """The object without its managedFields."""
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name != "managedFields"}
    return {**obj, "metadata": metadata}


def _with(obj: JsonObject, entries: list[JsonObject]) -> JsonObject:
    made = plain(copied(obj))
    if entries:
        made["metadata"]["managedFields"] = copied(entries)
    return made


def _blank(types: TypeMap, new: JsonObject) -> JsonObject:
    """A new object of the type, with the nulls that a built-in prints for what was never set."""
    return {**types.blank, **{name: None for name, value in new.items() if value is None and types.builtin}}


def _managers(old: JsonObject | None, new: JsonObject, subresource: str) -> Managers:
    """Owners that the writer sent, else the stored ones; a subresource never changes them."""
    if not subresource and (sent := decoded(new)):
        return sent
    return decoded(old) if old is not None else {}


def decoded(obj: Mapping[str, Any]) -> Managers:
    """The managers of an object; none if its entries cannot be read."""
    try:
        return decode(obj["metadata"].get("managedFields"))
    except (ValueError, AttributeError, TypeError):
        return {}
