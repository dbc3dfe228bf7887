"""What a person reads about a group: Ready, what it is in Pocket-ID, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.core.outcome import Done, Outcome
from moorage.pocketid.powers import not_trusted
from moorage.pocketid.references import READY
from moorage.pocketid.sibling import SHARED_EVENTS, SHARED_REASONS, moment, said
from moorage.runtime.room import Event, Report

from .powers import overreach
from .seen import Seen

REASONS: Final = {READY: (*SHARED_REASONS, "ManagedByDirectory", "NotPermitted", "UserNotFound")}
"""Every reason by condition type, for the reference."""
EVENTS: Final = (
    "GroupCreated", "GroupAdopted", "GroupUpdated", "GroupDeleted", "Retained", "ClientNotFound", "ManagedByDirectory", "NotPermitted", "UserNotFound",
    *SHARED_EVENTS,
)  # fmt: skip
"""Every event reason, for the reference."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """The condition, status fields and events of one pass."""
    done = said(seen, outcome, {} if seen.found is None or seen.rival or overreach(seen) else _status(seen, outcome))
    absent = [
        Event("Warning", "ClientNotFound", f"spec.allowedOIDCClients: PocketIDOIDCClient {name} does not exist")
        for name in seen.no_clients
    ]
    barred = [
        Event("Warning", "NotPermitted", not_trusted(seen, f"spec.allowedOIDCClients: {name} is of another namespace"))
        for name in seen.barred
    ]
    return Report(done.conditions, done.status, (*done.events, *absent, *barred))


def _status(seen: Seen, outcome: Outcome) -> dict[str, Any]:
    group, stored = seen.found, seen.resource.status
    assert group is not None
    settled = seen.ours & seen.members if isinstance(outcome, Done) else seen.ours
    count = len(group.users) if group.users is not None else group.user_count
    claims = sorted(group.claims, key=lambda item: item.key)
    return {
        "groupID": group.id,
        "name": group.name,
        "friendlyName": group.friendly_name,
        "createdAt": stored.created_at
        if stored.group_id == group.id and stored.created_at
        else moment(group.created_at),
        "ldapID": group.ldap_id or None,
        "totalUserCount": count,
        "managedUserIDs": sorted(settled) or None,
        "customClaims": [{"key": item.key, "value": item.value} for item in claims] or None,
        "allowedOIDCClientIDs": list(seen.clients) or None,
    }
