"""The policy of an instance on its way out: what is deleted beside it is deleted at the server first, then the API key and the instance go.

A namespace, or a folder of files, is deleted all at once. An instance and a key that went first would leave clients at the server whose secrets
work, and nobody to take them away. So both stay until that is done; they stay a bounded time, whatever happens to the server.
Enters: a snapshot. Leaves: a plan, what it waits for, or Released. Pure. Source: ADR 0018; spec/pocketid.md 3.13.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeAlias

from moorage.core.meta import JsonObject, is_terminating
from moorage.core.outcome import Done, Outcome, Waiting
from moorage.pocketid.references import LEAVE
from moorage.runtime.room import Event, Released

from .plan import HoldKey, Plan
from .seen import Seen
from .types import FINALIZER, KEY_FINALIZER

BLOCKED: Final = "DeletionBlocked"
LONGEST: Final = 600.0
"""Seconds that a deletion waits for objects that are being deleted, too; then the instance goes, and they are let go by their own rooms."""
GRACE: Final = 30.0
"""Seconds in which the deletion of what belongs together reaches all of it: kubectl and the namespace controller go from kind to kind."""
_POLL: Final = 5.0
_SHOWN: Final = 6
Answer: TypeAlias = Plan | Outcome | Released | None


def objects_go_first(seen: Seen) -> Answer:
    """Those that are being deleted. For those that are not it waits a moment: their deletion may be on its way."""
    if seen.server_is_gone or seen.instance.metadata.annotations.get(LEAVE) == "true":
        return None
    passed, bound = _since(seen.instance.metadata.deletion_timestamp, seen.now), seen.bound
    if bound.leaving and passed < LONGEST:
        said = (
            f"deletion waits until these are deleted at the server: {_listed(bound.leaving)}; it waits ten minutes at most;"
            f' annotation {LEAVE}: "true" leaves them there at once'
        )
        return Waiting(BLOCKED, said, after=_POLL)
    if bound.staying and passed < GRACE:
        said = f"deletion waits half a minute, in case these are deleted, too: {_listed(bound.staying)}"
        return Waiting(BLOCKED, said, after=GRACE - passed)
    return None


def keys_are_let_go(seen: Seen) -> Answer:
    """Before the instance: once it is gone, nobody would know that the Secret is held."""
    own = seen.keys.own
    if own is not None and _is_held(own) and not seen.keys.shared:
        return HoldKey(own, held=False)
    return spare_keys_are_let_go(seen)


def it_is_let_go(seen: Seen) -> Answer:
    """What is left at the server is told. After that it may still be held by others."""
    if FINALIZER not in seen.instance.metadata.finalizers:
        return Done()
    left = (*seen.bound.leaving, *seen.bound.staying)
    if not left:
        return Released()
    said = f"the instance goes; these belong to it and cannot be deleted at the server any more: {_listed(left)}"
    return Released((Event("Warning", "ObjectsLeft", said),))


DELETION: Final[tuple[Callable[[Seen], Answer], ...]] = (objects_go_first, keys_are_let_go, it_is_let_go)


# --- while the instance stays


def key_is_held(seen: Seen) -> Answer:
    """Of a server that runs already: the Secret outlives the moment in which it and all that needs it are deleted together.

    One that a person deletes alone goes after that moment: nothing is held for ever.
    """
    own = seen.keys.own
    if own is None or seen.keys.refused:
        return None
    if not is_terminating(own):
        return None if _is_held(own) else HoldKey(own, held=True)
    over = _since(own["metadata"]["deletionTimestamp"], seen.now) >= GRACE
    return HoldKey(own, held=False) if over and _is_held(own) else None


def spare_keys_are_let_go(seen: Seen) -> Answer:
    """Secrets that were named before."""
    return HoldKey(seen.keys.spare[0], held=False) if seen.keys.spare else None


def next_look(seen: Seen) -> float:
    """Seconds: the resync, or sooner when the Secret is to be let go."""
    own = seen.keys.own
    if own is None or not is_terminating(own):
        return seen.resync
    left = GRACE - _since(own["metadata"]["deletionTimestamp"], seen.now)
    return min(seen.resync, left) if left > 0 else seen.resync


def _is_held(secret: JsonObject) -> bool:
    return KEY_FINALIZER in (secret["metadata"].get("finalizers") or ())


def _since(time: str | None, now: datetime) -> float:
    """Seconds since a time that the API server wrote; clocks may differ, so never less than none."""
    return max(0.0, (now - datetime.fromisoformat(time)).total_seconds()) if time else 0.0


def _listed(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
