"""What is too much for the list that all clients of a server share, and whose it is: for those who read the instance, who are no tenants.

Enters: the world and an instance. Leaves: one sentence, or nothing. It asks the server nothing: it looks at the list as it is kept.
"""

from __future__ import annotations

from collections import Counter

from moorage.core.meta import JsonObject, key_of
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.reach import facts_of, lists_of
from moorage.pocketid.selection import home, one_server
from moorage.runtime.world import World

from .types import KIND


def crowd_of(world: World, instance: JsonObject) -> str:
    """How many clients are looked at one by one, and which namespace has the most of them; "" while the list holds them all."""
    url = facts_of(instance).url
    sketched = lists_of(world, url).clients.those(lambda client: not client.whole) if url else ()
    if not sketched:
        return ""
    ids = {client.id for client in sketched}
    said = f"{len(ids)} clients are too large for the list that all share and are looked at one by one"
    spaces = Counter(_spaces(world, instance, ids))
    if not spaces:
        return said
    space, count = min(spaces.items(), key=lambda item: (-item[1], item[0]))
    return f"{said}, {count} of them of namespace {space}: a ResourceQuota on count/{CLIENT.resource.plural}.{CLIENT.resource.group} bounds them"


def _spaces(world: World, instance: JsonObject, ids: set[str]) -> list[str]:
    """The namespace of each resource that has one of them at this server."""
    instances = world.cache.list(KIND.resource)
    return [
        key_of(item).namespace
        for item in world.cache.list(CLIENT.resource)
        if (item.get("status") or {}).get("clientID") in ids
        and (there := home(item, instances)) is not None
        and one_server(instance, there)
    ]
