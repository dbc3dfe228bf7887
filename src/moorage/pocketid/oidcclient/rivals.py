"""Which other resource claims the same client, and which of the two is held back.

Enters: this resource and others as they stand on the wire. Leaves: the rival, and whether it comes first. Pure. The one that has the client
already comes first, then one that the instance trusts, then the older one. Source: spec/pocketid.md 3.15.4; case B74; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.pocketid.holding import age, believes, has_it, was_seen
from moorage.pocketid.rest_types import nfc
from moorage.pocketid.selection import home, is_ready, one_server, trusts

BY_CLAIM: Final = "pocketid-client-by-claim"


@dataclass(frozen=True, slots=True)
class Rival:
    """Another resource that claims the client; `first`: the client is the other's."""

    key: Key
    first: bool


def claims(obj: JsonObject) -> Iterator[str]:
    """What a resource claims, for an index: its ids, and its name as long as nothing is made where it is to be."""
    spec, known = obj["spec"], _known(obj)
    yield from (f"id:{id}" for id in sorted(_ids(obj)))
    if not spec.get("clientID") and (not known or _moving(obj)):
        yield f"name:{shown_name(obj)}"


def shown_name(obj: JsonObject) -> str:
    """The declared name, as the server stores it."""
    return nfc(str(obj["spec"].get("name") or obj["metadata"]["name"]))


def rival_of(obj: JsonObject, others: Iterable[JsonObject], instances: Sequence[JsonObject]) -> Rival | None:
    """The foremost of those that claim the same at the same server; one that is being deleted gives way.

    It counts at our own instance, at one of a namespace that ours trusts, and at one that is Ready at our address, so that its key is an administrator's;
    one that has no client yet only where that is Ready. Else whoever may create an instance, with a key of a plain user or none to the server, could
    keep names from everybody. Of two administrators' instances each would adopt, in turn, what the other made.
    """
    mine, here = obj["metadata"].get("uid"), home(obj, instances)
    if here is None:
        return None
    rivals = []
    for item in others:
        if item["metadata"].get("uid") == mine or is_terminating(item):
            continue
        has, shared = has_client(item, here, instances), _ids(obj) & _ids(item)
        for there in _places(item, instances):
            counts = believes(here, there) and (has or there is here or is_ready(there))
            if counts and one_server(here, there, *shared):
                rivals.append((_rank(item, there, has=has), key_of(item)))
    first = min(rivals, default=None)
    return None if first is None else Rival(first[1], first[0] < _rank(obj, here, has=bool(_known(obj))))


def _rank(obj: JsonObject, instance: JsonObject, *, has: bool) -> tuple[bool, bool, str, str]:
    """Who has the client; of those that have none, who may take over one that exists; then the older."""
    return not has, not (has or trusts(instance, obj["metadata"]["namespace"])), *age(obj)


def _ids(obj: JsonObject) -> set[str]:
    moving = (item.get("clientID") for item in _moving(obj))
    return {id for id in (obj["spec"].get("clientID"), _known(obj), *moving) if id}


def has_client(obj: JsonObject, here: JsonObject, instances: Sequence[JsonObject], id: str | None = None) -> bool:
    """Whether a resource that stays has a client at the server of an instance: where it is at home, or on its way.

    Args:
        id: of the client; None: any.
    """
    return has_it(obj, "clientID", here, instances, id) or any(
        was_seen(here, there, item["instance"]) and one_server(here, there, told)
        for item, there in _stops(obj, instances)
        if (told := item.get("clientID")) and id in (None, told) and not is_terminating(obj)
    )


def _places(obj: JsonObject, instances: Sequence[JsonObject]) -> Iterator[JsonObject]:
    """The instances where a resource has a client, or makes one."""
    at_home = home(obj, instances)
    if at_home is not None:
        yield at_home
    yield from (there for _, there in _stops(obj, instances))


def _stops(obj: JsonObject, instances: Sequence[JsonObject]) -> Iterator[tuple[JsonObject, JsonObject]]:
    """What the status tells of clients elsewhere, with the instance of each."""
    known = {key_of(item): item for item in instances}
    for item in _moving(obj):
        key = Key(item["instance"]["namespace"], item["instance"]["name"])
        if key in known:
            yield item, known[key]


def _moving(obj: JsonObject) -> Sequence[JsonObject]:
    return (obj.get("status") or {}).get("moving") or ()


def _known(obj: JsonObject) -> str | None:
    return (obj.get("status") or {}).get("clientID")
