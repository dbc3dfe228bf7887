"""When a client secret is rotated on schedule.

Enters: the time, the anchor (last rotation, else creation), the declaration, the operator's time zone, what the instance says. Leaves: rotate,
deferred with its reason, or not due with the next time. Pure: it reads no clock, and a declaration that cannot be read is an answer,
not an exception, so that the rest of the pass goes on.

    trigger  interval: passed since the anchor (inclusive).  window alone: an opening began after the anchor
    window   [opening, opening + closesAfter); the openings must not touch each other
    spacing  of the instance; scheduled rotations only

Source: seed 004, Client Secret Rotation; spec/pocketid.md 1.7, 3.11.7 to 3.11.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final

from moorage.core import cron
from moorage.core.durations import parse_duration
from moorage.core.errors import InputError
from moorage.pocketid.oidcclient.types_secret import Rotation, RotationWindow

NEVER: Final = timedelta(0)
_LONGEST: Final = timedelta(days=36525)
_AHEAD: Final = timedelta(hours=1)


class Deferral(StrEnum):
    """Why a rotation that is due does not happen now; the label of the metric."""

    WINDOW_CLOSED = "window_closed"
    WINDOW_MISSED = "window_missed"
    MIN_SPACING = "min_spacing"
    WINDOW_ERROR = "window_error"


@dataclass(frozen=True, slots=True)
class Rotate:
    """Rotate now."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """Due, but not now. `until`: the earliest time at which it can happen; None when a person must mend the declaration, as `message` says."""

    reason: Deferral
    until: datetime | None
    message: str


@dataclass(frozen=True, slots=True)
class NotDue:
    """Nothing to do. `next`: when it will be due and its window open; None when rotation is off."""

    next: datetime | None


Verdict = Rotate | Deferred | NotDue


@dataclass(frozen=True, slots=True)
class Spacing:
    """What the instance says: when any of its clients last rotated on schedule, and the least time between two such rotations."""

    last: datetime | None = None
    least: timedelta = NEVER


@dataclass(frozen=True, slots=True)
class Opening:
    """The state of a window: whether it is open, and when it opens and closes next. An open one closes at `closes`."""

    is_open: bool
    opens: datetime
    closes: datetime


@dataclass(frozen=True, slots=True)
class Window:
    """A window that was understood."""

    schedule: cron.Schedule
    length: timedelta

    def current(self, now: datetime) -> datetime | None:
        """The opening in which `now` lies, its end excluded."""
        began = self.schedule.next(now - self.length)
        return began if began <= now else None

    def first(self, moment: datetime) -> datetime:
        """The first time, not before `moment`, at which it is open."""
        return moment if self.current(moment) else self.schedule.next(moment)

    def gap(self, now: datetime) -> timedelta:
        """Between the next two openings."""
        upcoming = self.schedule.after(now)
        first = next(upcoming)
        return next(upcoming) - first


def due(now: datetime, anchor: datetime, rotation: Rotation | None, zone: tzinfo, spacing: Spacing) -> Verdict:
    """Whether the secret is rotated now. `anchor` is the last rotation, or the creation of the resource."""
    if rotation is None or not rotation.enabled:
        return NotDue(None)
    try:
        interval, window = _interval(rotation), window_of(rotation.window, zone, now)
    except InputError as error:
        return Deferred(Deferral.WINDOW_ERROR, None, f"clientSecretRotation: {error}")
    return _judge(now.astimezone(UTC), anchor.astimezone(UTC), interval, window, spacing)


def _judge(
    now: datetime, anchor: datetime, interval: timedelta | None, window: Window | None, spacing: Spacing
) -> Verdict:
    start = _trigger(anchor, interval, window)
    if start is None:
        return NotDue(None)
    if now < start:
        return NotDue(window.first(start) if window else start)
    if window and not window.current(now):
        return _closed(now, window, missed=interval is None)
    if spacing.last is not None and now < (free := spacing.last + spacing.least):
        text = "another client of the instance rotated; OIDCClientRotation.minSpacing has not passed yet"
        return Deferred(Deferral.MIN_SPACING, window.first(free) if window else free, text)
    return Rotate()


def _trigger(anchor: datetime, interval: timedelta | None, window: Window | None) -> datetime | None:
    """From when on it is due; None for a declaration with neither, which admission refuses."""
    if interval is not None:
        return anchor + interval
    return None if window is None else window.schedule.next(anchor)


def _closed(now: datetime, window: Window, *, missed: bool) -> Deferred:
    upcoming = window.schedule.next(now)
    if missed:
        return Deferred(Deferral.WINDOW_MISSED, upcoming, "an opening of the window passed without a rotation")
    return Deferred(Deferral.WINDOW_CLOSED, upcoming, "the interval has passed; the window is closed")


def window_of(window: RotationWindow | None, zone: tzinfo, now: datetime) -> Window | None:
    """The window as declared.

    Raises:
        InputError: cron, time zone or duration cannot be read, or openings would touch each other.
    """
    if window is None:
        return None
    found = Window(cron.read(window.opens, zone), duration("window.closesAfter", window.closes_after))
    if found.length <= NEVER:
        raise InputError(f"window.closesAfter {window.closes_after}", "must be longer than zero")
    if found.length >= (gap := found.gap(now)):
        why = f"must be shorter than the time between two openings, and the next two are {_span(gap)} apart"
        raise InputError(f"window.closesAfter {window.closes_after}", why)
    return found


def opening(now: datetime, rotation: Rotation | None, zone: tzinfo) -> Opening | None:
    """The state of the window for metrics; None without a window that can be read."""
    if rotation is None or not rotation.enabled:
        return None
    try:
        window = window_of(rotation.window, zone, now)
    except InputError:
        return None
    if window is None:
        return None
    upcoming, began = window.schedule.next(now), window.current(now)
    return Opening(began is not None, upcoming, (began or upcoming) + window.length)


def duration(field: str, text: str) -> timedelta:
    """A duration in Go syntax.

    Raises:
        InputError: it is none; the error names the field.
    """
    try:
        found = timedelta(seconds=parse_duration(text))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{field} {text!r}", "is no duration such as 90m or 24h") from error
    if abs(found) > _LONGEST:
        raise InputError(f"{field} {text!r}", "is longer than a hundred years")
    return found


def span_of(text: str | None) -> timedelta:
    """An overlap or a spacing; absent, negative and unreadable count as none: an old secret must not linger, a rotation not wait for ever."""
    try:
        return NEVER if text is None else max(duration("", text), NEVER)
    except InputError:
        return NEVER


def spacing_of(last: str | None, least: str | None, now: datetime) -> Spacing:
    """What an instance says, from its status and its `OIDCClientRotation.minSpacing`."""
    return Spacing(happened(last, now), span_of(least))


@lru_cache(maxsize=4096)
def moment(text: str | None) -> datetime | None:
    """A time as annotations and status hold it, in UTC, 1970 at the earliest; None for one that is absent or cannot be read."""
    try:
        found = datetime.fromisoformat((text or "").replace("Z", "+00:00"))
        return None if found.tzinfo is None else max(found.astimezone(UTC), cron.EPOCH)
    except (ValueError, OverflowError):
        return None


def happened(text: str | None, now: datetime) -> datetime | None:
    """A time at which something was done; one that lies further ahead than clocks differ cannot be that.

    Whoever may annotate one Secret could otherwise stop the rotations of all clients of its instance.
    """
    found = moment(text)
    return None if found is None or found - now > _AHEAD else found


def stamp(at: datetime) -> str:
    """A time for annotations and status: RFC 3339, UTC, whole seconds."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


def anchor_of(rotated_at: str | None, created_at: str, now: datetime) -> datetime:
    """The last rotation; a client without one, or with a time that cannot be, counts from its creation."""
    return happened(rotated_at, now) or moment(created_at) or cron.EPOCH


def forward(recorded: datetime | None, seen: datetime | None) -> datetime | None:
    """The time of the instance after one more scheduled rotation was seen; None when it stays as it is. It only moves forward."""
    if seen is None or (recorded is not None and seen <= recorded):
        return None
    return seen


def _interval(rotation: Rotation) -> timedelta | None:
    return None if rotation.interval is None else duration("interval", rotation.interval)


def _span(gap: timedelta) -> str:
    return "".join(_units(int(gap.total_seconds()))) or "0s"


def _units(seconds: int) -> Iterator[str]:
    for size, unit in ((3600, "h"), (60, "m"), (1, "s")):
        count, seconds = divmod(seconds, size)
        if count:
            yield f"{count}{unit}"
