"""Which other resource claims the same client, and which of the two is held back.

Enters: this resource and others as they stand on the wire. Leaves: the rival, and whether it comes first. Pure. The one that has the client
already comes first, then one that the instance trusts, then the older one. Source: spec/pocketid.md 3.15.4; case B74; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.pocketid.holding import age, has_it
from moorage.pocketid.rest_types import nfc
from moorage.pocketid.selection import home, is_ready, one_server, trusts

BY_CLAIM: Final = "pocketid-client-by-claim"


@dataclass(frozen=True, slots=True)
class Rival:
    """Another resource that claims the client; `first`: the client is the other's."""

    key: Key
    first: bool


def claims(obj: JsonObject) -> Iterator[str]:
    """What a resource claims, for an index: its ids, and its name as long as nothing is made."""
    spec, known = obj["spec"], _known(obj)
    yield from (f"id:{id}" for id in _ids(obj))
    if not spec.get("clientID") and not known:
        yield f"name:{shown_name(obj)}"


def shown_name(obj: JsonObject) -> str:
    """The declared name, as the server stores it."""
    return nfc(str(obj["spec"].get("name") or obj["metadata"]["name"]))


def rival_of(obj: JsonObject, others: Iterable[JsonObject], instances: Sequence[JsonObject]) -> Rival | None:
    """The foremost of those that claim the same at the same server; one that is being deleted gives way.

    One that has no client yet counts only where it can make one: at our own instance, or at one that is Ready. Else whoever may create an
    instance without a key to the server could keep names from everybody.
    """
    mine, here = obj["metadata"].get("uid"), home(obj, instances)
    if here is None:
        return None
    rivals = []
    for item in others:
        there = home(item, instances)
        if item["metadata"].get("uid") == mine or is_terminating(item) or there is None:
            continue
        has = has_it(item, "clientID", here, instances)
        if (has or there is here or is_ready(there)) and one_server(here, there, *(_ids(obj) & _ids(item))):
            rivals.append((_rank(item, there, has=has), key_of(item)))
    first = min(rivals, default=None)
    return None if first is None else Rival(first[1], first[0] < _rank(obj, here, has=bool(_known(obj))))


def _rank(obj: JsonObject, instance: JsonObject, *, has: bool) -> tuple[bool, bool, str, str]:
    """Who has the client; of those that have none, who may take over one that exists; then the older."""
    return not has, not (has or trusts(instance, obj["metadata"]["namespace"])), *age(obj)


def _ids(obj: JsonObject) -> set[str]:
    return {id for id in (obj["spec"].get("clientID"), _known(obj)) if id}


def _known(obj: JsonObject) -> str | None:
    return (obj.get("status") or {}).get("clientID")
