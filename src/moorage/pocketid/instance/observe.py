"""Reads everything that one pass over an instance needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. One request: the version, which only the owner of a valid key is told.
Source: spec/pocketid.md 2.1.
"""

from __future__ import annotations

from moorage.core.meta import Key
from moorage.pocketid import metrics
from moorage.pocketid.reach import NotReachable, facts_of, reach
from moorage.pocketid.rest import (
    PocketID,
    PocketIDError,
    RateLimited,
    ServerFailed,
    Unreachable,
)
from moorage.pocketid.settings import settings
from moorage.runtime.world import World

from .seen import Look, Seen, Trouble, Unknown
from .types import KIND


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one instance, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        metrics.forget(KIND.kind, key)
        return None
    instance, url, resync = KIND.parse(obj), facts_of(obj).url, settings().resync
    if instance.spec.external is None:
        return Seen(instance, url, "", None, resync)
    client = reach(world, obj)
    if isinstance(client, NotReachable):
        return Seen(instance, url, client.why, None, resync)
    return Seen(instance, url, "", await _look(client), resync)


async def _look(client: PocketID) -> Look:
    try:
        return await client.get_current_version()
    except RateLimited as error:
        return Unknown(Trouble.UNREACHABLE, str(error), error.retry_after)
    except (Unreachable, ServerFailed) as error:
        return Unknown(Trouble.UNREACHABLE, str(error))
    except PocketIDError as error:
        return Unknown(Trouble.REFUSED, str(error))
