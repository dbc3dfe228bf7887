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
from .lookups import Ambiguous
from .plans import DeleteClient, LookThere, Part
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


def what_was_begun_is_looked_for(seen: Seen) -> Answer:
    """A status without an id knows nothing of a client whose making was not answered, or cut short: one look tells, where there can be one.

    So does it of an id that is not proven: what stands under it by now may be another client.
    """
    spec, instance = seen.client.spec, seen.instance
    known = seen.client.status.client_id and not seen.is_doubted
    if known or seen.look is not None or spec.is_document or spec.deletion_policy == "Retain":
        return None
    if instance is None or instance.leaves or seen.held_back:
        return None
    if seen.client.status.instance is None and (seen.api_fault or not instance.ready):
        return None  # nothing says that there was more of it than now
    return server_can_be_asked(seen) or LookThere(instance.key)


def something_is_there(seen: Seen) -> Answer:
    """Without an id nothing was made; without an instance there is nobody to ask. One that is held back keeps no client alive, nor its secrets."""
    id = _id(seen)
    if isinstance(seen.look, Ambiguous):
        why = "has no id" if not seen.client.status.client_id else "proves not that it is the one that was made"
        told = f"client {', '.join(seen.look.ids)} may be there for this resource, whose status {why}: it stays; delete it by hand if it is not wanted"
        return Released((*seen.happened, Event("Warning", "ClientOrphaned", told)))
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
        if isinstance(place.there, Ambiguous):
            what, why = (
                ", ".join(place.there.ids),
                "if it was made there for this resource, it stays; delete it by hand",
            )
        elif place.facts is None and not place.home:
            what = place.id or seen.client.spec.client_id or ""
            why = "its PocketIDInstance is gone, or is another server by now"
        else:
            continue
        found.append(Event("Warning", "ClientOrphaned", f"client {what} at {place.where.url} is let go: {why}"))
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
    return DeleteClient(_id(seen))


def _id(seen: Seen) -> str:
    """As the status has it, else of what only our own create can have made."""
    return seen.client.status.client_id or (seen.found.id if seen.found is not None else "")


DELETION_RULES: Final[tuple[Rule, ...]] = (
    no_group_needs_it, groups_hold_it, worked(Part.IDENTITY), other_instances_are_left, what_was_begun_is_looked_for,
    something_is_there, server_can_be_asked, client_goes,
)  # fmt: skip
