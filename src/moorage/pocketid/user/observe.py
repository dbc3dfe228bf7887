"""Reads everything that one pass over a user needs; writes nothing.

Enters: the world and a key. Leaves: a snapshot. The shared list tells everything, so a steady user costs no request of its own.
Source: spec/pocketid.md 2.4.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from moorage.core.meta import JsonObject, Key, controlled_by, is_terminating
from moorage.core.outcome import Outcome
from moorage.kube.resources import SECRETS
from moorage.pocketid import metrics
from moorage.pocketid.reach import data_text, keeper_of, lists_of
from moorage.pocketid.rest import STATIC_KEY_OWNER, PocketID, PocketIDError, User
from moorage.pocketid.settings import settings
from moorage.pocketid.sibling_observe import Noun, Search, bond_of, find, look_again, recognised, remembered, trouble_of
from moorage.runtime.room import Released
from moorage.runtime.world import World

from .decide import decide
from .keys import RECORD, Shelf, place, shelf_of
from .powers import overreach
from .seen import Seen, Values
from .types import DATA_SUFFIX, KIND, PocketIDUser, Value

KEYS_BY_USER: Final = "pocketid-key-secret-by-user"
NOUN: Final = Noun(KIND, "user", "User", "userID", "username")
_WIRE: Final = ("username", "firstName", "lastName", "email", "displayName")


def owner_of_keys(secret: JsonObject) -> Iterator[str]:
    """The uid that a Secret with keys stands under."""
    if RECORD in (secret["metadata"].get("annotations") or {}):
        yield from (item["uid"] for item in secret["metadata"].get("ownerReferences") or () if item.get("controller"))


async def observe(world: World, key: Key) -> Seen | None:
    """The snapshot of one user, None when it is gone."""
    obj = world.cache.get(KIND.resource, key)
    if obj is None:
        metrics.forget(KIND.kind, key)
        return None
    user = KIND.parse(obj)
    bond = bond_of(world, user)
    seen = remembered(Seen(user, bond, settings().resync, now=world.now()), user.status.user_id, NOUN)
    if user.metadata.deletion_timestamp:
        return replace(
            seen, shelves={item["metadata"]["name"]: shelf_of(item, foreign=False) for item in _held(world, user)}
        )
    seen = _with_secrets(world, seen)
    if bond.client is None or not bond.ready or seen.values is None:
        return seen
    return await _asked(world, seen, bond.client)


async def _asked(world: World, seen: Seen, client: PocketID) -> Seen:
    listing = lists_of(world, client.url).users
    search: Search[User] = Search(
        listing, client.reader, client.list_users, client.get_user, lambda user: _fits(seen, user)
    )
    seen = await find(world, seen, search)
    if seen.found is None and seen.look is None:
        seen = await _by_address(world, seen, search)
    if not overreach(seen):
        seen = recognised(world, seen, NOUN)
    if isinstance(decide(seen), Outcome | Released):
        return seen
    return await look_again(seen, search)


def _fits(seen: Seen, user: User) -> bool:
    """A declared id says it all; else the name does, letter case aside."""
    if seen.resource.spec.user_id is not None:
        return user.id == seen.resource.spec.user_id
    assert seen.values is not None
    return user.id != STATIC_KEY_OWNER and user.username.casefold() == seen.values.username.casefold()


async def _by_address(world: World, seen: Seen, search: Search[User]) -> Seen:
    """The user with the declared address, when nobody has the name."""
    email = seen.values.email if seen.values else None
    if email is None or seen.resource.spec.user_id is not None:
        return seen
    try:
        users = await search.listing.get(search.reader, search.every, world.now(), seen.resync)
    except PocketIDError as error:
        return replace(seen, look=trouble_of(error))
    wanted = email.casefold()
    return replace(seen, found=next((user for user in users.values() if (user.email or "").casefold() == wanted), None))


# --- Secrets


def _with_secrets(world: World, seen: Seen) -> Seen:
    user = seen.resource
    values = _values(world, user)
    seen = replace(seen, values=values) if isinstance(values, Values) else replace(seen, fault=values)
    data = world.cache.get(SECRETS, Key(user.key.namespace, f"{user.metadata.name}{DATA_SUFFIX}"))
    shelves = {item["metadata"]["name"]: shelf_of(item, foreign=False) for item in _held(world, user)}
    for key in user.spec.api_keys or ():
        name = place(user, key)[0]
        if name not in shelves:
            live = world.cache.get(SECRETS, Key(user.key.namespace, name))
            shelves[name] = (
                Shelf(name) if live is None else shelf_of(live, foreign=not controlled_by(live, user.metadata.uid))
            )
    foreign = [name for name, shelf in sorted(shelves.items()) if shelf.foreign]
    if data is not None and not controlled_by(data, user.metadata.uid):
        foreign.append(data["metadata"]["name"])
    return replace(seen, data=data, shelves=shelves, foreign=tuple(foreign))


def _held(world: World, user: PocketIDUser) -> list[JsonObject]:
    found = world.cache.list(SECRETS, user.metadata.namespace, index=KEYS_BY_USER, value=user.metadata.uid)
    return [item for item in found if not is_terminating(item)]


def _values(world: World, user: PocketIDUser) -> Values | str:
    """What is declared of the person, or which Secret is missing."""
    spec, info = user.spec, None
    if spec.user_info_secret_ref is not None:
        info = world.cache.get(SECRETS, Key(user.key.namespace, spec.user_info_secret_ref.name))
        if info is None:
            return f"spec.userInfoSecretRef: Secret {spec.user_info_secret_ref.name} does not exist"
        if why := keeper_of(world, info):
            return f"spec.userInfoSecretRef: {why}"
    found: dict[str, str | None] = {}
    given = (spec.username, spec.first_name, spec.last_name, spec.email, spec.display_name)
    for name, value in zip(_WIRE, given, strict=True):
        if value is None:
            found[name] = (data_text(info, name) or None) if info is not None else None
            continue
        found[name], why = _value(world, user, value)
        if why:
            return f"spec.{name}: {why}"
    username, first, last, email, display = (found[name] for name in _WIRE)
    return Values(username or user.metadata.name, first, last, email, display)


def _value(world: World, user: PocketIDUser, value: Value) -> tuple[str | None, str]:
    """The text, and why it cannot be had; neither, where it may be missing and is."""
    if value.value_from is None:
        return value.value, "" if value.value else "the value is missing or empty"
    ref = value.value_from.secret_key_ref
    secret = world.cache.get(SECRETS, Key(user.key.namespace, ref.name))
    if secret is not None and (why := keeper_of(world, secret)):
        return None, why
    text = data_text(secret, ref.key) if secret is not None else ""
    missing = f"key {ref.key} of Secret {ref.name} is missing, empty or no UTF-8 text"
    return text or None, "" if text or ref.optional else missing
