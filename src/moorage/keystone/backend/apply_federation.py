"""Performs one plan about federation objects and returns the snapshot with the answer in it.

Enters: a snapshot with a logged-in client, and a plan. Leaves: the snapshot. It decides nothing: what is gone already is done, a conflict is
looked into, another error is raised to `apply.py`. Nothing is opened but by OpenProvider.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, TypeVar

from moorage.keystone.identity import Conflict, Identity, IdentityError, NotFound
from moorage.keystone.identity_errors import Refused
from moorage.keystone.identity_federation import REMOTE_ID_LIMIT, IdentityProvider
from moorage.runtime.room import Event

from .observe_federation import holder
from .seen import Failure, Seen
from .seen_federation import (
    CloseProvider,
    CreateGroups,
    CreateMapping,
    CreateProtocol,
    CreateProvider,
    DeleteMapping,
    DeleteProtocol,
    DeleteProvider,
    GrantRoles,
    LeaveMapping,
    ObjectPlan,
    Objects,
    OpenProvider,
    RevokeRoles,
    UpdateMapping,
    UpdateProtocol,
    UpdateProvider,
)

Item = TypeVar("Item")


async def perform(seen: Seen, identity: Identity, plan: ObjectPlan) -> Seen:
    """Perform it.

    Raises:
        IdentityError: Keystone refused it or did not answer.
    """
    match plan:
        case CreateProvider() | UpdateProvider() | CloseProvider() | OpenProvider():
            return await _provider(seen, identity, plan)
        case CreateMapping() | UpdateMapping():
            return await _mapping(seen, identity, plan)
        case CreateProtocol() | UpdateProtocol():
            return await _protocol(seen, identity, plan)
        case DeleteProtocol() | DeleteMapping() | DeleteProvider():
            return await _delete(seen, identity, plan)
        case LeaveMapping(id, user):
            told = Event("Warning", "MappingRetained", f"mapping {id} stays in Keystone: {user} uses it")
            return _seen(seen, _objects(seen).without_mapping(id), told)
        case CreateGroups():
            return await _groups(seen, identity, plan)
        case GrantRoles():
            return await _grant(seen, identity, plan)
        case RevokeRoles():
            return await _revoke(seen, identity, plan)


# --- identity providers


async def _provider(
    seen: Seen, identity: Identity, plan: CreateProvider | UpdateProvider | CloseProvider | OpenProvider
) -> Seen:
    """A taken remote id becomes a fact with the name of its holder; so does an identity provider that somebody else made just now."""
    id = plan.provider.id if isinstance(plan, CreateProvider) else plan.id
    try:
        made = await _write_provider(identity, plan)
    except NotFound:
        return _seen(seen, _objects(seen).without_provider(id))
    except Conflict:
        return await _contested(seen, identity, plan, id)
    except Refused as error:
        raise _explained(error, seen) from None
    if ignored := _ignored(plan, made):
        return seen.after(failure=Failure(plan, f"identity provider {id}: Keystone did not take over {ignored}"))
    return _seen(seen, _objects(seen).with_provider(made), _told(plan, made))


async def _write_provider(
    identity: Identity, plan: CreateProvider | UpdateProvider | CloseProvider | OpenProvider
) -> IdentityProvider:
    match plan:
        case CreateProvider(provider):
            return await identity.federation.create_provider(provider)
        case UpdateProvider(id, changes):
            return await identity.federation.update_provider(id, changes)
        case CloseProvider(id, _, remote_ids):
            more = {"remote_ids": list(remote_ids)} if remote_ids else {}
            return await identity.federation.update_provider(id, {"enabled": False, **more})
        case OpenProvider(id):
            return await identity.federation.update_provider(id, {"enabled": True})


def _ignored(plan: ObjectPlan, made: IdentityProvider) -> str:
    """What Keystone answered otherwise than asked; "" when nothing."""
    wanted: dict[str, Any] = {}
    if isinstance(plan, UpdateProvider):
        wanted = dict(plan.changes)
    elif isinstance(plan, CloseProvider | OpenProvider):
        wanted = {"enabled": isinstance(plan, OpenProvider)}
    if "remote_ids" in wanted:
        wanted["remote_ids"] = tuple(sorted(wanted["remote_ids"]))
    got = {"enabled": made.enabled, "description": made.description, "remote_ids": tuple(sorted(made.remote_ids))}
    return ", ".join(name for name, value in wanted.items() if got[name] != value)


async def _contested(seen: Seen, identity: Identity, plan: ObjectPlan, id: str) -> Seen:
    wanted, objects = seen.wanted_objects, _objects(seen)
    present = await identity.federation.provider(id)
    if present is not None and isinstance(plan, CreateProvider):
        protocols = {**objects.protocols, id: await identity.federation.protocols(id)}
        return _seen(seen, objects.with_provider(present).after(protocols=protocols))
    taken_by = await holder(seen, wanted, identity) if wanted else ""
    if taken_by:
        return _seen(seen, objects.after(taken_by=taken_by))
    return seen.after(
        failure=Failure(plan, f"identity provider {id}: Keystone answered 409, and nobody holds the remote id")
    )


def _explained(error: Refused, seen: Seen) -> IdentityError:
    """Keystone's own sentence speaks of a schema; people need to know which limit it is."""
    wanted = seen.wanted_objects
    if error.status == 400 and wanted is not None and len(wanted.remote_id) > REMOTE_ID_LIMIT:
        why = f"this Keystone takes remote ids of at most {REMOTE_ID_LIMIT} characters, and the issuer or entityID has {len(wanted.remote_id)}"
        return Refused("identity provider", why, error.status)
    return error


def _told(plan: CreateProvider | UpdateProvider | CloseProvider | OpenProvider, made: IdentityProvider) -> Event:
    match plan:
        case CreateProvider():
            return _normal(
                "IdentityProviderCreated",
                f"created identity provider {made.id}, closed until its configuration is projected",
            )
        case UpdateProvider(_, _, what):
            return _normal("IdentityProviderUpdated", f"changed {what} of identity provider {made.id}")
        case CloseProvider(_, why):
            return _normal("IdentityProviderDisabled", f"disabled identity provider {made.id}: {why}")
        case OpenProvider():
            return _normal("IdentityProviderEnabled", f"enabled identity provider {made.id}: people can log in")


# --- mappings and protocols


async def _mapping(seen: Seen, identity: Identity, plan: CreateMapping | UpdateMapping) -> Seen:
    created = isinstance(plan, CreateMapping)
    write = identity.federation.create_mapping if created else identity.federation.update_mapping
    try:
        made = await write(plan.id, plan.rules)
    except NotFound:
        return _seen(seen, _objects(seen).without_mapping(plan.id))
    except Conflict:
        found = await identity.federation.mapping(plan.id)
        return _seen(seen, _objects(seen).with_mapping(plan.id, found.rules if found else ()))
    event = (
        _normal("MappingCreated", f"created mapping {plan.id}")
        if created
        else _normal("MappingUpdated", f"updated mapping {plan.id}")
    )
    return _seen(seen, _objects(seen).with_mapping(plan.id, plan.rules if made else ()), event)


async def _protocol(seen: Seen, identity: Identity, plan: CreateProtocol | UpdateProtocol) -> Seen:
    created = isinstance(plan, CreateProtocol)
    write = identity.federation.create_protocol if created else identity.federation.update_protocol
    name = f"protocol {plan.protocol.id} of identity provider {plan.provider}"
    try:
        made = await write(plan.provider, plan.protocol)
    except NotFound:
        if created:
            return _seen(seen, _objects(seen).without_provider(plan.provider))
        return _seen(seen, _objects(seen).without_protocol(plan.provider, plan.protocol.id))
    except Conflict:
        found = {**_objects(seen).protocols, plan.provider: await identity.federation.protocols(plan.provider)}
        return _seen(seen, _objects(seen).after(protocols=found))
    event = _normal("ProtocolCreated", f"created {name}") if created else _normal("ProtocolUpdated", f"updated {name}")
    return _seen(seen, _objects(seen).with_protocol(plan.provider, made), event)


# --- deletions: what is gone is done


async def _delete(seen: Seen, identity: Identity, plan: DeleteProtocol | DeleteMapping | DeleteProvider) -> Seen:
    objects = _objects(seen)
    match plan:
        case DeleteProtocol(provider, id):
            there = await _gone(identity.federation.delete_protocol(provider, id))
            return _seen(
                seen,
                objects.without_protocol(provider, id),
                *_deleted(there, f"protocol {id} of identity provider {provider}"),
            )
        case DeleteMapping(id):
            there = await _gone(identity.federation.delete_mapping(id))
            return _seen(seen, objects.without_mapping(id), *_deleted(there, f"mapping {id}"))
        case DeleteProvider(id):
            there = await _gone(identity.federation.delete_provider(id))
            return _seen(seen, objects.without_provider(id), *_deleted(there, f"identity provider {id}"))


async def _gone(deletion: Awaitable[None]) -> bool:
    """Whether it was there."""
    try:
        await deletion
    except NotFound:
        return False
    return True


def _deleted(there: bool, what: str) -> tuple[Event, ...]:
    return (_normal("FederationObjectsDeleted", f"deleted {what}"),) if there else ()


# --- groups and roles


async def _groups(seen: Seen, identity: Identity, plan: CreateGroups) -> Seen:
    made: dict[str, str] = {}
    events: list[Event] = []

    async def create(item: tuple[str, str | None]) -> None:
        name, description = item
        try:
            made[name] = await identity.access.create_group(plan.domain, name, description)
            events.append(_normal("FederationGroupCreated", f"created group {name!r}"))
        except Conflict as conflict:
            made[name] = await identity.access.group(plan.domain, name)
            if not made[name]:
                raise conflict from None

    error = await _each(plan.groups, create)
    ordered = {name: made[name] for name, _ in plan.groups if made.get(name)}
    seen = _seen(seen, _objects(seen).with_groups(ordered), *sorted(events, key=lambda event: event.message))
    return _ended(seen, plan, error)


async def _grant(seen: Seen, identity: Identity, plan: GrantRoles) -> Seen:
    done: set[Any] = set()

    async def grant(item: Any) -> None:
        await identity.access.grant(item)
        done.add(item)

    error = await _each(plan.grants, grant)
    events = [_normal("RolesGranted", f"granted {len(done)} role assignments to groups")] if done else []
    seen = _seen(seen, _objects(seen).after(grants=_objects(seen).grants | done), *events)
    return _ended(seen, plan, error)


async def _revoke(seen: Seen, identity: Identity, plan: RevokeRoles) -> Seen:
    done: set[Any] = set()
    events: list[Event] = []

    async def revoke(item: Any) -> None:
        if await _gone(identity.access.revoke(item[0])):
            events.append(_normal("RoleRevoked", f"revoked {item[1]}: it is declared no more"))
        done.add(item[0])

    error = await _each(plan.grants, revoke)
    objects = _objects(seen)
    objects = objects.after(grants=objects.grants - done, revoked=objects.revoked | done)
    return _ended(_seen(seen, objects, *sorted(events, key=lambda event: event.message)), plan, error)


async def _each(items: Iterable[Item], do: Callable[[Item], Awaitable[None]]) -> IdentityError | None:
    """Do it for every item; the first refusal, after all had their turn."""
    answers = await asyncio.gather(*map(do, items), return_exceptions=True)
    errors = [answer for answer in answers if isinstance(answer, BaseException)]
    bug = next((error for error in errors if not isinstance(error, IdentityError)), None)
    if bug is not None:
        raise bug
    return next((error for error in errors if isinstance(error, IdentityError)), None)


def _ended(seen: Seen, plan: ObjectPlan, error: IdentityError | None) -> Seen:
    if error is None:
        return seen
    return seen.after(failure=Failure(plan, str(error), refused=error.status == 400))


# --- the snapshot


def _objects(seen: Seen) -> Objects:
    return seen.objects or Objects()


def _seen(seen: Seen, objects: Objects, *events: Event) -> Seen:
    return seen.after(objects=objects, happened=seen.tells(*events))


def _normal(reason: str, message: str) -> Event:
    return Event("Normal", reason, message)
