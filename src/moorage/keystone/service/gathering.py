"""Whether a new projection waits a moment for backends that are just being attached, or closed: each one rolls every pod of the Keystone once.

Enters: the snapshot, with the time in it. Leaves: seconds until another look, 0.0 for "go on". Pure. People apply a folder of backends at once,
and these become ready within a second or two of each other. The wait is bounded: who is ready and
not projected yet waits two seconds at most, whoever else comes; who is alone, and a change of who is projected already, do not wait.
One that is deleted is closed within a second or so, and its files leave the pods after that (S1): sooner, the last one that leaves would roll
them twice, to a sidecar that only denies and then to none. A Keystone that does not answer holds them up for a few seconds only.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from .seen import DEPLOYMENT, Attached, Seen

YOUNG: Final = 10.0
"""Seconds of age up to which a backend that is left out is expected to settle by itself."""
GATHER: Final = 2.0
"""Seconds for which a backend that is ready waits for others. Times of conditions are whole seconds, so it is one to two."""
LOOK: Final = 1.0
CLOSING: Final = 10.0
"""Seconds since its deletion for which a backend is expected to close its identity provider."""


def pause(seen: Seen) -> float:
    """Seconds to wait before the pods are changed."""
    if closing(seen):
        return LOOK
    if seen.child(DEPLOYMENT, seen.name) is None or not _expects_more(seen):
        return 0.0
    attached = set(seen.wanted.attached)
    since = [_ready_since(item) for item in seen.inputs.backends if item.name in attached and not item.projected]
    waited = [(seen.now - time).total_seconds() for time in since if time is not None]
    return LOOK if since and len(waited) == len(since) and max(waited) < GATHER else 0.0


def closing(seen: Seen) -> list[str]:
    """Names of the federated backends that are being deleted, and that their own controllers are about to close."""
    return [item.name for item in seen.inputs.backends if _closes(item, seen.now)]


def _closes(item: Attached, now: datetime) -> bool:
    since = _time(item.backend.metadata.deletion_timestamp)
    opened = any(c.type == "FederationObjectsReady" and c.status == "True" for c in item.backend.status.conditions)
    return opened and since is not None and (now - since).total_seconds() < CLOSING


def _expects_more(seen: Seen) -> bool:
    left = {item.name for item in seen.wanted.left}
    return any(item.name in left and _age(item, seen.now) < YOUNG for item in seen.inputs.backends)


def _age(item: Attached, now: datetime) -> float:
    born = _time(item.backend.metadata.creation_timestamp)
    return (now - born).total_seconds() if born else YOUNG


def _ready_since(item: Attached) -> datetime | None:
    return next(
        (_time(c.last_transition_time) for c in item.backend.status.conditions if c.type == "DomainReady"), None
    )


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None
