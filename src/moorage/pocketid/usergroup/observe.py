"""Reads everything that one pass over a group needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. A steady group costs no request of its own, one that declares members one: lists tell
how many there are, not who. Source: spec/pocketid.md 2.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from moorage.core.meta import Key
from moorage.core.outcome import Outcome
from moorage.pocketid import metrics
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import Group, NotFound, PocketID, PocketIDError, User, nfc
from moorage.pocketid.settings import settings
from moorage.pocketid.sibling import Record, key_in
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
from moorage.pocketid.user.types import KIND as USER
from moorage.runtime.room import Released
from moorage.runtime.world import World

from .decide import decide
from .powers import BIRTH, overreach
from .seen import Seen
from .types import KIND

BY_NAMED_GROUP: Final = "pocketid-client-by-named-group"
NOUN: Final = Noun(KIND, "group", "Group", "groupID")


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one group, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        metrics.forget(KIND.kind, key)
        return None
    group = KIND.parse(obj)
    bond = bond_of(world, group)
    seen = Seen(group, bond, settings().resync, referring=clients_naming(world, bond, BY_NAMED_GROUP, key))
    seen = remembered(seen, group.status.group_id, NOUN)
    if bond.client is None or not bond.ready:
        return seen
    search = _search(world, seen, bond.client)
    if group.metadata.deletion_timestamp:
        return await unfinished(world, seen, search, NOUN, BIRTH)
    return await _asked(world, _with_clients(world, seen), bond.client, search)


def _search(world: World, seen: Seen, client: PocketID) -> Search[Group]:
    lists = lists_of(world, client.url)
    return Search(
        lists.groups,
        client.reader,
        client.list_user_groups,
        client.get_user_group,
        lambda group: nfc(group.name) == seen.name,
    )


async def _asked(world: World, seen: Seen, client: PocketID, search: Search[Group]) -> Seen:
    seen = await find(world, seen, search)
    if overreach(seen):
        return seen
    seen = recognised(world, seen, NOUN)
    if seen.look is None and seen.resource.spec.users is not None:
        seen = await _with_members(world, seen, client)
    if _needs_more(seen):
        seen = await look_again(seen, search)
    return seen


def _needs_more(seen: Seen) -> bool:
    """A look at the one group: it is to be written, or its members matter, or it is not known as ours yet."""
    if seen.members or seen.missing or seen.ours or seen.known is None:
        return True
    answer = decide(seen)
    return not isinstance(answer, Outcome | Released | Record)


def _with_clients(world: World, seen: Seen) -> Seen:
    """Client IDs of what the group lists; those that are not there yet are no fault of the group."""
    ids, absent, barred = [], [], []
    for ref in seen.resource.spec.allowed_oidc_clients or ():
        key = key_in(ref, seen.resource.metadata.namespace)
        obj = world.cache.get(CLIENT.resource, key)
        if key.namespace != seen.resource.metadata.namespace and not seen.bond.trusts:
            barred.append(str(key))
        elif obj is None:
            absent.append(str(key))
        elif id := (obj.get("status") or {}).get("clientID"):
            ids.append(id)
    return replace(
        seen, clients=tuple(sorted(set(ids))), no_clients=tuple(sorted(absent)), barred=tuple(sorted(barred))
    )


# --- members


async def _with_members(world: World, seen: Seen, client: PocketID) -> Seen:
    """Ids of the declared users, each known to the server, and who is missing."""
    declared = seen.resource.spec.users
    assert declared is not None
    found: set[str] = set()
    missing: list[str] = []
    try:
        users = await lists_of(world, client.url).users.get(client.reader, client.list_users, world.now(), seen.resync)
        by_name = {user.username.casefold(): user for user in users.values()}
        for name in declared.usernames or ():
            user = by_name.get(name.casefold()) or await _named(world, client, name)
            if user is None:
                missing.append(f"Pocket-ID has no user named {name!r}")
            else:
                found.add(user.id)
        ids, without = _referred(world, seen)
        missing += without
        for id in (*(declared.user_ids or ()), *ids):
            if await _exists(world, client, users, id):
                found.add(id)
            else:
                missing.append(f"Pocket-ID has no user with id {id}")
    except PocketIDError as error:
        return replace(seen, look=trouble_of(error))
    return replace(seen, members=frozenset(found), missing=tuple(missing))


async def _named(world: World, client: PocketID, name: str) -> User | None:
    user = await client.find_user_named(name)
    if user is not None:
        lists_of(world, client.url).users.note(user)
    return user


async def _exists(world: World, client: PocketID, users: Mapping[str, User], id: str) -> bool:
    if id in users:
        return True
    try:
        lists_of(world, client.url).users.note(await client.get_user(id))
    except NotFound:
        return False
    return True


def _referred(world: World, seen: Seen) -> tuple[list[str], list[str]]:
    """Ids of the PocketIDUsers that are named, and what is wrong with the others."""
    ids, wrong, bond = [], [], seen.bond.instance
    declared = seen.resource.spec.users
    for ref in (declared.user_refs if declared else None) or ():
        key = key_in(ref, seen.resource.metadata.namespace)
        obj = world.cache.get(USER.resource, key)
        status = (obj or {}).get("status") or {}
        where = status.get("instance") or {}
        if obj is None:
            wrong.append(f"PocketIDUser {key} does not exist")
        elif not status.get("userID"):
            wrong.append(f"PocketIDUser {key} is not in Pocket-ID yet")
        elif bond is not None and (where.get("namespace"), where.get("name")) != (bond.namespace, bond.name):
            wrong.append(f"PocketIDUser {key} belongs to another PocketIDInstance")
        else:
            ids.append(status["userID"])
    return ids, wrong
