"""Who has a counterpart at a server already, and which of two resources came first: one rule for all kinds.

Enters: resources and instances as they stand on the wire. Leaves: yes or no, and an order. Pure. What a status tells of another instance counts
where that instance is trusted, or is Ready at our address, and what it tells was seen there: its key is an administrator's. Whoever may create an instance
can have a server of their own say any id, and name the address of any other, before or afterwards, with a key that may do nothing there.
Source: spec/pocketid.md 3.15.4; case B74; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.core.meta import JsonObject, is_terminating, key_of

from .selection import home, is_reached_at, is_ready, one_address, one_server, trusts


def has_it(
    obj: JsonObject, field: str, here: JsonObject, instances: Sequence[JsonObject], id: str | None = None
) -> bool:
    """Whether a resource that stays has a counterpart at the server of an instance.

    Args:
        field: where the status of its kind keeps the id.
        here: the instance.
        id: of the counterpart; None: any.
    """
    told = (obj.get("status") or {}).get(field)
    there = home(obj, instances)
    if not told or id not in (None, told) or is_terminating(obj) or there is None:
        return False
    return was_seen(here, there, obj["status"].get("instance") or {}) and one_server(here, there, told)


def was_seen(here: JsonObject, there: JsonObject, told: JsonObject) -> bool:
    """Whether what a status tells of another instance was seen at the server of this one.

    Args:
        told: how the status names that instance.
    """
    return _is_trusted(here, there) or (believes(here, there) and is_reached_at(here, told.get("url") or ""))


def believes(here: JsonObject, there: JsonObject) -> bool:
    """Whether an instance takes another's word for what is at its server: its own, of a namespace that it trusts, and of one that administers it, too."""
    return _is_trusted(here, there) or (is_ready(there) and one_address(here, there))


def _is_trusted(here: JsonObject, there: JsonObject) -> bool:
    return key_of(there) == key_of(here) or trusts(here, key_of(there).namespace)


def age(obj: JsonObject) -> tuple[str, str]:
    """An order in which the older of two resources comes first; never the same for two."""
    return str(obj["metadata"].get("creationTimestamp") or ""), str(obj["metadata"].get("uid") or "")
