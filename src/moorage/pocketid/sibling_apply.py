"""Performs the plans that groups, APIs and users have in common, and notes what became of a kind's own.

Enters: the world, a snapshot, a plan. Leaves: the snapshot with the answer. It decides nothing: an error becomes a Trouble, an answer a fact.
Source: spec/pocketid.md 3.14; contracts of issue 5.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, Literal, TypeVar

from moorage.core.meta import JsonObject
from moorage.runtime.room import Event
from moorage.runtime.world import World
from moorage.schema.kind import Kind

from . import metrics
from .listings import Identified, Listing
from .rest import NotFound, PocketIDError
from .sibling import Mark, Record, Sibling
from .sibling_observe import Noun, became, trouble_of

T = TypeVar("T", bound=Identified)
Seen = TypeVar("Seen", bound=Sibling[Any, Any])


async def perform(
    world: World, kind: Kind[Any], seen: Seen, plan: Any, act: Callable[[World, Any, Any], Awaitable[Any]]
) -> Seen:
    """Perform a shared plan, or the kind's own by `act`; a refusal becomes a trouble of that plan."""
    match plan:
        case Record():
            return await _patched(world, kind, seen, {"status": dict(plan.fields)}, "status")
        case Mark(finalizer, on):
            others = [item for item in seen.resource.metadata.finalizers if item != finalizer]
            meta = {"finalizers": [*others, finalizer] if on else others}
            return await _patched(world, kind, seen, {"metadata": meta}, "")
    world.wrote()
    try:
        done: Seen = await act(world, seen, plan)
    except PocketIDError as error:
        return replace(seen, failed=(*seen.failed, (plan, trouble_of(error))))
    return replace(done, tried=(*done.tried, plan))


def taken(noun: Noun, seen: Seen, listing: Listing[T], item: T, ours: Literal["created", "adopted"]) -> Seen:
    """The snapshot after a create: the counterpart is there, made by us or taken over."""
    listing.note(item)
    return replace(seen.with_found(item, became(noun, item, ours)), known=item.id)


def updated(noun: Noun, seen: Seen, listing: Listing[T], item: T, what: str) -> Seen:
    """The snapshot after a change; `what` says what was done."""
    listing.note(item)
    metrics.operated(noun.kind.kind, "updated")
    return seen.with_found(item, Event("Normal", f"{noun.reason}Updated", f"{what} (id {item.id})"))


async def deleted(
    noun: Noun, seen: Seen, listing: Listing[T], id: str, delete: Callable[[str], Awaitable[None]]
) -> Seen:
    """Delete the counterpart; one that is gone already is as good."""
    try:
        await delete(id)
    except NotFound:
        return replace(seen, gone=True)
    finally:
        listing.forget(id)
    metrics.operated(noun.kind.kind, "deleted")
    event = Event("Normal", f"{noun.reason}Deleted", f"deleted {noun.word} (id {id})")
    return replace(seen, gone=True, happened=(*seen.happened, event))


async def _patched(world: World, kind: Kind[Any], seen: Seen, patch: JsonObject, subresource: str) -> Seen:
    """The snapshot with the resource as it is now; guarded, so that the pass is run again when somebody else wrote."""
    meta = {"resourceVersion": seen.resource.metadata.resource_version, **patch.get("metadata", {})}
    stored = await world.patch(kind.resource, seen.resource.key, {**patch, "metadata": meta}, subresource=subresource)
    return replace(seen, resource=kind.parse(stored))
