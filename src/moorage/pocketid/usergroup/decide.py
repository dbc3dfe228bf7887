"""The policy of a group, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: the next plan, or what the pass came to. Pure. Which clients may use the group is never written here: that
table has one writer, the client's room. Source: spec/pocketid.md 2.2, 4.6; decisions, Pocket-ID 3.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Outcome, Stalled, Waiting
from moorage.pocketid.powers import first_name
from moorage.pocketid.sibling import (
    BEFORE,
    REFUSED_POLL,
    Answer,
    Record,
    Rule,
    bound_first,
    first_answer,
    instance_is_ready,
    instance_leaves_it,
    marked,
    no_client_refers,
    nothing_is_left_there,
    retained,
    server_can_be_asked,
    what_was_begun_is_known,
    within_limits,
)
from moorage.runtime.room import Event, Released

from .admission import limits
from .powers import id_is_written_down, overreach
from .seen import Create, Delete, Plan, Rename, Seen, SetClaims, SetMembers
from .types import CLIENT_FINALIZER


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan, or what the pass came to."""
    rules = DELETION if seen.resource.metadata.deletion_timestamp else RULES
    answer: Plan | Outcome | Released = first_answer(rules, seen)
    return answer


def it_may_be_had(seen: Seen) -> Answer:
    """A group that exists is not for every namespace that the instance admits."""
    why = overreach(seen)
    return Stalled("NotPermitted", why) if why else None


def group_exists(seen: Seen) -> Answer:
    """Created when no group has its name; one that has it is adopted."""
    return Create(seen.name, first_name(seen, seen.friendly_name)) if seen.found is None else None


def directory_agrees(seen: Seen) -> Answer:
    """A group of the directory takes claims only; what else is declared must be so there already."""
    group = seen.found
    if group is None or not group.ldap_id:
        return None
    wrong = [
        name
        for name, differs in (
            ("name", group.name != seen.name),
            (
                "friendlyName",
                seen.resource.spec.friendly_name is not None and group.friendly_name != seen.friendly_name,
            ),
            ("users", not seen.members <= (group.users or frozenset())),
        )
        if differs
    ]
    if not wrong:
        return None
    fields = ", ".join(f"spec.{name}" for name in wrong)
    message = f"the directory (LDAP) manages group {group.name!r}: change {fields} there, and here to match"
    return Waiting("ManagedByDirectory", message, after=REFUSED_POLL)


def names_are_current(seen: Seen) -> Answer:
    """Both names, compared as the server keeps them."""
    group = seen.found
    if group is None or group.ldap_id or (group.name, group.friendly_name) == (seen.name, seen.friendly_name):
        return None
    return Rename(group.id, seen.name, seen.friendly_name)


def claims_are_exact(seen: Seen) -> Answer:
    """Exactly the declared claims; their order means nothing."""
    group = seen.found
    if group is None or tuple(sorted(group.claims, key=lambda item: item.key)) == seen.claims:
        return None
    return SetClaims(group.id, seen.claims)


def members_are_written_down(seen: Seen) -> Answer:
    """Whom we are about to add is recorded first: only those are ever taken out again, also by the next life of this process."""
    group = seen.found
    if group is None or group.users is None or group.ldap_id:
        return None
    new = seen.members - group.users - seen.ours
    if not new:
        return None
    return Record((("groupID", group.id), ("managedUserIDs", sorted(seen.ours | new))), "members that are added next")


def members_are_there(seen: Seen) -> Answer:
    """The union of the members of others and ours."""
    group = seen.found
    if group is None or group.users is None or group.ldap_id or _wanted(seen) == group.users:
        return None
    return SetMembers(group.id, _wanted(seen))


def users_are_found(seen: Seen) -> Answer:
    """Everybody else is a member by now; nobody is taken out until the last one is found."""
    if not seen.missing:
        return None
    return Waiting("UserNotFound", f"spec.users: {'; '.join(seen.missing)}", after=seen.resync)


def _wanted(seen: Seen) -> frozenset[str]:
    """Nobody that others added is taken out."""
    present = (seen.found.users if seen.found else None) or frozenset()
    return (present - (frozenset() if seen.missing else seen.ours - seen.members)) | seen.members


RULES: Final[tuple[Rule, ...]] = (
    *BEFORE, it_may_be_had, within_limits(limits), bound_first("groupID", "managedUserIDs"), marked(CLIENT_FINALIZER), group_exists, id_is_written_down, names_are_current, claims_are_exact,
    members_are_written_down, members_are_there, directory_agrees, users_are_found,
)  # fmt: skip


# --- deletion


def directory_keeps_it(seen: Seen) -> Answer:
    """A group of the directory goes there, not here."""
    refused = any(trouble.refused_by_directory for _, trouble in seen.failed)
    if not refused and not seen.resource.status.ldap_id:
        return None
    return Released((Event("Normal", "Retained", f"the directory (LDAP) manages {seen.known}; it stays in Pocket-ID"),))


def delete(seen: Seen) -> Answer:
    """Whoever could use a client through this group alone can use it no more; the client stays restricted."""
    return Delete(seen.known) if seen.known else None


DELETION: Final[tuple[Rule, ...]] = (
    no_client_refers, marked(CLIENT_FINALIZER), what_was_begun_is_known, nothing_is_left_there, instance_leaves_it, retained, directory_keeps_it, instance_is_ready,
    server_can_be_asked, delete,
)  # fmt: skip
