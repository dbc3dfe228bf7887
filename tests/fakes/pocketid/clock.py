"""The fake's clock: that of the machine, off by what a test says, in the zone that a test says.

Enters: nanoseconds. Leaves: RFC 3339 in the server's two ways: with fraction and own offset where a row was just made, whole seconds with Z where it was read back.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta, timezone

SECOND = 1_000_000_000


class Clock:
    """`offset` is in seconds: what the server's clock is ahead. `stopped` holds it at one moment (nanoseconds)."""

    def __init__(self, zone_minutes: int = 0) -> None:
        self.offset = 0.0
        self.stopped: int | None = None
        self.zone = timezone(timedelta(minutes=zone_minutes))
        self._last = 0

    def now(self) -> int:
        """Nanoseconds since 1970; never the same twice, so that rows have an order, and never a whole second."""
        moment = (time.time_ns() if self.stopped is None else self.stopped) + int(self.offset * SECOND)
        if moment <= self._last < moment + SECOND:
            moment = self._last + 1
        self._last = moment if moment % SECOND else moment + 1
        return self._last

    def fresh(self, moment: int) -> str:
        """As an answer shows a row that was just made."""
        seconds, rest = divmod(moment, SECOND)
        local = datetime.fromtimestamp(seconds, UTC).astimezone(self.zone)
        fraction = f".{rest:09}".rstrip("0")
        offset = local.strftime("%z")
        return (
            local.strftime("%Y-%m-%dT%H:%M:%S")
            + fraction
            + ("Z" if offset == "+0000" else f"{offset[:3]}:{offset[3:]}")
        )

    def stored(self, moment: int) -> str:
        """As an answer shows a row that was read back."""
        return datetime.fromtimestamp(moment // SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
