"""Probes of one running container: startup, then liveness and readiness side by side.

Enters: a container's probes and a way to ask. Leaves: `started`, `ready`, and one word when the container must be killed.
It must not restart anything. Source: Kubernetes documentation, "Configure Liveness, Readiness and Startup Probes".
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from moorage.core.meta import JsonObject


@dataclass(frozen=True, slots=True)
class Answer:
    """What one attempt said."""

    good: bool
    message: str = ""


Ask = Callable[[JsonObject], Awaitable[Answer]]
"""Makes one attempt of a probe; it ends within the probe's timeout and does not raise."""


@dataclass(frozen=True, slots=True)
class Events:
    """Whom to tell. `failed` gets the kind of probe, its message, and whether the container must be killed."""

    changed: Callable[[], None]
    failed: Callable[[str, str, bool], None]


@dataclass(slots=True)
class Prober:
    """The probe loops of one run. `ready` and `started` are True at once where no probe is declared."""

    container: JsonObject
    ask: Ask
    events: Events
    started: bool = False
    ready: bool = False
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self, *, was_started: bool = False, was_ready: bool = False) -> None:
        """Starts the loops. What an earlier node found holds until a probe says otherwise."""
        self.started = was_started or "startupProbe" not in self.container
        self.ready = self.started and (was_ready or "readinessProbe" not in self.container)
        self._tasks = [asyncio.create_task(self._all())]

    def stop(self) -> None:
        """Ends the loops; the container is not ready any more."""
        self.ready = False
        for task in self._tasks:
            task.cancel()

    async def _all(self) -> None:
        startup = self.container.get("startupProbe")
        if startup and not self.started:
            if not await self._until(startup, "Startup"):
                return
            self.started = True
            self.ready = "readinessProbe" not in self.container
            self.events.changed()
        loops = [(self._readiness, "readinessProbe"), (self._liveness, "livenessProbe")]
        async with asyncio.TaskGroup() as group:
            for loop, name in loops:
                if probe := self.container.get(name):
                    group.create_task(loop(probe))

    async def _until(self, probe: JsonObject, kind: str) -> bool:
        """Asks until the answer is good (True) or the failures are used up (False, and told)."""
        failures = 0
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        while True:
            answer = await self.ask(probe)
            if answer.good:
                return True
            failures += 1
            last = failures >= probe.get("failureThreshold", 3)
            self.events.failed(kind, answer.message, last)
            if last:
                return False
            await asyncio.sleep(probe.get("periodSeconds", 10))

    async def _liveness(self, probe: JsonObject) -> None:
        """Asks until the failures in a row are used up."""
        failures, allowed = 0, probe.get("failureThreshold", 3)
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        while failures < allowed:
            answer = await self.ask(probe)
            failures = 0 if answer.good else failures + 1
            if failures:
                self.events.failed("Liveness", answer.message, failures >= allowed)
            await asyncio.sleep(probe.get("periodSeconds", 10))

    async def _readiness(self, probe: JsonObject) -> None:
        run, good_before = 0, self.ready
        await asyncio.sleep(probe.get("initialDelaySeconds", 0))
        while True:
            answer = await self.ask(probe)
            run = run + 1 if answer.good == good_before else 1
            good_before = answer.good
            self._note_readiness(probe, answer, run)
            await asyncio.sleep(probe.get("periodSeconds", 10))

    def _note_readiness(self, probe: JsonObject, answer: Answer, run: int) -> None:
        needed = probe.get("successThreshold", 1) if answer.good else probe.get("failureThreshold", 3)
        if not answer.good:
            self.events.failed("Readiness", answer.message, False)
        if run >= needed and self.ready != answer.good:
            self.ready = answer.good
            self.events.changed()
