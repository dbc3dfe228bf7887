"""Finds the instance and the counterpart of a group, an API or a user; writes nothing.

Enters: the world, an object. Leaves: parts of a snapshot. It decides nothing: an error becomes a Trouble, an answer a fact.
Source: spec/pocketid.md 3.3, 3.14; decisions, Pocket-ID 3; contracts of issue 5, one paged list an instance.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Generic, Literal, TypeVar

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.runtime.room import Event
from moorage.runtime.world import World
from moorage.schema.kind import Kind

from . import metrics
from .holding import age, has_it
from .instance.types import KIND as INSTANCE
from .listings import Identified, Listing
from .oidcclient.types import KIND as CLIENT
from .powers import Birth, is_newborn
from .reach import NotReachable, facts_of, reach
from .references import BoundInstance
from .rest import Forbidden, NotFound, PocketIDError, RateLimited, ServerFailed, Unauthorized, Unreachable
from .selection import NotSelected, bound_instance, counts_at, select, trusts
from .sibling import REFUSED_POLL, Bond, Sibling, Trouble, may_be_unfinished

_DIRECTORY: Final = ("ldap_user_update", "ldap_user_group_update")
T = TypeVar("T", bound=Identified)
Seen = TypeVar("Seen", bound=Sibling[Any, Any])


def trouble_of(error: PocketIDError) -> Trouble:
    """How long an error keeps us from trying again: seconds when it may pass by itself, minutes when a person must act."""
    match error:
        case RateLimited():
            return Trouble("Pocket-ID asks us to slow down (429)", after=error.wait, stops=True)
        case Unreachable() | ServerFailed():
            return Trouble(str(error), stops=True)
        case Unauthorized():
            return Trouble(str(error), after=REFUSED_POLL, stops=True)
        case Forbidden():
            return Trouble(str(error), after=REFUSED_POLL, refused_by_directory=error.reason in _DIRECTORY)
    return Trouble(str(error), after=REFUSED_POLL)


def bond_of(world: World, resource: Any) -> Bond:
    """The instance that the selector names; of a terminating object the one that it is bound to."""
    instances = world.cache.list(INSTANCE.resource)
    bound: BoundInstance | None = resource.status.instance
    if resource.metadata.deletion_timestamp:
        there = bound_instance(bound, instances)
        if there is None:
            return Bond(fault="the instance is gone")
        return replace(_bond(world, there, None), trusts=trusts(there, resource.metadata.namespace))
    chosen = select(resource.spec.instance_selector, resource.metadata.namespace, instances, bound)
    if isinstance(chosen, NotSelected):
        return Bond(fault=chosen.why)
    bond = _bond(world, chosen.instance, chosen.left)
    bond = replace(bond, trusts=trusts(chosen.instance, resource.metadata.namespace))
    return replace(bond, ready=False, why="it is being deleted") if is_terminating(chosen.instance) else bond


def _bond(world: World, instance: JsonObject, left: BoundInstance | None) -> Bond:
    facts, client = facts_of(instance), reach(world, instance)
    named = BoundInstance(namespace=facts.key.namespace, name=facts.key.name, url=facts.url)
    bond = Bond(named, ready=facts.ready, why=facts.why, left=left, issuer=facts.issuer, leaves=facts.leaves)
    if isinstance(client, NotReachable):
        return replace(bond, why=client.why) if facts.ready else bond
    return replace(bond, client=client)


@dataclass(frozen=True)
class Search(Generic[T]):
    """How to find a counterpart: the shared list, who reads it and how to fill it, one by its id, the one that would be adopted."""

    listing: Listing[T]
    reader: str
    every: Callable[[], Awaitable[Iterable[T]]]
    one: Callable[[str], Awaitable[T]]
    fits: Callable[[T], bool]


async def find(world: World, seen: Seen, search: Search[T]) -> Seen:
    """The snapshot with the counterpart: by the known id, else by what it would be adopted for.

    What the shared list does not know is asked for by its id before it counts as deleted.
    """
    try:
        items = await search.listing.get(search.reader, search.every, world.now(), seen.resync)
        if seen.known is not None:
            found = items.get(seen.known)
            if found is not None:
                return replace(seen, found=found)
            try:
                return replace(seen, found=_noted(search, await search.one(seen.known)), fresh=True)
            except NotFound:
                seen = replace(seen, lost=True)
        return replace(seen, found=next((item for item in items.values() if search.fits(item)), None))
    except PocketIDError as error:
        return replace(seen, look=trouble_of(error))


async def look_again(seen: Seen, search: Search[T]) -> Seen:
    """The counterpart as the server has it now; the shared list is a moment old, and a write needs more."""
    if seen.found is None or seen.fresh:
        return seen
    try:
        return replace(seen, found=_noted(search, await search.one(seen.found.id)), fresh=True)
    except NotFound:
        search.listing.forget(seen.found.id)
        return replace(seen, found=None, lost=seen.known is not None)
    except PocketIDError as error:
        return replace(seen, look=trouble_of(error))


def _noted(search: Search[T], item: T) -> T:
    search.listing.note(item)
    return item


@dataclass(frozen=True, slots=True)
class Noun:
    """How a kind's counterpart is called: in sentences, in event reasons; where the status keeps its id; what it is shown by, and for what."""

    kind: Kind[Any]
    word: str
    reason: str
    field: str
    shown: str = "name"
    purpose: str = ""


def remembered(seen: Seen, id: str | None, noun: Noun) -> Seen:
    """The snapshot with the id that the status knows; after a move it is an id of the old instance, which is told."""
    left = seen.bond.left
    if left is None:
        return replace(seen, known=id)
    if id is None:
        return seen
    stays = f"{noun.word} {id} stays at PocketIDInstance {left.namespace}/{left.name}"
    return replace(seen, happened=(*seen.happened, Event("Normal", "LeftBehind", stays)))


def recognised(world: World, seen: Seen, noun: Noun) -> Seen:
    """The snapshot with what there is to say of a counterpart that was found or lost: gone, somebody else's, or adopted just now."""
    if seen.look is not None:
        return seen
    if seen.lost:
        seen = replace(seen, known=None, happened=(*seen.happened, _lost(seen, noun)))
    if seen.found is None:
        return seen
    if rival := _rival(world, seen, noun):
        return replace(seen, rival=rival)
    if seen.known is not None:
        return seen
    return replace(seen, happened=(*seen.happened, became(noun, seen.found, "adopted")))


async def unfinished(world: World, seen: Seen, search: Search[Any], noun: Noun, birth: Birth) -> Seen:
    """The snapshot of a resource on its way out, with the counterpart whose making was not answered: what can only be ours is known from now on.

    What may be ours or anybody's is told.
    """
    if not may_be_unfinished(seen):
        return seen
    search.listing.expire()
    seen = await find(world, seen, search)
    there = seen.found
    if there is None:
        return seen
    rival = _rival(world, seen, noun)
    if is_newborn(seen, birth) and not rival:
        return replace(seen, known=there.id)
    seen = replace(seen, found=None)
    if rival or not seen.bond.trusts:
        return seen
    told = f"{noun.word} {getattr(there, noun.shown)!r} (id {there.id}) may be there for this resource, whose status has no id: it stays; delete it by hand if it is not wanted"
    return replace(seen, happened=(*seen.happened, Event("Warning", "LeftBehind", told)))


def _lost(seen: Sibling[Any, Any], noun: Noun) -> Event:
    """Somebody deleted the counterpart, or the instance was pointed at another server."""
    here, bound = seen.bond.instance, seen.resource.status.instance
    if here is not None and bound is not None and bound.url not in ("", here.url):
        told = f"{noun.word} {seen.known} is not at {here.url}, where the instance points now; at {bound.url} it stays"
        return Event("Warning", "InstanceMoved", told)
    metrics.EXTERNAL_DELETIONS.labels(noun.kind.kind).inc()
    return Event("Warning", "DeletedElsewhere", f"{noun.word} {seen.known} is gone from Pocket-ID; it is made again")


def became(noun: Noun, item: Any, what: Literal["created", "adopted"]) -> Event:
    """The event of a counterpart that is ours from now on; it is counted."""
    metrics.operated(noun.kind.kind, what)
    purpose = f" for {getattr(item, noun.purpose)}" if noun.purpose else ""
    text = f"{what} {noun.word} {getattr(item, noun.shown)!r}{purpose} (id {item.id})"
    return Event("Normal", f"{noun.reason}{what.capitalize()}", text)


def _rival(world: World, seen: Sibling[Any, Any], noun: Noun) -> str:
    """Why a counterpart is not ours: another resource of the kind has it in its status, and had it first; "" when none does."""
    resource, id = seen.resource, seen.found.id if seen.found else ""
    instances = world.cache.list(INSTANCE.resource)
    here = bound_instance(seen.bond.instance, instances)
    mine = (resource.metadata.creation_timestamp or "", resource.metadata.uid)
    for other in world.cache.list(noun.kind.resource):
        if here is None or key_of(other) == resource.key or not has_it(other, noun.field, here, instances, id):
            continue
        if seen.known != id or age(other) < mine:
            return f"{noun.kind.kind} {key_of(other)} has it already; name another one here, or delete one of the two"
    return ""


def clients_naming(world: World, bond: Bond, index: str, key: Key) -> tuple[str, ...]:
    """PocketIDOIDCClients of the same instance that stand in an index under a key; those on their way out hold nothing."""
    here = bound_instance(bond.instance, world.cache.list(INSTANCE.resource))
    found = world.cache.list(CLIENT.resource, index=index, value=str(key))
    return tuple(sorted(str(key_of(item)) for item in found if not is_terminating(item) and counts_at(item, here)))
