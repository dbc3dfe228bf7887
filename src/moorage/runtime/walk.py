"""The walk: one pass of one object through the doors of its room. The only way a kind is written.

    finalizer first -> observe once -> (decide -> apply)* -> report -> one status patch, or none

Enters: a room, the world, a key: never the event that woke it. Leaves: the outcome by which the queue goes on. It touches
no finalizer but the room's own, and writes the status subresource only. A conflict means that the pass looked at an old
object: it is run again on a fresh one. An object that is gone is done (case B78).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from moorage.core import conditions
from moorage.core.meta import JsonObject, Key, Ref, is_terminating, key_of, ref_of
from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.kube.errors import Conflict, Invalid, NotFound

from .diff import merge_patch, without_nulls
from .room import Event, Released, Report, Room, Seen, Watch

if TYPE_CHECKING:
    from .world import World

__all__ = ["Event", "Released", "Report", "Room", "Walk", "Watch"]

Tell = Callable[[Ref, Event], None]
"""Takes an event; never blocks, never raises."""


@dataclass
class Walk:
    """Runs passes of one room. `tell` hands events to the recorder.

    It remembers, for each object, the events of the pass before: what is still so is not told again, and the first pass of
    a process stays silent unless it wrote to the API server.
    """

    room: Room[Any, Any]
    world: World
    tell: Tell = lambda _ref, _event: None
    _told: dict[Key, tuple[str, frozenset[Event]]] = field(default_factory=dict, init=False)

    async def __call__(self, key: Key) -> Outcome:
        """One pass.

        Raises:
            Conflict, Invalid: the pass looked at an old object; run it again.
            MoorageError: a wire broke. Anything else is a bug.
        """
        obj = self.world.cache.get(self.room.kind.resource, key)
        if obj is not None:
            obj = await self._with_finalizer(obj)
        if obj is None:
            return await self._gone(key)
        try:
            return await self._pass(key, obj)
        except NotFound:
            if await self.world.refresh(self.room.kind.resource, key) is None:
                return await self._gone(key)
            raise

    async def _gone(self, key: Key) -> Outcome:
        """Nothing is left to do. The room is asked for a snapshot all the same: it finds none, and drops what it remembers of the object."""
        self._told.pop(key, None)
        if self.world.cache.get(self.room.kind.resource, key) is None:
            await self.room.observe(self.world, key)
        return Done()

    async def _pass(self, key: Key, obj: JsonObject) -> Outcome:
        seen = await self.room.observe(self.world, key)
        if seen is None:
            return Done()
        writes = _Counter()
        answer, seen = await self._rounds(self.world.counting(writes), seen)
        if isinstance(answer, Released):
            self._announce(obj, answer.events, changed=True)
            await self._without_finalizer(obj)
            return Done()
        report = self.room.report(seen, answer)
        changed = await self._write_status(obj, report)
        self._announce(obj, report.events, changed=changed or writes.count > 0)
        return answer

    async def _rounds(self, world: World, seen: Seen) -> tuple[Outcome | Released, Seen]:
        room = cast("Room[Seen, Any]", self.room)
        for _ in range(room.rounds):
            answer = room.decide(seen)
            if isinstance(answer, Done | Waiting | Stalled | Failed | Released):
                return answer, seen
            seen = await room.apply(world, seen, answer)
        answer = room.decide(seen)
        if isinstance(answer, Done | Waiting | Stalled | Failed | Released):
            return answer, seen
        text = f"no end after {room.rounds} steps; the next one would be {type(answer).__name__}"
        return Failed("TooManySteps", text), seen

    # --- finalizers

    async def _with_finalizer(self, obj: JsonObject) -> JsonObject | None:
        """The object with our finalizer; a terminating one is left as it is."""
        ours = self.room.finalizer
        if ours is None or is_terminating(obj) or ours in _finalizers(obj):
            return obj
        return await self._edit_finalizers(obj, lambda stored: [*stored, ours])

    async def _without_finalizer(self, obj: JsonObject) -> None:
        ours = self.room.finalizer
        if ours is not None and ours in _finalizers(obj):
            await self._edit_finalizers(obj, lambda stored: [item for item in stored if item != ours])

    async def _edit_finalizers(self, obj: JsonObject, edit: Callable[[list[str]], list[str]]) -> JsonObject | None:
        """Patch the list, guarded by resourceVersion, so that foreign finalizers are never lost or brought back.

        On a conflict the object is read again, a few times; None when it is gone.
        """
        rt, uid = self.room.kind.resource, obj["metadata"].get("uid")
        for _ in range(4):
            wanted = edit(_finalizers(obj))
            if wanted == _finalizers(obj):
                return obj
            meta = {"resourceVersion": obj["metadata"].get("resourceVersion"), "finalizers": wanted}
            key = key_of(obj)
            try:
                return await self.world.patch(rt, key, {"metadata": meta})
            except NotFound:
                self.world.cache.forget(rt, key, str(uid or ""))
                return None
            except (Conflict, Invalid) as error:
                refused = error
            fresh = await self.world.refresh(rt, key)
            if fresh is None or fresh["metadata"].get("uid") != uid:
                return None
            if is_terminating(fresh) and not is_terminating(obj):
                return fresh
            obj = fresh
        raise refused

    # --- status

    async def _write_status(self, obj: JsonObject, report: Report) -> bool:
        """One merge patch with what differs, or no request.

        It is guarded by resourceVersion: the status subresource takes no other precondition, and an object that was made
        anew under the same name must not get this status. When somebody else wrote meanwhile, it is computed again on
        what they wrote: what this pass found out is not lost.
        """
        rt, uid, generation = self.room.kind.resource, obj["metadata"].get("uid"), obj["metadata"].get("generation", 0)
        now, key = self.world.now().strftime(_TIME), key_of(obj)
        live: JsonObject | None = self.world.cache.get(rt, key) or obj
        for _ in range(4):
            if live is None or live["metadata"].get("uid") != uid:
                return False
            patch = merge_patch(live.get("status") or {}, wanted_status(live, report, generation, now))
            if not patch:
                return False
            body = {"metadata": {"resourceVersion": live["metadata"].get("resourceVersion")}, "status": patch}
            try:
                await self.world.patch(rt, key, body, subresource="status")
            except Conflict as error:
                refused = error
                live = await self.world.refresh(rt, key)
            else:
                return True
        raise refused

    # --- events

    def _announce(self, obj: JsonObject, events: tuple[Event, ...], *, changed: bool) -> None:
        ref = ref_of(obj)
        known = self._told.get(ref.key)
        before = known[1] if known is not None and known[0] == ref.uid else None
        self._told[ref.key] = (ref.uid, frozenset(events))
        if before is None and not changed:
            return
        for event in events:
            if before is None or event not in before:
                self.tell(ref, event)


class _Counter:
    """Counts the writes of one pass, as a guard that refuses none."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


_TIME = "%Y-%m-%dT%H:%M:%SZ"


def wanted_status(obj: JsonObject, report: Report, generation: int, now: str) -> JsonObject:
    """The whole status after a report: stored fields, the report's over them, conditions merged.

    Args:
        generation: that the pass looked at.
        now: RFC 3339 with whole seconds.
    """
    stored: JsonObject = obj.get("status") or {}
    merged = conditions.merge(
        conditions.from_wire(stored.get("conditions")), report.conditions, generation=generation, now=now
    )
    status = without_nulls({**stored, **report.status})
    status["observedGeneration"] = generation
    status["conditions"] = [item.to_wire() for item in merged]
    return status


def _finalizers(obj: JsonObject) -> list[str]:
    return list(obj["metadata"].get("finalizers") or ())
