"""Requests a second, as the server bounds them when it does: 100 a second with 300 at once, logins by code one in ten seconds with five at once.

Enters: a monotonic clock. Leaves: yes or no.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class _Bucket:
    def __init__(self, rate: float, burst: int) -> None:
        self.rate, self.burst, self.left, self.seen = rate, float(burst), float(burst), 0.0

    def take(self, now: float) -> bool:
        self.left = min(self.burst, self.left + (now - self.seen) * self.rate)
        self.seen = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class Limiter:
    """Off unless asked for. `clock` tells seconds; a test lets it stand."""

    def __init__(self, on: bool = False) -> None:
        self.on = on
        self.clock: Callable[[], float] = time.monotonic
        self._requests, self._logins = _Bucket(100, 300), _Bucket(0.1, 5)

    def request(self) -> bool:
        return not self.on or self._requests.take(self.clock())

    def login(self) -> bool:
        return not self.on or self._logins.take(self.clock())
