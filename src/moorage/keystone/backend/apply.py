"""Performs one plan at Keystone and returns the snapshot with the answer in it.

Enters: a snapshot with a logged-in client, and a plan. Leaves: the snapshot. It decides nothing: an error becomes
`seen.failure`, an answer a fact. It must never enable a domain that is being deleted; it only performs what `decide` said.
"""

from __future__ import annotations

from dataclasses import replace

from moorage.keystone.identity import Conflict, Domain, Identity, IdentityError, NotFound
from moorage.runtime.room import Event
from moorage.runtime.world import World

from . import apply_federation
from .memory import memory_of
from .seen import CreateDomain, DeleteDomain, DisableDomain, Failure, Lookup, Plan, Seen, UpdateDomain


async def apply(world: World, seen: Seen, plan: Plan) -> Seen:
    """Perform one plan. The session of the client is fenced by leadership."""
    assert seen.identity is not None, "decide plans nothing without a client"
    world.wrote()
    try:
        done = await _perform(seen, seen.identity, plan)
    except IdentityError as error:
        done = seen.after(failure=Failure(plan, str(error), refused=error.status == 400))
    memory = memory_of(world)
    memory.looks.note(done)
    if done.failure is not None:
        memory.names.forget(seen.identity.url)
    return done


async def _perform(seen: Seen, identity: Identity, plan: Plan) -> Seen:
    match plan:
        case CreateDomain():
            return await _create(seen, identity, plan)
        case UpdateDomain():
            return await _update(seen, identity, plan)
        case DisableDomain():
            return await _disable(seen, identity, plan)
        case DeleteDomain():
            return await _delete(seen, identity, plan)
    return await apply_federation.perform(seen, identity, plan)


async def _create(seen: Seen, identity: Identity, plan: CreateDomain) -> Seen:
    """A conflict is looked into: the domain may be ours, from a pass that was cut short, or somebody else's."""
    try:
        made = await identity.create_domain(plan.name, id=plan.id, description=plan.description)
    except Conflict as conflict:
        own, named = await identity.domain(plan.id), await identity.domain_named(plan.name)
        if own is None and named is None:
            return seen.after(failure=Failure(plan, str(conflict)))
        return seen.after(lookup=Lookup(own, named))
    return seen.after(
        lookup=Lookup(made, made), happened=seen.tells(_normal("DomainCreated", f"created domain {plan.name!r}", made))
    )


async def _update(seen: Seen, identity: Identity, plan: UpdateDomain) -> Seen:
    try:
        changed = await identity.update_domain(plan.id, plan.changes)
    except NotFound:
        return seen.after(lookup=Lookup(None, None))
    except Conflict as conflict:
        named = await identity.domain_named(seen.domain_name)
        if named is None or named.id == plan.id:
            return seen.after(failure=Failure(plan, str(conflict)))
        return seen.after(lookup=Lookup(seen.found, named))
    ignored = [name for name, value in plan.changes.items() if getattr(changed, name) != value]
    if ignored:
        message = f"PATCH /domains/{plan.id}: Keystone did not take over {', '.join(ignored)}"
        return seen.after(failure=Failure(plan, message))
    event = _normal("DomainUpdated", f"repaired {', '.join(plan.changes)} of domain {changed.name!r}", changed)
    return seen.after(lookup=Lookup(changed, changed), happened=seen.tells(event))


async def _disable(seen: Seen, identity: Identity, plan: DisableDomain) -> Seen:
    try:
        changed = await identity.update_domain(plan.id, {"enabled": False})
    except NotFound:
        return _gone(seen)
    if changed.enabled:
        return seen.after(failure=Failure(plan, f"PATCH /domains/{plan.id}: Keystone did not disable the domain"))
    event = _normal("DomainDisabled", f"disabled domain {changed.name!r}", changed)
    return seen.after(lookup=Lookup(changed, None), happened=seen.tells(event))


async def _delete(seen: Seen, identity: Identity, plan: DeleteDomain) -> Seen:
    name = seen.found.name if seen.found else seen.domain_name
    try:
        await identity.delete_domain(plan.id)
    except NotFound:
        return _gone(seen)
    event = Event("Normal", "DomainDeleted", f"deleted domain {name!r} (id {plan.id})")
    return replace(_gone(seen), happened=seen.tells(event))


def _gone(seen: Seen) -> Seen:
    return seen.after(lookup=Lookup(None, None))


def _normal(reason: str, what: str, domain: Domain) -> Event:
    return Event("Normal", reason, f"{what} (id {domain.id})")
