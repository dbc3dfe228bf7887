"""Performs plans about the client itself at Pocket-ID.

Enters: a snapshot and a plan. Leaves: the snapshot with what the server answered. It decides nothing. Source: spec/pocketid.md 3.4, 4.2, 4.12.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from moorage.pocketid import metrics
from moorage.pocketid.reach import Lists, lists_of
from moorage.pocketid.rest import (
    CIMD,
    AlreadyExists,
    Client,
    Feature,
    GroupName,
    MadeSecret,
    NotFound,
    PocketID,
    PocketIDError,
    dropped,
)
from moorage.runtime.room import Event
from moorage.runtime.world import World

from .lookups import Absent, Found
from .observe_server import fetch, look_aside, look_there
from .plans import CreateClient, DeleteClient, LeaveInstance, Look, LookThere, RefreshMetadata, SetGroups, UpdateClient
from .powers import overreach
from .secret_facts import with_secrets
from .secrets import Made, Trigger
from .seen import Seen
from .seen_parts import Failure
from .types import KIND

ClientPlan: TypeAlias = (
    Look | LookThere | CreateClient | UpdateClient | SetGroups | DeleteClient | LeaveInstance | RefreshMetadata
)


async def perform(world: World, seen: Seen, plan: ClientPlan) -> Seen:
    """Perform it.

    Raises:
        PocketIDError: it was refused, or not answered.
    """
    if isinstance(plan, LeaveInstance | LookThere):
        return await _elsewhere(world, seen, plan)
    assert seen.remote is not None, "decide plans nothing without a client"
    remote, lists = seen.remote, lists_of(world, seen.remote.url)
    try:
        match plan:
            case Look():
                return _known(seen, await fetch(remote, lists, _id(seen)), lists)
            case CreateClient():
                return await _create(world, seen, remote, plan)
            case UpdateClient():
                return await _update(seen, remote, lists, plan)
            case SetGroups():
                return await _groups(seen, remote, lists, plan)
            case DeleteClient():
                return await _delete(seen, remote, lists, plan)
            case RefreshMetadata():
                client = await remote.refresh_oidc_client_metadata(_id(seen))
                lists.clients.note(client)
                return seen.after(refreshing=False, look=Found(client, True, True)).tells(
                    Event("Normal", "MetadataRefreshed", "Pocket-ID fetched the metadata document again")
                )
    except NotFound:
        if seen.found is None:
            raise
        lists.clients.forget(_id(seen))
        return seen.after(look=Absent(lost=True), secrets=None)


def _id(seen: Seen) -> str:
    found = seen.found
    return found.id if found is not None else seen.client.status.client_id or ""


def _known(seen: Seen, client: Client, lists: Lists) -> Seen:
    """The client as it is now; the first look of a pass is what secrets are judged by."""
    assert seen.remote is not None
    if seen.secrets is None:
        return with_secrets(seen.with_client(client), client, lists.clock(seen.remote, seen.now))
    return seen.with_client(client)


# --- create, or adopt


async def _create(world: World, seen: Seen, remote: PocketID, plan: CreateClient) -> Seen:
    """An id that is taken is adopted: it is what the resource names. What hangs on the client is looked for at once, so that Ready means all of it."""
    lists = lists_of(world, remote.url)
    lost = isinstance(seen.look, Absent) and seen.look.lost
    id, me = plan.body.get("id"), (seen.client.metadata.uid, seen.key)
    claim = seen.client.spec.client_id or f"name:{seen.shown_name}"
    if (other := seen.claimed(claim)) is not None:
        return seen.after(rival=other, held_back=True)
    if lost:
        seen = _lost(seen, remote)
    lists.takers[claim] = me
    try:
        made = await remote.create_oidc_client(plan.body)
    except AlreadyExists:
        if id is None:
            raise
        client = await fetch(remote, lists, id)
        if client.client_type == CIMD:
            raise
        seen = seen.after(look=Found(client, fresh=True))
        if overreach(seen):
            del lists.takers[claim]
            return seen
        seen = await look_aside(world, seen, remote)
        return with_secrets(seen, client, lists.clock(remote, seen.now))
    except PocketIDError:
        lists.takers.pop(claim, None)
        raise
    lists.clients.note(made.client)
    lists.takers[made.client.id] = me
    metrics.operated(KIND.kind, "created")
    seen = _lacking(seen, lists, plan, made.client)
    seen = seen.after(created=True, look=Found(made.client, fresh=True, dirty=True))
    seen = await look_aside(world, seen, remote)
    seen = seen.tells(Event("Normal", "ClientCreated", f"created client {made.client.name!r} (id {made.client.id})"))
    return _with_first_secret(with_secrets(seen, made.client, lists.clock(remote, seen.now)), made.secret)


def _lost(seen: Seen, remote: PocketID) -> Seen:
    """The recorded client is not there: somebody deleted it, or the instance was pointed at another server."""
    id, bound = seen.client.status.client_id, seen.client.status.instance
    if bound is not None and bound.url not in ("", remote.url):
        told = f"client {id} is not at {remote.url}, where the instance points now; at {bound.url} it stays with its secrets"
        return seen.tells(Event("Warning", "InstanceMoved", told))
    metrics.EXTERNAL_DELETIONS.labels(KIND.kind).inc()
    return seen.tells(Event("Warning", "ClientLost", f"client {id} was deleted in Pocket-ID"))


def _with_first_secret(seen: Seen, made: MadeSecret | None) -> Seen:
    """A newer server makes a secret with the client: it is the initial one, where one is made at all."""
    if made is None or seen.secrets is None:
        return seen
    return seen.after(secrets=seen.secrets.minted(Made(made, Trigger.INITIAL)))


# --- change


async def _update(seen: Seen, remote: PocketID, lists: Lists, plan: UpdateClient) -> Seen:
    before, client = seen.found, await remote.update_oidc_client(_id(seen), plan.body)
    lists.clients.note(client)
    metrics.operated(KIND.kind, "updated")
    seen = _lacking(seen, lists, plan, client).with_client(client, dirty=True)
    if before is not None and before.is_group_restricted and not client.is_group_restricted:
        seen = seen.tells(Event("Warning", "ClientOpened", "no group is named any more: everybody may use the client"))
    return seen.tells(Event("Normal", "ClientUpdated", f"wrote {', '.join(plan.changes)}"))


def _lacking(seen: Seen, lists: Lists, plan: UpdateClient | CreateClient, client: Client) -> Seen:
    """A member that did not come back is a feature that the server does not have; it is not sent again."""
    missing = dropped(plan.body, client.raw)
    ends = {path.rpartition(".")[2] for path in missing}
    found = dict.fromkeys((item for item in Feature if item.member in ends), seen.now)
    lists.lacks |= found
    return seen.after(lacks={**seen.lacks, **found})


async def _groups(seen: Seen, remote: PocketID, lists: Lists, plan: SetGroups) -> Seen:
    """The answer tells no groups: what was sent counts until the readback."""
    assert seen.found is not None
    await remote.update_oidc_client_allowed_groups(_id(seen), plan.ids)
    client = replace(seen.found, groups=tuple(GroupName(id, "") for id in plan.ids), group_count=len(plan.ids))
    lists.clients.note(client)
    return seen.with_client(client, dirty=True).tells(
        Event("Normal", "GroupsUpdated", f"set {len(plan.ids)} groups that may use the client")
    )


# --- leave


async def _delete(seen: Seen, remote: PocketID, lists: Lists, plan: DeleteClient) -> Seen:
    """One that is gone already is done."""
    try:
        await remote.delete_oidc_client(plan.id)
    except NotFound:
        lists.clients.forget(plan.id)
        return seen.after(gone=True)
    lists.clients.forget(plan.id)
    lists.pushed.pop(seen.client.metadata.uid, None)
    metrics.operated(KIND.kind, "deleted")
    return seen.after(gone=True).tells(Event("Normal", "ClientDeleted", f"deleted client {plan.id}"))


async def _elsewhere(world: World, seen: Seen, plan: LeaveInstance | LookThere) -> Seen:
    """What is done at another instance, or at that of a resource on its way out."""
    here = seen.instance is not None and seen.instance.key == plan.instance
    remote = seen.remote if here else seen.elsewhere.get(plan.instance)
    if remote is None:
        message = f"what is there of this resource cannot be deleted at PocketIDInstance {plan.instance}, which cannot be reached; set deletionPolicy to Retain to leave it"
        return seen.after(failures={**seen.failures, plan.part: Failure(message, seen.settings.resync)})
    lists = lists_of(world, remote.url)
    if isinstance(plan, LeaveInstance):
        return await _leave(seen, remote, lists, plan)
    place = next((item for item in seen.places if item.key == plan.instance), None)
    there = await look_there(seen, place, remote, lists)
    if place is None:
        return seen.after(look=there)
    looked = place.looked_at(there)
    return seen.after(places=tuple(looked if item is place else item for item in seen.places))


async def _leave(seen: Seen, remote: PocketID, lists: Lists, plan: LeaveInstance) -> Seen:
    """The client on the other instance goes; gone already is done."""
    lists.clients.forget(plan.client_id)
    try:
        await remote.delete_oidc_client(plan.client_id)
    except NotFound:
        return seen
    told = f"deleted client {plan.client_id} at the instance that it no longer belongs to"
    return seen.tells(Event("Normal", "ClientMoved", told))
