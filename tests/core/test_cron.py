"""The one reader of cron expressions: what it takes, what it refuses, and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.core.cron import read, time_zone
from moorage.core.errors import InputError

BERLIN = ZoneInfo("Europe/Berlin")


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def fires(text: str, since: str, count: int = 3, zone: ZoneInfo = BERLIN) -> list[str]:
    found = islice(read(text, zone).after(at(since)), count)
    return [f"{moment:%m-%d %H:%M}" for moment in found]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("0 3 * * 6", "03-28 02:00"),
        ("0 3 * * SAT", "03-28 02:00"),
        ("0 3 ? * sat", "03-28 02:00"),
        ("0 0 1 jan *", "12-31 23:00"),
        ("*/20 * * * *", "03-27 12:20"),
        ("0 0 * * 5/1", "03-27 23:00"),
        ("@daily", "03-27 23:00"),
        ("@weekly", "03-28 23:00"),
        ("@every 90m", "03-27 13:30"),
        ("CRON_TZ=Asia/Tokyo 0 9 * * *", "03-28 00:00"),
        ("TZ=UTC @daily", "03-28 00:00"),
        ("  0 3 * * 6 ", "03-28 02:00"),
    ],
)
def test_what_cron_says_is_understood(text: str, first: str) -> None:
    assert fires(text, "2026-03-27T12:00", 1) == [first]


@pytest.mark.parametrize(
    "text",
    [
        "0 3 * * 7", "0 0 * * 5-7", "0 0 L * *", "0 0 * * 5L", "0 0 * * MON#2", "0 0 15W * *", "* * * * * *", "", "@never", "@every 1d",
        "@every 0s", "@every", "0 0 30 2 *", "61 * * * *", "1- * * * *", "*/0 * * * *", "5-1 * * * *", "MON * * * *", "0 0 * FOO *",
        "TZ=Mars/Base 0 0 * * *", "TZ= 0 0 * * *", "CRON_TZ=../../etc/passwd 0 0 * * *", "CRON_TZ=America 0 0 * * *", "CRON_TZ=UTC",
    ],
)  # fmt: skip
def test_what_cron_does_not_say_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(InputError) as found:
        read(text, BERLIN)
    assert found.value.why


def test_a_restricted_day_and_a_restricted_weekday_are_each_enough() -> None:
    """The 13th or a Friday."""
    assert fires("0 12 13 * FRI", "2026-04-10T12:00", 3, time_zone("UTC")) == [
        "04-13 12:00",
        "04-17 12:00",
        "04-24 12:00",
    ]


@pytest.mark.case("PIDX9")
def test_a_time_that_spring_skips_comes_right_after_the_gap_and_once() -> None:
    assert fires("30 2 * * *", "2026-03-28T00:00") == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]
    assert fires("15,45 2 * * *", "2026-03-28T12:00") == ["03-29 01:00", "03-30 00:15", "03-30 00:45"]


@pytest.mark.case("PIDX9")
def test_a_time_that_autumn_repeats_comes_once() -> None:
    assert fires("30 2 * * *", "2026-10-24T12:00") == ["10-25 00:30", "10-26 01:30", "10-27 01:30"]
    assert fires("50 2 * * *", "2026-10-25T01:45", 1) == ["10-26 01:50"]


@pytest.mark.case("PIDX9")
def test_every_hour_stays_every_hour_when_clocks_change() -> None:
    assert fires("0 * * * *", "2026-10-24T23:30", 4) == ["10-25 00:00", "10-25 01:00", "10-25 02:00", "10-25 03:00"]


def test_a_duration_counts_from_its_origin() -> None:
    origin = at("2026-03-27T10:10")
    assert read("@every 1h").next(at("2026-03-27T12:00"), origin) == at("2026-03-27T12:10")
    assert read("@every 1h").latest(at("2026-03-27T12:00"), origin) == at("2026-03-27T11:10")
    assert read("@every 1h").latest(at("2026-03-27T11:00"), origin) is None


EXPRESSIONS = st.sampled_from(
    [
        "30 2 * * *",
        "0,30 2,3 * * *",
        "*/7 * * * *",
        "0 * * * *",
        "* 2 * * *",
        "0 0 * * 0",
        "15 0 1 * *",
        "0 0 */2 * *",
        "@every 25h",
    ]
)
ZONES = st.sampled_from(
    ["UTC", "Europe/Berlin", "America/Havana", "Australia/Lord_Howe", "Asia/Kolkata", "America/St_Johns"]
)


@settings(max_examples=60, deadline=None)
@given(EXPRESSIONS, ZONES, st.integers(0, 2 * 365 * 86400), st.integers(0, 999_999))
def test_moments_come_strictly_one_after_the_other_and_are_found_backwards(
    text: str, zone: str, seconds: int, micros: int
) -> None:
    since = at("2025-01-01") + timedelta(seconds=seconds, microseconds=micros)
    schedule = read(text, time_zone(zone))
    found = list(islice(schedule.after(since), 6))
    assert all(earlier < later for earlier, later in zip([since, *found], found, strict=False))
    latest = schedule.latest(since)
    assert latest is not None
    assert latest <= since
    assert schedule.next(found[0] - timedelta(seconds=1)) == found[0]
