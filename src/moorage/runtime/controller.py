"""One controller: what wakes it, its queue, its workers.

Enters: a room, the world, shared reflectors. Leaves: passes, one at a time for each key. A pass that raises becomes a log
line, a metric and a back-off, never a crash and never a condition.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import structlog

from moorage.core.backoff import Backoff
from moorage.core.errors import MoorageError
from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.kube.errors import Conflict

from .lease import NotLeading
from .metrics import Metrics
from .queue import Queue
from .reflector import Listener
from .room import Room, Watch, declared_change
from .walk import Tell, Walk
from .world import World

_log = structlog.get_logger("moorage.controller")


@dataclass(frozen=True, slots=True)
class Pace:
    """Passes at once, seconds between looks at everything, the longest pass, and how failures slow down."""

    workers: int = 4
    resync: float = 600.0
    longest_pass: float = 300.0
    backoff: Backoff = Backoff()  # noqa: RUF009  frozen


_PACE = Pace()


class Controller:
    """Runs one room while this process leads."""

    def __init__(self, room: Room[Any, Any], world: World, metrics: Metrics, *, tell: Tell, pace: Pace = _PACE) -> None:
        self.room, self.world, self.pace = room, world, pace
        self._metrics = metrics.controller(room.name, pace.workers)
        self.queue = Queue(backoff=pace.backoff, watcher=self._metrics)
        metrics.watch_queue(room.name, self.queue)
        self.walk = Walk(room, world, tell)
        self._ends: list[Callable[[], None]] = []
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Listen and work; all objects that are there are looked at."""
        cache = self.world.cache
        self.world.wakers[self.room.kind.resource] = self.queue.add_after
        own = cache.reflector(self.room.kind.resource)
        self._ends.append(own.subscribe(self._own_changed))
        for watch in self.room.watches:
            self._ends.append(cache.reflector(watch.resource).subscribe(self._listener(watch)))
        names = [f"{self.room.name}-{number}" for number in range(self.pace.workers)]
        self._tasks = [asyncio.create_task(self._work(), name=name) for name in names]
        self._tasks.append(asyncio.create_task(self._resync(), name=f"{self.room.name}-resync"))

    async def stop(self, grace: float) -> None:
        """Take nothing new, let passes end for `grace` seconds, then cut them short."""
        while self._ends:
            self._ends.pop()()
        self.queue.close()
        if not self._tasks:
            return
        self._tasks[-1].cancel()
        _, late = await asyncio.wait(self._tasks, timeout=grace)
        for task in late:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- waking

    def _own_changed(self, old: JsonObject | None, new: JsonObject | None) -> None:
        if declared_change(old, new):
            self.queue.add(key_of(new or old or {}))

    def _listener(self, watch: Watch) -> Listener:
        def changed(old: JsonObject | None, new: JsonObject | None) -> None:
            if watch.relevant(old, new):
                for key in self._woken(watch, old, new):
                    self.queue.add(key)

        return changed

    def _woken(self, watch: Watch, old: JsonObject | None, new: JsonObject | None) -> Iterable[Key]:
        """Keys of the object before and after, so that a moved reference wakes both ends."""
        found: dict[Key, None] = {}
        for obj in (old, new):
            if obj is not None:
                found.update(dict.fromkeys(watch.keys(obj, self.world.cache)))
        return found

    async def _resync(self) -> None:
        while True:
            await asyncio.sleep(self.pace.resync * (0.9 + 0.2 * random.random()))  # noqa: S311
            for obj in self.world.cache.list(self.room.kind.resource):
                self.queue.add_after(key_of(obj), self.pace.resync * 0.1 * random.random())  # noqa: S311

    # --- working

    async def _work(self) -> None:
        while (key := await self.queue.get()) is not None:
            began = time.monotonic()
            try:
                result = await self._pass(key)
            finally:
                self.queue.done(key)
            self._metrics.passed(result, time.monotonic() - began)

    async def _pass(self, key: Key) -> str:
        """One pass and what follows from it; the result for the metric."""
        try:
            async with asyncio.timeout(self.pace.longest_pass):
                outcome = await self.walk(key)
        except Conflict as error:
            self._log(key).info("looked at an old object, again", error=str(error), after=self.queue.retry(key))
            return "requeue"
        except NotLeading as error:
            self._log(key).info("pass given up", error=str(error))
            return "requeue"
        except (MoorageError, TimeoutError) as error:
            why = str(error) or "the pass took too long"
            self._log(key).warning("pass failed", error=why, type=type(error).__name__, after=self.queue.retry(key))
            return "error"
        except Exception:  # noqa: BLE001  logged with its traceback, and tried again
            self._log(key).exception("bug in a pass", after=self.queue.retry(key))
            return "error"
        return self._follow(key, outcome)

    def _log(self, key: Key) -> Any:
        return _log.bind(controller=self.room.name, object=str(key))

    def _follow(self, key: Key, outcome: Outcome) -> str:
        match outcome:
            case Failed(reason=reason, message=message):
                delay = self.queue.retry(key)
                self._log(key).warning("pass failed", reason=reason, error=message, after=delay)
                return "error"
            case Done(after=after) | Waiting(after=after) if after is not None and after <= 0:
                self.queue.retry(key)  # soon, and less soon each time: what never gets on must not take the whole loop
                return "requeue"
            case Done(after=after) | Waiting(after=after):
                self.queue.forget(key)
                if after is None:
                    return "success"
                self.queue.add_after(key, after)
                return "requeue_after"
            case Stalled():
                self.queue.forget(key)
                return "success"
