"""Who has a counterpart at a server already, and which of two resources came first: one rule for all kinds.

Enters: resources and instances as they stand on the wire. Leaves: yes or no, and an order. Pure. A status tells what was seen at the address that
stands beside it: whoever may create an instance can have a server of their own say any id, and point the instance elsewhere afterwards.
Source: spec/pocketid.md 3.15.4; case B74; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.core.meta import JsonObject, is_terminating, key_of

from .selection import home, is_reached_at, one_server, trusts


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
    if not told or id not in (None, told) or is_terminating(obj) or there is None or not one_server(here, there, told):
        return False
    return was_seen(here, there, obj["status"].get("instance") or {})


def was_seen(here: JsonObject, there: JsonObject, told: JsonObject) -> bool:
    """Whether what a status tells of an instance was seen at the server of another.

    Args:
        told: how the status names the instance.
    """
    same = key_of(there) == key_of(here)
    return same or trusts(here, key_of(there).namespace) or is_reached_at(here, told.get("url") or "")


def age(obj: JsonObject) -> tuple[str, str]:
    """An order in which the older of two resources comes first; never the same for two."""
    return str(obj["metadata"].get("creationTimestamp") or ""), str(obj["metadata"].get("uid") or "")
