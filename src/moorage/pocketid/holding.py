"""Who has a counterpart at a server already, and which of two resources came first: one rule for all kinds.

Enters: resources and instances as they stand on the wire. Leaves: yes or no, and an order. Pure. What a status tells of another instance counts
where that instance is trusted: whoever may create one can have a server of their own say any id, and name the address of any other, before or afterwards.
Source: spec/pocketid.md 3.15.4; case B74; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from collections.abc import Sequence

from moorage.core.meta import JsonObject, is_terminating, key_of

from .selection import home, one_server, trusts


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
    return believes(here, there) and one_server(here, there, told)


def believes(here: JsonObject, there: JsonObject) -> bool:
    """Whether an instance takes another's word for what is at its server: its own, and of a namespace that it trusts."""
    return key_of(there) == key_of(here) or trusts(here, key_of(there).namespace)


def age(obj: JsonObject) -> tuple[str, str]:
    """An order in which the older of two resources comes first; never the same for two."""
    return str(obj["metadata"].get("creationTimestamp") or ""), str(obj["metadata"].get("uid") or "")
