"""What a person reads about an API: Ready, what it is in Pocket-ID, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.core.outcome import Outcome
from moorage.pocketid.references import READY
from moorage.pocketid.sibling import SHARED_EVENTS, SHARED_REASONS, moment, said
from moorage.runtime.room import Report

from .powers import overreach
from .seen import Seen

REASONS: Final = {READY: (*SHARED_REASONS, "NotPermitted")}
"""Every reason by condition type, for the reference."""
EVENTS: Final = (
    "APICreated",
    "APIAdopted",
    "APIUpdated",
    "APIDeleted",
    "AccessRevoked",
    "Retained",
    "NotPermitted",
    *SHARED_EVENTS,
)
"""Every event reason, for the reference."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """The condition, status fields and events of one pass."""
    return said(seen, outcome, {} if seen.found is None or seen.rival or overreach(seen) else _status(seen))


def _status(seen: Seen) -> dict[str, Any]:
    api, stored = seen.found, seen.resource.status
    assert api is not None
    permissions = sorted(api.permissions, key=lambda item: item.key)
    return {
        "apiID": api.id,
        "name": api.name,
        "resource": api.resource,
        "createdAt": stored.created_at if stored.api_id == api.id and stored.created_at else moment(api.created_at),
        "cimdAccess": api.allow_cimd,
        "permissions": [
            {"id": item.id, "key": item.key, "name": item.name, "cimdAccess": item.allowed_for_cimd}
            for item in permissions
        ]
        or None,
    }
