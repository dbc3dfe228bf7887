"""Times of the wire: RFC 3339 in UTC with whole seconds. The only clock of the controllers."""

from __future__ import annotations

from datetime import UTC, datetime


def now() -> datetime:
    """The time, aware, UTC."""
    return datetime.now(UTC)


def stamp(at: datetime) -> str:
    """A time as Kubernetes writes it."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def parse(text: str) -> datetime:
    """A time from the wire.

    Raises:
        ValueError: it is no RFC 3339 time.
    """
    return datetime.fromisoformat(text)


def age(text: str, at: datetime) -> float:
    """Seconds from a stamp to `at`; 0 when there is no stamp."""
    return (at - parse(text)).total_seconds() if text else 0.0
