"""Performs one plan of an API and returns the snapshot with the answer in it.

Enters: a snapshot with a REST client, and a plan. Leaves: the snapshot. It decides nothing and never writes what a client holds.
"""

from __future__ import annotations

from dataclasses import replace

from moorage.pocketid import metrics
from moorage.pocketid.listings import Listing
from moorage.pocketid.reach import lists_of
from moorage.pocketid.rest import AlreadyExists, Api, NotFound, PocketID
from moorage.pocketid.sibling_work import perform
from moorage.runtime.room import Event
from moorage.runtime.world import World

from .seen import Create, Delete, Plan, Rename, Seen, SetCimdAccess, SetPermissions
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
            return _updated(seen, apis, await client.update_api(id, name), f"named API {name!r}")
        case SetPermissions(id, permissions):
            answered = await client.update_api_permissions(id, permissions)
            return _updated(seen, apis, answered, f"set permissions of API {answered.name!r}")
        case SetCimdAccess(id, enabled, keys):
            ids = seen.found.permission_ids() if seen.found else {}
            answered = await client.set_api_cimd_access(id, enabled, [ids[key] for key in keys])
            what = "opened" if enabled else "closed"
            return _updated(seen, apis, answered, f"{what} API {answered.name!r} for clients with a metadata document")
        case Delete(id):
            return await _delete(seen, client, apis, id)
    raise AssertionError(f"no such plan: {plan!r}")


async def _create(seen: Seen, client: PocketID, apis: Listing[Api], plan: Create) -> Seen:
    """An audience that is taken belongs to an API that is adopted, a lost answer's own included."""
    adopted = False
    try:
        made = await client.create_api(plan.name, plan.resource)
    except AlreadyExists:
        found = await client.find_api_of(plan.resource)
        if found is None:
            raise
        made, adopted = found, True
    apis.note(made)
    metrics.operated(KIND.kind, "adopted" if adopted else "created")
    what = "adopted" if adopted else "created"
    event = Event("Normal", f"API{what.capitalize()}", f"{what} API {made.name!r} for {made.resource} (id {made.id})")
    return replace(seen.with_found(made, event), known=made.id)


def _updated(seen: Seen, apis: Listing[Api], api: Api, what: str) -> Seen:
    apis.note(api)
    metrics.operated(KIND.kind, "updated")
    return seen.with_found(api, Event("Normal", "APIUpdated", f"{what} (id {api.id})"))


async def _delete(seen: Seen, client: PocketID, apis: Listing[Api], id: str) -> Seen:
    try:
        await client.delete_api(id)
    except NotFound:
        return replace(seen, gone=True)
    finally:
        apis.forget(id)
    metrics.operated(KIND.kind, "deleted")
    event = Event("Normal", "APIDeleted", f"deleted API (id {id})")
    return replace(seen, gone=True, happened=(*seen.happened, event))
