"""Whether a new projection waits a moment for backends that are just being attached: each one rolls every pod of the Keystone once.

Enters: the snapshot, with the time in it. Leaves: seconds until another look, 0.0 for "go on". Pure. People apply a folder of backends at once,
and these become ready within a second or two of each other. The wait is bounded: who is ready and
not projected yet waits two seconds at most, whoever else comes; who is alone, and a change of who is projected already, do not wait.
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


def pause(seen: Seen) -> float:
    """Seconds to wait before the pods are changed."""
    if seen.child(DEPLOYMENT, seen.name) is None or not _expects_more(seen):
        return 0.0
    attached = set(seen.wanted.attached)
    since = [_ready_since(item) for item in seen.inputs.backends if item.name in attached and not item.projected]
    waited = [(seen.now - time).total_seconds() for time in since if time is not None]
    return LOOK if since and len(waited) == len(since) and max(waited) < GATHER else 0.0


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
