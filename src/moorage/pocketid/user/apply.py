"""Performs one plan of a user and returns the snapshot with the answer in it.

Enters: a snapshot with a REST client, and a plan. Leaves: the snapshot. It decides nothing; codes and tokens go into Secrets and nowhere else.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Literal

from moorage.core.meta import Key
from moorage.kube.resources import SECRETS
from moorage.pocketid import metrics
from moorage.pocketid.listings import Listing
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import AlreadyExists, NotFound, PocketID, ServerFailed, User
from moorage.pocketid.sibling_apply import deleted, perform, taken, updated
from moorage.runtime.room import Event
from moorage.runtime.world import World

from .keys import Held, Shelf, encoded, end_of, manifest, place, shelf_of
from .observe import NOUN
from .powers import overreach
from .seen import Create, Delete, DropKey, MakeKey, MakeLink, Plan, Seen, SetClaims, Update, WriteData, WriteKeys
from .types import KIND, ApiKey


async def apply(world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform one plan; a refusal becomes a trouble of it."""
    return await perform(world, KIND, seen, plan, _act)


async def _act(world: World, seen: Seen, plan: Plan) -> Seen:
    match plan:
        case WriteData():
            return replace(seen, data=await world.ensure(SECRETS, seen.wanted_data()))
        case WriteKeys():
            return await _write_keys(world, seen, plan)
    client = seen.bond.client
    assert client is not None, "decide plans nothing without a client"
    users = lists_of(world, client.url).users
    match plan:
        case Create():
            return await _create(seen, client, users, plan)
        case Update(id, members):
            assert seen.found is not None
            made = await client.update_user(id, seen.found.body(seen.managed))
            return updated(NOUN, seen, users, made, f"set {', '.join(members)} of user {made.username!r}")
        case SetClaims(id, claims):
            answered = await client.update_user_custom_claims(id, claims)
            assert seen.found is not None
            return updated(
                NOUN, seen, users, replace(seen.found, claims=answered), f"set claims of user {seen.found.username!r}"
            )
        case MakeLink(id, until):
            link = await client.create_one_time_access_token(id, datetime.fromisoformat(until) - seen.now)
            return replace(seen, link=link)
        case MakeKey(id, name):
            key = _declared(seen, name)
            made_key = await client.create_api_key_for_user(id, name, end_of(key, seen.now), key.description or "")
            _counted(seen, "created")
            return replace(seen, made={**seen.made, name: made_key})
        case DropKey(user, id):
            return await _drop_key(seen, client, user, id)
        case Delete(id):
            return await deleted(NOUN, seen, users, id, client.delete_user)
    raise AssertionError(f"no such plan: {plan!r}")


def _declared(seen: Seen, name: str) -> ApiKey:
    return next(key for key in seen.resource.spec.api_keys or () if key.name == name)


async def _create(seen: Seen, client: PocketID, users: Listing[User], plan: Create) -> Seen:
    """A taken name or address is somebody's, who is adopted; a taken id is our own from a pass whose answer was lost."""
    try:
        made = await client.create_user(seen.fresh_body)
    except (AlreadyExists, ServerFailed):
        there = await _there(seen, client, plan)
        if there is None:
            raise
        made = there
        if overreach(found := seen.with_found(made)):
            users.note(made)
            return found
    return taken(NOUN, seen, users, made, "created" if made.id == plan.id else "adopted")


async def _there(seen: Seen, client: PocketID, plan: Create) -> User | None:
    try:
        return await client.get_user(plan.id)
    except NotFound:
        if seen.resource.spec.user_id is not None:
            return None
    named = await client.find_user_named(seen.managed["username"])
    if named is not None or seen.values is None or seen.values.email is None:
        return named
    email = seen.values.email.casefold()
    return next((user for user in await client.list_users() if (user.email or "").casefold() == email), None)


async def _drop_key(seen: Seen, client: PocketID, user: str, id: str) -> Seen:
    done = replace(seen, dropped=seen.dropped | {id})
    try:
        await client.delete_api_key(user, id)
    except NotFound:
        return done
    _counted(seen, "deleted")
    return replace(done, happened=(*seen.happened, Event("Normal", "APIKeyDeleted", f"deleted API key (id {id})")))


def _counted(seen: Seen, operation: Literal["created", "deleted"]) -> None:
    instance = seen.bond.instance
    if instance is not None:
        metrics.key_operated(instance.namespace, instance.name, operation)


# --- Secrets with keys


async def _write_keys(world: World, seen: Seen, plan: WriteKeys) -> Seen:
    """The Secret with the keys that are declared for it and held, those made in this pass included; none left: no Secret."""
    before = seen.shelves[plan.secret]
    shelf = before if plan.names else Shelf(plan.secret)
    if seen.found is not None:
        shelf = replace(shelf if shelf.user == seen.found.id else Shelf(plan.secret), user=seen.found.id)
    shelf = _stocked(seen, shelf)
    if shelf.held:
        live = await world.ensure(SECRETS, manifest(seen.resource, shelf))
        shelves = {**seen.shelves, plan.secret: shelf_of(live, foreign=False)}
    else:
        live_secret = world.cache.get(SECRETS, Key(seen.resource.key.namespace, plan.secret))
        if live_secret is not None:
            await world.delete(SECRETS, live_secret)
        shelves = {**seen.shelves, plan.secret: Shelf(plan.secret)}
    kept = {item.name for item in shelf.held}
    return replace(seen, shelves=shelves, made={name: key for name, key in seen.made.items() if name not in kept})


def _stocked(seen: Seen, shelf: Shelf) -> Shelf:
    held: list[Held] = []
    data = dict(shelf.data)
    for key in seen.resource.spec.api_keys or ():
        secret, entry = place(seen.resource, key)
        before = next((item for item in shelf.held if (item.name, item.entry) == (key.name, entry)), None)
        if secret != shelf.secret:
            continue
        former = tuple(id for id in (before.former if before else ()) if id not in seen.dropped)
        if key.name in seen.made:
            made = seen.made[key.name]
            data |= encoded([(entry, made.token.reveal())])
            replaced = (before.id,) if before else ()
            ends = (made.key.expires_at or end_of(key, seen.now)).isoformat()
            held.append(
                Held(
                    key.name,
                    made.key.id,
                    entry,
                    ends,
                    seen.now.isoformat(timespec="seconds"),
                    key.expires_at or "",
                    former + replaced,
                )
            )
        elif before is not None:
            held.append(replace(before, former=former))
    return replace(shelf, held=tuple(held), data=data)
