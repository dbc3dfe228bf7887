"""How long to wait before the next attempt. Pure: chance and the clock are given as values.

Source: RFC 9110 10.2.3 (Retry-After); client-go workqueue, item exponential failure rate limiter.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

_DAY: Final = 86400.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential delays: `base * 2**failures`, at most `cap`, of which up to `jitter` is left to chance. Seconds."""

    base: float = 0.05
    cap: float = 300.0
    jitter: float = 0.2

    def delay(self, failures: int, chance: float) -> float:
        """Seconds before the attempt that follows `failures` failures (0 is the first).

        Args:
            chance: a number from 0 to 1, drawn by the caller.
        """
        full = min(self.cap, self.base * 2.0 ** min(failures, 60))
        return full * (1.0 - self.jitter * chance)


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds of a Retry-After header, a day at most and never negative; None when absent or unreadable."""
    if not text:
        return None
    if (number := text.strip()).isdecimal():
        return min(float(number), _DAY)
    try:
        when = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return min(max(0.0, (when - now).total_seconds()), _DAY)
