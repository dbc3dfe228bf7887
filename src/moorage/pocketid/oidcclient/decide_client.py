"""The policy of the client itself: which instance, whose client, created or adopted. Until all of it holds nothing else is done.

Enters: a snapshot. Leaves: the next plan, or what holds the pass up. Pure.
Source: spec/pocketid.md 3.2 to 3.4, 3.12; case B74; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Failed, Stalled, Waiting

from .lookups import Absent, Ambiguous, Found, Unknown
from .moves import stop_of
from .plans import CreateClient, HoldForGroups, LeaveInstance, Look, LookThere, Part, RefreshMetadata, RemoveAnnotation
from .powers import overreach
from .rule import Answer, Rule, told, worked
from .secret_snapshot import Mode, mode_of
from .seen import Seen
from .seen_parts import Fault
from .sizes import excess
from .types import GROUP_FINALIZER, REFRESH
from .wanted import create_body, is_newborn


def instance_is_selected(seen: Seen) -> Answer:
    """Exactly one; the watch on instances wakes us."""
    if not seen.instance_fault:
        return None
    return Waiting("InstanceSelectionError", seen.instance_fault, after=seen.settings.resync)


def nobody_else_claims_it(seen: Seen) -> Answer:
    """Two resources, one client: the later one is held back before it touches anything."""
    if not seen.held_back:
        return None
    message = f"PocketIDOIDCClient {seen.rival} claims this client already; set another spec.name or spec.clientID, or delete one of the two"
    return Waiting("Conflict", message, after=seen.settings.resync)


def instance_is_ready(seen: Seen) -> Answer:
    """The watch on instances wakes us."""
    instance = seen.instance
    if instance is None or (instance.ready and not instance.terminating):
        return None
    why = "it is being deleted" if instance.terminating else instance.why
    return Waiting("InstanceNotReady", f"PocketIDInstance {instance.key}: {why}", after=seen.settings.resync)


def api_client_is_there(seen: Seen) -> Answer:
    """Address and key; the instance's own pass tells more."""
    if not seen.api_fault:
        return None
    return Waiting("APIClientNotReady", seen.api_fault, after=seen.settings.resync)


def its_id_is_no_way_up(seen: Seen) -> Answer:
    """What stands in front of a server may make `/api/oidc/clients/..` of it."""
    if not seen.client.spec.is_a_way_up:
        return None
    message = f"spec.clientID is {seen.client.spec.client_id!r}, dots alone, which in an address are a way up; recreate this resource with another one"
    return Stalled(Part.IDENTITY.reason, message)


def its_lists_are_bounded(seen: Seen) -> Answer:
    """An object that is older than the bound, or was written while nobody judged it."""
    found = excess(seen.client.spec)
    return None if found is None else Stalled(Part.IDENTITY.reason, f"{found.path} {found.why}")


def groups_hold_it(seen: Seen) -> Answer:
    """Our second finalizer stands while a group lists the client, and until the status says that all of them are gone."""
    told = seen.client.status.groups_vanished or seen.terminating
    wanted = bool(seen.groups.lists_us) or (seen.groups.vanished and not told)
    held = GROUP_FINALIZER in seen.client.metadata.finalizers
    if wanted == held or HoldForGroups(wanted) in seen.done:
        return None
    return HoldForGroups(wanted)


def look_worked(seen: Seen) -> Answer:
    """A failed look is not a fact."""
    match seen.look:
        case Unknown(message, None):
            return Failed(Part.LOOK.reason, message)
        case Unknown(message, after):
            return Waiting(Part.LOOK.reason, message, after=after)
        case None:
            return Failed(Part.LOOK.reason, "Pocket-ID was not asked")
    return None


def it_may_be_had(seen: Seen) -> Answer:
    """A client that exists is not for every namespace that the instance admits."""
    why = overreach(seen)
    return Stalled("NotPermitted", why) if why else None


def name_is_unambiguous(seen: Seen) -> Answer:
    """Adoption by name takes one client or none (B74)."""
    if not isinstance(seen.look, Ambiguous):
        return None
    message = (
        f"{len(seen.look.ids)} clients in Pocket-ID have the name {seen.shown_name!r} ({', '.join(seen.look.ids[:8])});"
        " rename all but one, or recreate this resource with spec.clientID"
    )
    return Waiting(Part.IDENTITY.reason, message, after=seen.settings.resync)


def the_way_is_written_down(seen: Seen) -> Answer:
    """What is made at another instance is known before it is made: whatever becomes of the move, it is left like any other."""
    stop = stop_of(seen)
    if stop is None or stop == seen.way or seen.created:
        return None
    where = f"{stop.instance.namespace}/{stop.instance.name}"
    return Waiting("Creating", f"the client is about to move to PocketIDInstance {where}", after=0.0)


def client_exists(seen: Seen) -> Answer:
    """Create it; a bad reference creates nothing, and a metadata document is registered by the application alone.

    A recorded client that is lost is forgotten before, where a first secret is stored for a client that is new, and for no other.
    """
    if not isinstance(seen.look, Absent):
        return None
    if seen.client.spec.is_document:
        message = "Pocket-ID makes this client when the application first authorizes"
        return Waiting("AwaitingFirstAuthorization", message, after=seen.settings.resync)
    if seen.created:
        return Failed(Part.IDENTITY.reason, "the client was created and is gone again")
    if seen.groups.faults:
        return told(seen.groups.faults[0], seen)
    if isinstance(seen.identities, Fault):
        return told(seen.identities, seen)
    if seen.look.lost and mode_of(seen.client) is Mode.KEPT:
        return Waiting("Creating", "the client is about to be created anew", after=0.0)
    return CreateClient(create_body(seen))


def its_id_is_written_down(seen: Seen) -> Answer:
    """Before a client gets the name that people see: until then its first name says that it is ours, from then on its id."""
    found = seen.found
    if found is None or seen.is_recorded or not is_newborn(seen, found):
        return None
    return Waiting("Creating", "the client was created, and its id is being written down", after=0.0)


def metadata_is_refreshed(seen: Seen) -> Answer:
    """The request is taken away before the call, so that a document that fails is not fetched again and again."""
    if seen.annotations.get(REFRESH) == "true":
        why = "" if seen.is_document else "only a client with a metadata document has metadata to refresh"
        return RemoveAnnotation(REFRESH, why)
    if seen.refreshing and Part.REFRESH not in seen.failures:
        return RefreshMetadata()
    return None


CLIENT_RULES: Final[tuple[Rule, ...]] = (
    instance_is_selected, nobody_else_claims_it, instance_is_ready, api_client_is_there, its_id_is_no_way_up, its_lists_are_bounded, groups_hold_it,
    worked(Part.IDENTITY), look_worked, it_may_be_had, name_is_unambiguous, the_way_is_written_down, client_exists, its_id_is_written_down,
)  # fmt: skip


def other_instances_are_left(seen: Seen) -> Answer:
    """The selector moved: what we made elsewhere goes last, so that there is no moment without a client and a stored secret that works."""
    place = next(iter(seen.to_leave), None)
    if place is None:
        return None
    return LookThere(place.key) if seen.is_doubtful(place) else LeaveInstance(place.key, place.id)


def read_back(seen: Seen) -> Answer:
    """Ready is said of what the server has, not of what it was sent."""
    return Look() if isinstance(seen.look, Found) and seen.look.dirty else None
