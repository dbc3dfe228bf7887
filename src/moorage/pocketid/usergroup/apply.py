"""Performs one plan of a group and returns the snapshot with the answer in it.

Enters: a snapshot with a REST client, and a plan. Leaves: the snapshot. It decides nothing and never writes which clients may use a group.
"""

from __future__ import annotations

from dataclasses import replace

from moorage.pocketid.listings import Listing
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import AlreadyExists, Group, PocketID
from moorage.pocketid.sibling_apply import deleted, perform, taken, updated
from moorage.runtime.world import World

from .observe import NOUN
from .powers import overreach
from .seen import Create, Delete, Plan, Rename, Seen, SetClaims, SetMembers
from .types import KIND


async def apply(world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform one plan; a refusal becomes a trouble of it."""
    return await perform(world, KIND, seen, plan, _act)


async def _act(world: World, seen: Seen, plan: Plan) -> Seen:
    client = seen.bond.client
    assert client is not None, "decide plans nothing without a client"
    groups = lists_of(world, client.url).groups
    match plan:
        case Create():
            return await _create(seen, client, groups, plan)
        case Rename(id, name, friendly_name):
            made = await client.update_user_group(id, name, friendly_name)
            return updated(NOUN, seen, groups, made, f"named group {name!r}")
        case SetClaims(id, claims):
            answered = await client.update_user_group_custom_claims(id, claims)
            assert seen.found is not None
            return updated(
                NOUN, seen, groups, replace(seen.found, claims=answered), f"set claims of group {seen.name!r}"
            )
        case SetMembers(id, users):
            made = await client.update_user_group_users(id, users)
            return updated(NOUN, seen, groups, made, f"set members of group {seen.name!r}")
        case Delete(id):
            return await deleted(NOUN, seen, groups, id, client.delete_user_group)
    raise AssertionError(f"no such plan: {plan!r}")


async def _create(seen: Seen, client: PocketID, groups: Listing[Group], plan: Create) -> Seen:
    """A name that is taken belongs to a group that is adopted, a lost answer's own included."""
    try:
        made = await client.create_user_group(plan.name, plan.friendly_name)
    except AlreadyExists:
        named = await client.find_user_group_named(plan.name)
        if named is None:
            raise
        group = await client.get_user_group(named.id)
        if overreach(found := seen.with_found(group)):
            groups.note(group)
            return found
        return taken(NOUN, seen, groups, group, "adopted")
    return taken(NOUN, seen, groups, made, "created")
