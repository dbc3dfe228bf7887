"""The runtime on a clock of its own: real controllers on the embedded API server, whose queues wait in seconds that a test lets pass.

Enters: a scene. Leaves: Hours. Time passes for the operator, its queues and the server alike, and only between passes: what a pass does over the
wires takes none of it. No jitter, so that a test can count.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from moorage.pocketid.instance.room import ROOM as INSTANCE_ROOM
from moorage.pocketid.oidcclient.room import ROOM
from moorage.runtime.controller import Controller
from moorage.runtime.metrics import Metrics
from moorage.runtime.queue import Queue
from moorage.runtime.room import Room
from moorage.runtime.world import World

from .scene import Scene, fresh


@dataclass(eq=False)
class Timer:
    """A call at a time."""

    due: float
    call: Callable[[], None]
    live: bool = True

    def cancel(self) -> None:
        self.live = False


@dataclass
class Hours:
    """Virtual seconds since the start."""

    here: Scene
    world: World
    controllers: list[Controller] = field(default_factory=list)
    passed: float = 0.0
    _timers: list[Timer] = field(default_factory=list)

    def add(self, room: Room[Any, Any], metrics: Metrics) -> None:
        """A controller of that room, on this clock."""
        made = Controller(room, self.world, metrics, tell=lambda _ref, event: self.here.told.append(event))
        made.queue = Queue(backoff=made.pace.backoff, clock=lambda: self.passed, later=self._later, chance=lambda: 0.0)
        self.controllers.append(made)

    def _later(self, seconds: float, call: Callable[[], None]) -> Timer:
        timer = Timer(self.passed + seconds, call)
        self._timers.append(timer)
        return timer

    async def run(self, seconds: float) -> None:
        """Let time pass; whatever comes due is done, in order."""
        end = self.passed + seconds
        await self.quiet()
        while due := self._next(end):
            self._forward(due[0].due)
            for timer in due:
                self._timers.remove(timer)
                timer.call()
            await self.quiet()
        self._forward(end)

    async def minutes(self, count: int, measure: Callable[[], int]) -> list[int]:
        """Let minutes pass; how much a number grew in each."""
        found = []
        for _ in range(count):
            before = measure()
            await self.run(60)
            found.append(measure() - before)
        return found

    def _next(self, end: float) -> list[Timer]:
        """Those that come due first, all of one moment."""
        self._timers = [timer for timer in self._timers if timer.live]
        first = min((timer.due for timer in self._timers), default=end + 1)
        return [timer for timer in self._timers if timer.due == first <= end]

    def _forward(self, to: float) -> None:
        self.here.later(seconds=to - self.passed)
        self.passed = to

    async def quiet(self) -> None:
        """Until no key waits or is worked on, and the caches hold what the API server holds."""
        async with asyncio.timeout(120):
            while True:
                await self._idle()
                await fresh(self.here, self.world)
                if not self._busy():
                    return

    async def _idle(self) -> None:
        while self._busy():  # noqa: ASYNC110 - queues have no event of being empty
            await asyncio.sleep(0.002)

    def _busy(self) -> bool:
        return any(len(item.queue) or item.queue.working() for item in self.controllers)


@contextlib.asynccontextmanager
async def running(here: Scene, rooms: Sequence[Room[Any, Any]] = (INSTANCE_ROOM, ROOM)) -> AsyncIterator[Hours]:
    """An operator at work for the time of a `with`."""
    async with here.world() as world:
        hours, metrics = Hours(here, world), Metrics()
        for room in rooms:
            hours.add(room, metrics)
        for controller in hours.controllers:
            controller.start()
        try:
            yield hours
        finally:
            for controller in hours.controllers:
                await controller.stop(5)
