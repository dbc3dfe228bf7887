"""Metrics of clients: secrets, rotation, groups.

Enters: what a pass saw, did and reported. Leaves: numbers in the process's registry. Labels hold names of objects, never content; they go
with the resource. Source: spec/pocketid.md 6.1.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal

from moorage.core.durations import parse_duration
from moorage.core.meta import Key
from moorage.pocketid import metrics as shared
from moorage.pocketid.metrics import PREFIX
from moorage.runtime.series import Labels, Series

from .powers import adopts
from .rotation import Deferral, Deferred, happened, moment, opening
from .secrets import Retired, Trigger
from .seen import Seen
from .types import KIND

_CLIENT: Final = ("namespace", "name")
ROTATIONS: Final = Series(
    "counter",
    f"{PREFIX}oidcclient_secret_rotations",
    "Client secrets made, by reason and result.",
    _CLIENT,
    ("result", "trigger"),
)
RETIRED: Final = Series(
    "counter", f"{PREFIX}oidcclient_secrets_retired", "Client secrets deleted, by reason.", _CLIENT, ("reason",)
)
DEFERRED: Final = Series(
    "counter",
    f"{PREFIX}oidcclient_rotation_deferred",
    "Looks at a rotation that is due and cannot happen.",
    _CLIENT,
    ("reason",),
)
_GAUGES: Final = {
    name: Series("gauge", f"{PREFIX}oidcclient_{name}", doc, _CLIENT)
    for name, doc in {
        "secrets": "Client secrets that Pocket-ID holds, expired ones included.",
        "allowed_group_count": "Groups that may use the client.",
        "pkce_supported": "1 when the client was seen to use PKCE that is not required.",
        "rotation_enabled": "1 while the client secret is rotated on schedule.",
        "rotation_interval_seconds": "Time between rotations, of those that have an interval.",
        "last_rotation_timestamp_seconds": "When the client secret was last made.",
        "next_rotation_timestamp_seconds": "When it is due, of those that have an interval.",
        "rotation_window_open": "1 while the window of rotations is open.",
        "rotation_window_next_open_timestamp_seconds": "When the window opens next.",
        "rotation_window_next_close_timestamp_seconds": "When the window closes next.",
    }.items()
}
_TRIGGERS: Final = (Trigger.SCHEDULED, Trigger.MANUAL, Trigger.INITIAL, Trigger.DRIFT)


def rotated(key: Key, trigger: Trigger, result: Literal["success", "error"]) -> None:
    """A secret was made and stored, or was to be."""
    ROTATIONS.inc(_labels(key), result, trigger)


def retired(key: Key, reason: Retired) -> None:
    """A secret was deleted."""
    RETIRED.inc(_labels(key), reason)


def observe(seen: Seen, *, ready: bool) -> None:
    """What the pass found."""
    key = seen.key
    shared.ready(KIND.kind, key, ready)
    if adopts(seen):
        shared.operated(KIND.kind, "adopted")
    _begin(_labels(key))
    if seen.secrets is not None and isinstance(seen.secrets.rotation, Deferred):
        DEFERRED.inc(_labels(key), seen.secrets.rotation.reason)
    for name, value in _values(seen).items():
        if value is None:
            _GAUGES[name].drop(_labels(key))
        else:
            _GAUGES[name].set(_labels(key), value)


def _begin(of: Labels) -> None:
    """Series that count exist from the start, at zero."""
    for trigger in _TRIGGERS:
        for result in ("success", "error"):
            ROTATIONS.begin(of, result, trigger)
    for reason in Retired:
        RETIRED.begin(of, reason)
    for deferral in Deferral:
        DEFERRED.begin(of, deferral)


def _values(seen: Seen) -> dict[str, float | None]:
    """The gauges; None for one that has no meaning for this client."""
    found, secrets = seen.found, seen.secrets
    rotated_at = happened(seen.history.rotated_at, seen.now)
    return {
        "secrets": len(secrets.held) if secrets is not None else None,
        "allowed_group_count": found.group_count if found is not None else None,
        "pkce_supported": float(found.pkce_supported) if found is not None else None,
        "last_rotation_timestamp_seconds": rotated_at.timestamp() if rotated_at else None,
        **_rotation(seen, rotated_at),
    }


def _rotation(seen: Seen, rotated_at: datetime | None) -> dict[str, float | None]:
    rotation = seen.client.spec.client_secret_rotation
    active = rotation is not None and rotation.enabled and seen.client.spec.credentials.store_client_secret
    interval = _seconds(rotation.interval) if active and rotation is not None and rotation.interval else None
    anchor = rotated_at or moment(seen.client.metadata.creation_timestamp)
    window = opening(seen.now, rotation, seen.settings.zone) if active else None
    return {
        "rotation_enabled": float(active),
        "rotation_interval_seconds": interval,
        "next_rotation_timestamp_seconds": anchor.timestamp() + interval if anchor and interval else None,
        "rotation_window_open": float(window.is_open) if window else None,
        "rotation_window_next_open_timestamp_seconds": window.opens.timestamp() if window else None,
        "rotation_window_next_close_timestamp_seconds": window.closes.timestamp() if window else None,
    }


def _seconds(text: str) -> float | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None


def forget(key: Key) -> None:
    """The resource is gone; its numbers go with it."""
    shared.forget(KIND.kind, key)
    for series in (ROTATIONS, RETIRED, DEFERRED, *_GAUGES.values()):
        series.drop(_labels(key))


def _labels(key: Key) -> Labels:
    return key.namespace, key.name
