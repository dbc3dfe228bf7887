"""What a person reads about a user: Ready, what it is in Pocket-ID, where its Secrets are, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure. It names Secrets and never what they hold.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from moorage.core.outcome import Outcome
from moorage.pocketid.references import READY
from moorage.pocketid.sibling import SHARED_EVENTS, SHARED_REASONS, moment, said
from moorage.runtime.room import Report

from .keys import place
from .powers import overreach
from .seen import Seen

REASONS: Final = {READY: (*SHARED_REASONS, "ValueNotFound", "ForeignSecret", "ManagedByDirectory", "NotPermitted")}
"""Every reason by condition type, for the reference."""
EVENTS: Final = (
    "UserCreated", "UserAdopted", "UserUpdated", "UserDeleted", "APIKeyDeleted", "Retained", "ValueNotFound", "ForeignSecret",
    "ManagedByDirectory", "NotPermitted", *SHARED_EVENTS,
)  # fmt: skip
"""Every event reason, for the reference."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """The condition, status fields and events of one pass."""
    return said(seen, outcome, _status(seen))


def _status(seen: Seen) -> dict[str, Any]:
    """What it is; of one that may not be had, what is left of the keys that were made for it before."""
    user, end = seen.found, seen.link_until
    if user is None or seen.rival:
        return {}
    if overreach(seen):
        return {"apiKeys": [*_keys(seen)] or None} if user.id == seen.known else {}
    claims = sorted(user.claims, key=lambda item: item.key)
    owed = end is not None and user.id == seen.wanted_id
    return {
        "userID": user.id,
        "username": user.username,
        "isAdmin": user.is_admin,
        "disabled": user.disabled,
        "locale": user.locale,
        "emailVerified": user.email_verified,
        "ldapID": user.ldap_id or None,
        "customClaims": [{"key": item.key, "value": item.value} for item in claims] or None,
        "userInfoSecretName": seen.data["metadata"]["name"] if seen.data is not None and not seen.foreign else None,
        "oneTimeLoginExpiresAt": moment(end) if owed else None,
        "apiKeys": [*_keys(seen)] or None,
    }


def _keys(seen: Seen) -> list[dict[str, Any]]:
    found = []
    for key in seen.resource.spec.api_keys or ():
        secret, entry = place(seen.resource, key)
        held = seen.shelves[secret].get(key.name)
        if held is not None:
            times = {"createdAt": held.made, "expiresAt": held.ends}
            shown = {name: moment(datetime.fromisoformat(text)) for name, text in times.items()}
            found.append({"name": key.name, "id": held.id, **shown, "secretName": secret, "secretKey": entry})
    return found
