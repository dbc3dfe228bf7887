"""Performs one plan of an API and returns the snapshot with the answer in it.

Enters: a snapshot with a REST client, and a plan. Leaves: the snapshot. It decides nothing and of what clients hold it only takes back.
"""

from __future__ import annotations

from dataclasses import replace

from moorage.pocketid.listings import Listing
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import AlreadyExists, Api, NotFound, PocketID
from moorage.pocketid.sibling_apply import deleted, perform, taken, updated
from moorage.runtime.room import Event
from moorage.runtime.world import World

from .observe import NOUN
from .powers import overreach
from .seen import Create, Delete, Plan, Rename, Revoke, Seen, SetCimdAccess, SetPermissions
from .types import KIND


async def apply(world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform one plan; a refusal becomes a trouble of it."""
    return await perform(world, KIND, seen, plan, _act)


async def _act(world: World, seen: Seen, plan: Plan) -> Seen:
    client = seen.bond.client
    assert client is not None, "decide plans nothing without a client"
    apis = lists_of(world, client.url).apis
    match plan:
        case Create():
            return await _create(seen, client, apis, plan)
        case Rename(id, name):
            return updated(NOUN, seen, apis, await client.update_api(id, name), f"named API {name!r}")
        case SetPermissions(id, permissions):
            answered = await client.update_api_permissions(id, permissions)
            return updated(NOUN, seen, apis, answered, f"set permissions of API {answered.name!r}")
        case SetCimdAccess(id, enabled, keys):
            ids = seen.found.permission_ids() if seen.found else {}
            answered = await client.set_api_cimd_access(id, enabled, [ids[key] for key in keys])
            what = "opened" if enabled else "closed"
            return updated(
                NOUN, seen, apis, answered, f"{what} API {answered.name!r} for clients with a metadata document"
            )
        case Revoke():
            return await _revoke(seen, client, plan)
        case Delete(id):
            return await deleted(NOUN, seen, apis, id, client.delete_api)
    raise AssertionError(f"no such plan: {plan!r}")


async def _revoke(seen: Seen, client: PocketID, plan: Revoke) -> Seen:
    """A client that is gone holds nothing, either."""
    left = tuple(item for item in seen.barred if item.id != plan.client_id)
    try:
        await client.remove_api_client_grant(plan.id, plan.client_id)
    except NotFound:
        return replace(seen, barred=left)
    name = next((item.name for item in seen.barred if item.id == plan.client_id), "")
    told = f"took back what client {name!r} (id {plan.client_id}) held: it is no client of a namespace that spec.allowedNamespaces admits"
    event = Event("Warning", "AccessRevoked", told)
    return replace(seen, barred=left, happened=(*seen.happened, event))


async def _create(seen: Seen, client: PocketID, apis: Listing[Api], plan: Create) -> Seen:
    """An audience that is taken belongs to an API that is adopted, a lost answer's own included."""
    try:
        made = await client.create_api(plan.name, plan.resource)
    except AlreadyExists:
        found = await client.find_api_of(plan.resource)
        if found is None:
            raise
        if overreach(there := seen.with_found(found)):
            apis.note(found)
            return there
        return taken(NOUN, seen, apis, found, "adopted")
    return taken(NOUN, seen, apis, made, "created")
