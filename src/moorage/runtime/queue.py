"""The work queue of one controller.

Enters: keys, now or later. Leaves: each key to one worker at a time, first come first served. Adding a key that waits
changes nothing; adding one that is being worked on makes it come again afterwards: no add is lost. It knows no objects.
Source: client-go workqueue (its properties, not its code).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from moorage.core.backoff import Backoff
from moorage.core.meta import Key


class Timer(Protocol):
    """What asyncio's call_later gives."""

    def cancel(self) -> None:
        """Do not call."""
        ...


class QueueWatcher(Protocol):
    """Hears what happens, for metrics."""

    def added(self, depth: int) -> None:
        """A key joined the waiting ones."""
        ...

    def retried(self) -> None:
        """A key will come again after back-off."""
        ...

    def taken(self, depth: int, waited: float) -> None:
        """A worker took a key that waited this many seconds."""
        ...

    def finished(self, worked: float) -> None:
        """A worker gave a key back after this many seconds."""
        ...


class Queue:
    """Keys to work on.

    Args:
        clock: monotonic seconds.
        later: call a function after seconds; None is the running loop's call_later.
        chance: a number from 0 to 1 for jitter.
    """

    def __init__(
        self,
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
        later: Callable[[float, Callable[[], None]], Timer] | None = None,
        chance: Callable[[], float] = random.random,
        watcher: QueueWatcher | None = None,
    ) -> None:
        self._backoff, self._clock, self._chance = backoff or Backoff(), clock, chance
        self._later, self._watcher = later or _call_later, watcher
        self._waiting: deque[Key] = deque()
        self._since: dict[Key, float] = {}
        self._working: dict[Key, float] = {}
        self._again: set[Key] = set()
        self._timers: dict[Key, tuple[float, Timer]] = {}
        self._failures: dict[Key, int] = {}
        self._getters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    def working(self) -> dict[Key, float]:
        """Keys that workers hold, with the monotonic time at which they were taken."""
        return dict(self._working)

    # --- adding

    def add(self, key: Key) -> None:
        """Work on the key soon."""
        if self._closed or key in self._since or key in self._again:
            return
        if key in self._working:
            self._again.add(key)
            return
        self._push(key)

    def add_after(self, key: Key, seconds: float) -> None:
        """Work on the key in `seconds`; of several wishes the earliest counts."""
        if seconds <= 0:
            self.add(key)
            return
        due = self._clock() + seconds
        known = self._timers.get(key)
        if self._closed or (known is not None and known[0] <= due):
            return
        if known is not None:
            known[1].cancel()
        self._timers[key] = (due, self._later(seconds, lambda: self._ring(key)))

    def retry(self, key: Key) -> float:
        """Work on the key after its back-off; the delay in seconds. Each call makes the next one longer."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = self._backoff.delay(failures, self._chance())
        if self._watcher:
            self._watcher.retried()
        self.add_after(key, delay)
        return delay

    def forget(self, key: Key) -> None:
        """The key did well: its back-off starts from the beginning."""
        self._failures.pop(key, None)

    def failures(self, key: Key) -> int:
        """How often the key failed in a row."""
        return self._failures.get(key, 0)

    # --- working

    async def get(self) -> Key | None:
        """The next key, to be given back with `done`; None when the queue is closed."""
        while not self._waiting:
            if self._closed:
                return None
            getter = asyncio.get_running_loop().create_future()
            self._getters.append(getter)
            try:
                await getter
            except asyncio.CancelledError:
                if getter.done() and not getter.cancelled():
                    self._wake_one()
                raise
        return self._take()

    def done(self, key: Key) -> None:
        """The worker is finished with the key; it comes again if it was added meanwhile."""
        began = self._working.pop(key)
        if self._watcher:
            self._watcher.finished(self._clock() - began)
        if key in self._again:
            self._again.discard(key)
            self._push(key)

    def close(self) -> None:
        """Take no more keys and hand out none; workers finish what they hold."""
        self._closed = True
        for _, timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._waiting.clear()
        self._since.clear()
        self._again.clear()
        while self._getters:
            self._wake_one()

    def _take(self) -> Key:
        key = self._waiting.popleft()
        now = self._clock()
        waited = now - self._since.pop(key)
        self._working[key] = now
        if self._watcher:
            self._watcher.taken(len(self._waiting), waited)
        return key

    def _push(self, key: Key) -> None:
        if self._closed:
            return
        self._waiting.append(key)
        self._since[key] = self._clock()
        if self._watcher:
            self._watcher.added(len(self._waiting))
        self._wake_one()

    def _ring(self, key: Key) -> None:
        self._timers.pop(key, None)
        self.add(key)

    def _wake_one(self) -> None:
        while self._getters:
            getter = self._getters.popleft()
            if not getter.done():
                getter.set_result(None)
                return


def _call_later(seconds: float, call: Callable[[], None]) -> Timer:
    return asyncio.get_running_loop().call_later(seconds, call)
