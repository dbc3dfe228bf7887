"""Reads everything that one pass over an API needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. The shared list tells everything, so a steady API costs no request of its own.
Source: spec/pocketid.md 2.3.
"""

from __future__ import annotations

from typing import Final

from moorage.core.meta import Key
from moorage.core.outcome import Outcome
from moorage.pocketid import metrics
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import Api, PocketID, audience
from moorage.pocketid.selection import admits
from moorage.pocketid.settings import settings
from moorage.pocketid.sibling_work import (
    Noun,
    Search,
    bond_of,
    clients_naming,
    find,
    look_again,
    recognised,
    remembered,
)
from moorage.runtime.room import Released
from moorage.runtime.world import World

from .decide import decide
from .powers import overreach
from .seen import Seen
from .types import KIND

BY_NAMED_API: Final = "pocketid-client-by-named-api"
NOUN: Final = Noun(KIND, "API", "API", "apiID", purpose="resource")


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one API, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        metrics.forget(KIND.kind, key)
        return None
    api = KIND.parse(obj)
    bond = bond_of(world, api)
    naming = clients_naming(world, bond, BY_NAMED_API, key)
    admitted = tuple(name for name in naming if admits(obj, name.partition("/")[0]))
    seen = Seen(api, bond, settings().resync, referring=admitted)
    seen = remembered(seen, api.status.api_id, NOUN)
    if bond.client is None or not bond.ready or api.metadata.deletion_timestamp:
        return seen
    return await _asked(world, seen, bond.client)


async def _asked(world: World, seen: Seen, client: PocketID) -> Seen:
    search: Search[Api] = Search(
        lists_of(world, client.url).apis,
        client.list_apis,
        client.get_api,
        lambda api: audience(api.resource) == seen.audience,
    )
    seen = await find(world, seen, search)
    if overreach(seen):
        return seen
    seen = recognised(world, seen, NOUN)
    if isinstance(decide(seen), Outcome | Released):
        return seen
    return await look_again(seen, search)
