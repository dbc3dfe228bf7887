"""The policy of a client on its way out: what is ours at the server goes, then our finalizer.

Enters: a snapshot of a terminating resource. Leaves: the next plan, what it waits for, or Released. Pure. It always ends: what cannot be
reached because its instance is gone is let go. Source: spec/pocketid.md 3.13; cases B79, B80.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Waiting
from moorage.pocketid.references import LEAVE
from moorage.runtime.room import Event, Released

from .decide_client import groups_hold_it, other_instances_are_left
from .plans import DeleteClient, Part
from .rule import BLOCKED_POLL, Answer, Rule, worked
from .seen import Seen

BLOCKED: Final = "DeletionBlocked"


def no_group_needs_it(seen: Seen) -> Answer:
    """A group that stays and lists the client keeps it; one that is being deleted, too, does not."""
    if not seen.groups.lists_us:
        return None
    names = ", ".join(seen.groups.lists_us)
    message = (
        f"PocketIDUserGroup {names} lists this client; take it out of spec.allowedOIDCClients, or delete the group"
    )
    return Waiting(BLOCKED, message, after=BLOCKED_POLL)


def other_instances_are_left_first(seen: Seen) -> Answer:
    """What was made on the way to another instance."""
    failed = worked(Part.IDENTITY)(seen) if seen.to_leave else None
    return failed or other_instances_are_left(seen)


def something_is_there(seen: Seen) -> Answer:
    """Without an id nothing was made; without an instance there is nobody to ask. One that is held back keeps no client alive, nor its secrets."""
    id = seen.client.status.client_id
    if not id or seen.gone:
        return Released(seen.happened)
    if seen.held_back:
        told = f"client {id} is that of PocketIDOIDCClient {seen.rival} and stays in Pocket-ID"
        return Released((*seen.happened, Event("Normal", "ClientRetained", told)))
    if seen.client.spec.deletion_policy == "Retain":
        told = f"client {id} stays in Pocket-ID, as deletionPolicy says"
        return Released((*seen.happened, Event("Normal", "ClientRetained", told)))
    if seen.instance is not None and seen.instance.leaves:
        told = f"client {id} stays in Pocket-ID, as {LEAVE} of PocketIDInstance {seen.instance.key} says"
        return Released((*seen.happened, Event("Normal", "ClientRetained", told)))
    if seen.instance is None and not seen.instance_fault:
        told = f"client {id} is let go: its PocketIDInstance is gone, so nobody can be asked"
        return Released((*seen.happened, Event("Warning", "ClientOrphaned", told)))
    return None


def orphaned(seen: Seen) -> list[Event]:
    """What a move left behind and nobody can be asked to delete, or nobody can tell from the client of somebody else."""
    found = []
    for place in seen.places:
        if place.home or (place.id and place.facts is not None):
            continue
        what = f"client {place.id or seen.client.spec.client_id}"
        why = (
            "its PocketIDInstance is gone, or is another server by now"
            if place.facts is None
            else "if it was made there on the way, it stays; delete it by hand"
        )
        found.append(Event("Warning", "ClientOrphaned", f"{what} at {place.where.url} is let go: {why}"))
    return found


def server_can_be_asked(seen: Seen) -> Answer:
    """The instance is there: it is waited for."""
    why = seen.instance_fault or seen.api_fault
    if not why:
        return None
    remedy = "set deletionPolicy to Retain to leave the client in Pocket-ID"
    return Waiting("APIClientNotReady", f"{why}; {remedy}", after=seen.settings.resync)


def client_goes(seen: Seen) -> Answer:
    """With its secrets, grants and SCIM provider; the credentials Secret follows its owner."""
    return DeleteClient(seen.client.status.client_id or "")


DELETION_RULES: Final[tuple[Rule, ...]] = (
    no_group_needs_it, groups_hold_it, other_instances_are_left_first, something_is_there, server_can_be_asked,
    worked(Part.IDENTITY), client_goes,
)  # fmt: skip
