"""Reads everything that one pass over an instance needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. One request to the server: the version, which only the owner of a valid key is told; and the list of
clients, which only an administrator's key is shown, as the clients of the instance share it. A server that is deployed is asked once its pod runs.
Source: spec/pocketid.md 2.1.
"""

from __future__ import annotations

from datetime import datetime

from moorage.core.meta import JsonObject, Key
from moorage.pocketid import metrics
from moorage.pocketid.reach import Lists, NotReachable, facts_of, forget_unnamed, lists_of, reach
from moorage.pocketid.rest import Forbidden, PocketID, PocketIDError, RateLimited, ServerFailed, Unreachable
from moorage.pocketid.rest_errors import Nonsense
from moorage.pocketid.settings import settings
from moorage.runtime.projection import rolled_out
from moorage.runtime.world import World

from .crowd import crowd_of
from .observe_bound import bound_to, keys_for
from .observe_deployed import children
from .render import address
from .seen import Bound, Look, Seen, Trouble, Unknown
from .types import KIND


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one instance, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        metrics.forget(KIND.kind, key)
        forget_unnamed(world)
        return None
    instance, resync, now = KIND.parse(obj), settings().resync, world.now()
    bound = bound_to(world, key) if instance.metadata.deletion_timestamp else Bound()
    keys = keys_for(world, obj)
    if instance.spec.external is not None:
        fault, look = await _asked(world, obj)
        crowd = crowd_of(world, obj)
        return Seen(instance, facts_of(obj).url, fault, look, resync, now, None, bound, keys, crowd)
    here = await children(world, instance)
    runs = rolled_out(here.child(instance.spec.deployment_type, instance.metadata.name))
    fault, look = await _asked(world, obj) if runs else ("", None)
    return Seen(instance, address(instance), fault, look, resync, now, here, bound, keys, crowd_of(world, obj))


async def _asked(world: World, obj: JsonObject) -> tuple[str, Look | None]:
    """Why nobody could be asked, and what the server said."""
    client = reach(world, obj)
    if isinstance(client, NotReachable):
        return client.why, None
    return "", await _look(client, lists_of(world, client.url), world.now())


async def _look(client: PocketID, lists: Lists, now: datetime) -> Look:
    try:
        version = await client.get_current_version()
        return await _shown(client, lists, now) or version if version.is_supported else version
    except RateLimited as error:
        return Unknown(Trouble.UNREACHABLE, str(error), error.wait)
    except (Unreachable, ServerFailed) as error:
        return Unknown(Trouble.UNREACHABLE, str(error))
    except PocketIDError as error:
        return Unknown(Trouble.REFUSED, str(error))


async def _shown(client: PocketID, lists: Lists, now: datetime) -> Unknown | None:
    """Why the key may not what every object of the instance needs; None when it may. With the key of a plain user anybody could name any server, and be Ready.

    Raises:
        PocketIDError: nobody answered.
    """
    try:
        await lists.clients.get(client.reader, client.outline_oidc_clients, now, settings().resync)
    except Forbidden as error:
        return Unknown(Trouble.FORBIDDEN, str(error))
    except Nonsense:
        return None  # its first page was shown; that the whole is too much is told where it is needed
    return None
