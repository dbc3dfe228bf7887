"""When a cron expression fires: the one reader of the house, for key rotations, CronJobs and rotation windows.

Enters: the text, a time zone, the time from which is counted. Leaves: moments in UTC, strictly increasing. It reads no clock.

Five fields as cron has them (minute 0-59, hour 0-23, day 1-31, month 1-12 or JAN-DEC, weekday 0-6 or SUN-SAT; `*`, `?`, lists, ranges, steps;
day and weekday both restricted: either is enough), the descriptors `@yearly @annually @monthly @weekly @daily @midnight @hourly`, `@every`
with a duration, and any of them after `CRON_TZ=<zone>` or `TZ=<zone>`. So Kubernetes reads them too: 7 is no Sunday, `L` and `#` mean nothing.
Wall time is that of the zone. A fixed time that a clock change skips comes at the first moment after the gap; one that a clock change
repeats comes once. Where clocks change by half an hour (Lord Howe alone), a pattern over hours may lose one firing to the change.
Source: crontab(5); Kubernetes documentation, "CronJob"; spec/pocketid.md 1.7.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from .durations import parse_duration
from .errors import InputError

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_EVERY: Final = "@every "
_PREFIXES: Final = ("CRON_TZ=", "TZ=")
_PIECE: Final = re.compile(r"[,/-]")
_WORD: Final = re.compile(r"\*|\d{1,4}|[A-Za-z]{3}")
_OPEN_STEP: Final = re.compile(r"(?<![-\w])(\w+)/")
"""`5/2` in the field of weekdays: from 5 to the end, which is 6 here and 7 for cronsim."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """A cron expression that was understood. `every` is set for `@every` alone, `fields` for all others."""

    fields: str
    zone: tzinfo
    every: timedelta | None = None

    def after(self, moment: datetime, origin: datetime = EPOCH) -> Iterator[datetime]:
        """All moments strictly after this one; `@every` counts from `origin`."""
        if self.every is not None:
            yield from _multiples(moment, origin, self.every)
            return
        last = moment.astimezone(UTC)
        for found in CronSim(self.fields, moment.astimezone(self.zone)):
            at = found.astimezone(UTC)
            # two times in one gap come together, and one in a repeated hour would come before the present
            if at > last:
                last = at
                yield at

    def next(self, moment: datetime, origin: datetime = EPOCH) -> datetime:
        """The first moment strictly after this one."""
        return next(self.after(moment, origin))

    def latest(self, moment: datetime, origin: datetime = EPOCH) -> datetime | None:
        """The last moment that is not after this one; None when there is none in fifty years, or since `origin` for `@every`."""
        if self.every is not None:
            count = (moment - origin) // self.every
            return origin + count * self.every if count >= 1 else None
        start = moment.astimezone(self.zone) + timedelta(hours=3)
        backwards = (found.astimezone(UTC) for found in CronSim(self.fields, start, reverse=True))
        return next((at for at in backwards if at <= moment), None)


@lru_cache(maxsize=1024)
def read(text: str, zone: tzinfo = UTC) -> Schedule:
    """The schedule that a text means; `zone` is that of its wall times unless a prefix names one.

    Raises:
        InputError: the text is no cron expression, its time zone is unknown, or it never fires. It names the text.
    """
    rest = text.strip()
    for prefix in _PREFIXES:
        if rest.startswith(prefix):
            name, _, rest = rest.removeprefix(prefix).partition(" ")
            zone, rest = time_zone(name), rest.strip()
            break
    try:
        found = _schedule(rest, zone)
        first = next(iter(found.after(EPOCH)), None)
    except (CronSimError, ValueError, OverflowError) as error:
        raise InputError(f"cron expression {text!r}", str(error)) from error
    if first is None:
        raise InputError(f"cron expression {text!r}", "it never comes")
    return found


def time_zone(name: str) -> ZoneInfo:
    """The zone of this name.

    Raises:
        InputError: this machine knows no such zone.
    """
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise InputError(
            f"time zone {name!r}", "this machine does not know it", "Name one such as Europe/Berlin"
        ) from error


def _schedule(text: str, zone: tzinfo) -> Schedule:
    if text.startswith(_EVERY):
        seconds = int(parse_duration(text.removeprefix(_EVERY).strip()))
        if seconds < 1:
            raise ValueError("@every needs a duration of at least 1s")
        return Schedule("", zone, timedelta(seconds=seconds))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise ValueError(f"unknown descriptor; known are {', '.join(_DESCRIPTORS)} and @every <duration>")
        return Schedule(_DESCRIPTORS[text], zone)
    return Schedule(_fields(text), zone)


def _fields(text: str) -> str:
    """The five fields in the words of cronsim, which takes more than cron does."""
    fields = text.replace("?", "*").split()
    if len(fields) != 5:
        raise ValueError("it needs five fields: minute hour day month weekday")
    for position, part in enumerate(fields):
        for word in _PIECE.split(part):
            if not _WORD.fullmatch(word) or (word.isalpha() and position < 3):
                raise ValueError(f"{word or part!r} means nothing there")
    fields[4] = _OPEN_STEP.sub(r"\1-6/", fields[4])
    for part in re.split(r"[,-]", re.sub(r"/\d+", "", fields[4])):
        if part.isdecimal() and int(part) > 6:
            raise ValueError("weekdays are 0 (Sunday) to 6")
    return " ".join(fields)


def _multiples(moment: datetime, origin: datetime, every: timedelta) -> Iterator[datetime]:
    count = max((moment - origin) // every, 0)
    while True:
        count += 1
        yield (origin + count * every).astimezone(UTC)
