"""Reads everything that one pass over an API needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. The shared list tells everything, so a steady API costs no request of its own; one that names its namespaces costs one,
who holds something on it.
Source: spec/pocketid.md 2.3.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from moorage.core.meta import Key
from moorage.core.outcome import Outcome
from moorage.pocketid import metrics
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.rivals import BY_CLAIM
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import Api, NotFound, PocketID, PocketIDError, audience
from moorage.pocketid.rest_types import Holder
from moorage.pocketid.selection import admits, bound_instance
from moorage.pocketid.settings import settings
from moorage.pocketid.sibling_observe import (
    Noun,
    Search,
    bond_of,
    clients_naming,
    find,
    look_again,
    recognised,
    remembered,
    trouble_of,
    unfinished,
)
from moorage.runtime.room import Released
from moorage.runtime.world import World

from .barring import Claimed, is_barred
from .decide import decide
from .powers import BIRTH, overreach
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
    if bond.client is None or not bond.ready:
        return seen
    search = _search(world, seen, bond.client)
    if api.metadata.deletion_timestamp:
        return await unfinished(world, seen, search, NOUN, BIRTH)
    return await _asked(world, seen, bond.client, search)


def _search(world: World, seen: Seen, client: PocketID) -> Search[Api]:
    return Search(
        lists_of(world, client.url).apis,
        client.reader,
        client.list_apis,
        client.get_api,
        lambda api: audience(api.resource) == seen.audience,
    )


async def _asked(world: World, seen: Seen, client: PocketID, search: Search[Api]) -> Seen:
    seen = await find(world, seen, search)
    if overreach(seen):
        return seen
    seen = await _with_barred(world, recognised(world, seen, NOUN), client)
    if isinstance(decide(seen), Outcome | Released):
        return seen
    return await look_again(seen, search)


async def _with_barred(world: World, seen: Seen, client: PocketID) -> Seen:
    """The snapshot with the clients that may hold nothing, while the API names its namespaces; an instance that leaves everything leaves that, too."""
    if seen.found is None or seen.rival or seen.bond.leaves or seen.resource.spec.allowed_namespaces is None:
        return seen
    try:
        holders = await client.list_api_holders(seen.found.id)
    except NotFound:
        return seen
    except PocketIDError as error:
        return replace(seen, look=trouble_of(error))
    return replace(seen, barred=_barred(world, seen, holders))


def _barred(world: World, seen: Seen, holders: tuple[Holder, ...]) -> tuple[Holder, ...]:
    instances = world.cache.list(INSTANCE.resource)
    api, here = world.cache.get(KIND.resource, seen.resource.key), bound_instance(seen.bond.instance, instances)
    if api is None or here is None:
        return ()
    claimed = Claimed(lambda claim: world.cache.list(CLIENT.resource, index=BY_CLAIM, value=claim), here, instances)
    return tuple(item for item in holders if is_barred(api, item, claimed))
