"""When a client secret is rotated: one test for each behaviour of spec/pocketid.md 7.1, R, and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.core.cron import EPOCH, read
from moorage.pocketid.oidcclient import rotation as rotations
from moorage.pocketid.oidcclient.render import History
from moorage.pocketid.oidcclient.rotation import Deferral, Deferred, NotDue, Rotate, Spacing, due
from moorage.pocketid.oidcclient.secrets import Trigger
from moorage.pocketid.oidcclient.types_secret import Rotation

BERLIN = ZoneInfo("Europe/Berlin")
HOUR, SECOND = timedelta(hours=1), timedelta(seconds=1)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def declared(interval: str | None = None, opens: str | None = None, closes: str = "2h", **more: bool) -> Rotation:
    window = {"opens": opens, "closesAfter": closes} if opens else None
    spec = {"enabled": True, "interval": interval, "window": window, **more}
    return Rotation.model_validate({name: value for name, value in spec.items() if value is not None})


def verdict(now: str | datetime, anchor: str | datetime, spec: Rotation | None, **more: Spacing) -> rotations.Verdict:
    now, anchor = (at(item) if isinstance(item, str) else item for item in (now, anchor))
    return due(now, anchor, spec, UTC, more.get("spacing", Spacing()))


def reason(found: rotations.Verdict) -> Deferral | None:
    return found.reason if isinstance(found, Deferred) else None


WEEKLY = declared(opens="0 3 * * 6")
"""Saturdays 03:00 to 05:00; 2026-03-07 is one."""


@pytest.mark.case("PIDR1")
def test_the_end_of_the_interval_counts_as_passed() -> None:
    spec = declared("24h")
    assert verdict("2026-03-02T11:59:59", "2026-03-01T12:00", spec) == NotDue(at("2026-03-02T12:00"))
    assert verdict("2026-03-02T12:00:00", "2026-03-01T12:00", spec) == Rotate()


@pytest.mark.case("PIDR2", "PIDR13")
@pytest.mark.parametrize("annotation", [None, "", "yesterday", "2026-03-05", "2026-03-05T12:00:00"])
def test_a_client_without_a_readable_rotation_counts_from_its_creation(annotation: str | None) -> None:
    assert rotations.anchor_of(annotation, "2026-03-01T12:00:00Z", at("2026-03-09T12:00")) == at("2026-03-01T12:00")
    assert rotations.anchor_of("2026-03-05T14:00:00+02:00", "2026-03-01T12:00:00Z", at("2026-03-09T12:00")) == at(
        "2026-03-05T12:00"
    )
    assert rotations.anchor_of(annotation, "", at("2026-03-09T12:00")) == EPOCH


@pytest.mark.case("PIDR3")
@pytest.mark.parametrize(
    ("now", "is_open"),
    [
        ("2026-03-07T02:59:59", False),
        ("2026-03-07T03:00:00", True),
        ("2026-03-07T04:59:59", True),
        ("2026-03-07T05:00:00", False),
    ],
)
def test_a_window_is_open_from_its_opening_and_closed_at_its_end(now: str, is_open: bool) -> None:
    assert (verdict(now, "2026-03-06T00:00", WEEKLY) == Rotate()) == is_open
    state = rotations.opening(at(now), WEEKLY, UTC)
    assert state is not None
    assert state.is_open == is_open
    assert state.closes == at("2026-03-07T05:00" if now < "2026-03-07T05" else "2026-03-14T05:00")


@pytest.mark.case("PIDR4")
@pytest.mark.parametrize(("closes", "fault"), [("1h", True), ("59m59s", False), ("90m", True), ("0s", True)])
def test_a_window_as_long_as_the_gap_between_openings_is_an_error(closes: str, fault: bool) -> None:
    found = verdict("2026-03-07T02:10", "2026-03-06T00:00", declared(opens="0 * * * *", closes=closes))
    assert (reason(found) is Deferral.WINDOW_ERROR) == fault


@pytest.mark.case("PIDR5")
@pytest.mark.parametrize(
    "spec",
    [
        declared(opens="every saturday"),
        declared(opens="0 3 * * 7"),
        declared("24h", opens="CRON_TZ=Mars/Base 0 3 * * 6"),
        declared(opens="0 3 * * 6", closes="1d"),
        declared("1d"),
        declared("99999999999h"),
    ],
)
def test_what_cannot_be_read_is_an_answer_that_says_how_to_mend_it(spec: Rotation) -> None:
    found = verdict("2026-03-07T03:00", "2026-03-01T12:00", spec)
    assert isinstance(found, Deferred)
    assert (found.reason, found.until) == (Deferral.WINDOW_ERROR, None)
    assert found.message.startswith("clientSecretRotation: ")
    assert rotations.opening(at("2026-03-07T03:00"), spec, UTC) is None


@pytest.mark.case("PIDR6")
def test_a_window_alone_rotates_once_per_opening() -> None:
    assert verdict("2026-03-07T03:10", "2026-03-01T00:00", WEEKLY) == Rotate()
    assert verdict("2026-03-07T03:20", "2026-03-07T03:10", WEEKLY) == NotDue(at("2026-03-14T03:00"))
    assert verdict("2026-03-07T03:00", "2026-03-07T03:00", WEEKLY) == NotDue(at("2026-03-14T03:00"))
    assert verdict("2026-03-14T03:00", "2026-03-07T03:10", WEEKLY) == Rotate()


@pytest.mark.case("PIDR7")
def test_a_missed_opening_is_deferred_to_the_next() -> None:
    found = verdict("2026-03-09T12:00", "2026-03-06T00:00", WEEKLY)
    assert isinstance(found, Deferred)
    assert (found.reason, found.until) == (Deferral.WINDOW_MISSED, at("2026-03-14T03:00"))


@pytest.mark.case("PIDR8")
def test_an_interval_that_passed_waits_for_its_window() -> None:
    spec = declared("48h", opens="0 3 * * 6")
    found = verdict("2026-03-09T12:00", "2026-03-06T00:00", spec)
    assert isinstance(found, Deferred)
    assert (found.reason, found.until) == (Deferral.WINDOW_CLOSED, at("2026-03-14T03:00"))
    assert verdict("2026-03-14T03:00", "2026-03-06T00:00", spec) == Rotate()
    assert verdict("2026-03-07T03:10", "2026-03-06T00:00", spec) == NotDue(at("2026-03-14T03:00"))


@pytest.mark.case("PIDR9")
def test_the_spacing_of_the_instance_comes_last_and_is_inclusive() -> None:
    spacing = Spacing(at("2026-03-07T02:00"), 2 * HOUR)
    found = verdict("2026-03-07T03:30", "2026-03-01T00:00", WEEKLY, spacing=spacing)
    assert isinstance(found, Deferred)
    assert (found.reason, found.until) == (Deferral.MIN_SPACING, at("2026-03-07T04:00"))
    assert verdict("2026-03-07T04:00", "2026-03-01T00:00", WEEKLY, spacing=spacing) == Rotate()
    assert reason(verdict("2026-03-08T00:00", "2026-03-01T00:00", WEEKLY, spacing=spacing)) is Deferral.WINDOW_MISSED


def test_a_spacing_that_outlasts_the_window_is_told_with_the_next_opening() -> None:
    found = verdict("2026-03-07T03:30", "2026-03-01T00:00", WEEKLY, spacing=Spacing(at("2026-03-07T02:00"), 4 * HOUR))
    assert isinstance(found, Deferred)
    assert found.until == at("2026-03-14T03:00")


@pytest.mark.case("PIDR10")
def test_a_manual_rotation_moves_the_anchor_and_not_the_time_of_the_instance() -> None:
    before = History("2026-03-01T00:00:00Z", "2026-02-01T00:00:00Z")
    now = at("2026-03-07T03:10")
    for why in (Trigger.MANUAL, Trigger.INITIAL, Trigger.DRIFT):
        assert before.after(why, now) == History("2026-03-07T03:10:00Z", "2026-02-01T00:00:00Z")
    assert before.after(Trigger.SCHEDULED, now) == History("2026-03-07T03:10:00Z", "2026-03-07T03:10:00Z")
    assert before.after(Trigger.DECLARED, now) == before


@pytest.mark.case("PIDR11", "PIDR12")
def test_the_time_of_the_instance_moves_forward_only_and_is_restored_from_the_secret() -> None:
    earlier, later = at("2026-03-01T00:00"), at("2026-03-02T00:00")
    assert rotations.forward(earlier, later) == later
    assert rotations.forward(None, earlier) == earlier
    assert rotations.forward(later, earlier) is None
    assert rotations.forward(later, later) is None
    assert rotations.forward(later, rotations.moment("nonsense")) is None


def test_a_rotation_that_is_off_is_never_due() -> None:
    for spec in (None, declared("1h", enabled=False), declared()):
        assert verdict("2026-03-07T03:10", "2020-01-01T00:00", spec) == NotDue(None)


@pytest.mark.case("PIDX10")
def test_an_operator_whose_clock_is_behind_does_not_rotate_again() -> None:
    """Another replica rotated at 03:04 by its clock; ours says 02:59 and later 03:01."""
    for now in ("2026-03-07T02:59", "2026-03-07T03:01"):
        assert isinstance(verdict(now, "2026-03-07T03:04", WEEKLY), NotDue)


def test_spans_that_cannot_be_read_keep_no_old_secret_and_hold_up_no_rotation() -> None:
    for text in (None, "", "1d", "-1h", "0"):
        assert rotations.span_of(text) == timedelta(0)
    assert rotations.spacing_of("2026-03-01T00:00:00Z", "4h", at("2026-03-09T12:00")) == Spacing(
        at("2026-03-01T00:00"), 4 * HOUR
    )


# --- clocks that change


def rotated(spec: Rotation, zone: ZoneInfo, start: datetime, end: datetime, step: timedelta) -> list[datetime]:
    """When an operator that looks every `step` rotates."""
    found, anchor, now = [], start, start
    while now < end:
        if due(now, anchor, spec, zone, Spacing()) == Rotate():
            found.append(now)
            anchor = now
        now += step
    return found


@pytest.mark.case("PIDX9")
@pytest.mark.parametrize(
    ("night", "times"),
    [
        ("2026-03-28", ["03-28 01:30", "03-29 01:00", "03-30 00:30"]),
        ("2026-10-24", ["10-24 00:30", "10-25 00:30", "10-26 01:30"]),
    ],
)
def test_a_nightly_window_opens_once_in_the_night_of_a_clock_change(night: str, times: list[str]) -> None:
    spec = declared(opens="30 2 * * *", closes="1h")
    start = at(night) - HOUR
    found = rotated(spec, BERLIN, start, start + timedelta(days=3), timedelta(minutes=10))
    assert [f"{moment:%m-%d %H:%M}" for moment in found] == times


@pytest.mark.case("PIDX9")
def test_a_prefix_names_the_zone_of_one_client() -> None:
    spec = declared(opens="CRON_TZ=Asia/Tokyo 0 9 * * *", closes="1h")
    assert due(at("2026-03-07T00:00"), at("2026-03-06T12:00"), spec, BERLIN, Spacing()) == Rotate()
    assert due(at("2026-03-07T08:00"), at("2026-03-07T00:30"), spec, BERLIN, Spacing()) == NotDue(
        at("2026-03-08T00:00")
    )


OPENINGS = st.sampled_from(
    ["0 3 * * *", "30 2 * * *", "0 */6 * * *", "0 0 * * 0", "@daily", "15 1,13 * * *", "@every 12h", "0 2 * * SAT,SUN"]
)
ZONES = st.sampled_from([ZoneInfo(name) for name in ("UTC", "Europe/Berlin", "America/Havana", "Asia/Kolkata")])
CHANGES = st.sampled_from(["2026-03-27", "2026-10-23", "2026-03-06", "2026-11-01", "2026-04-03", "2026-07-10"])


@pytest.mark.case("PIDR3", "PIDR6", "PIDX9")
@settings(max_examples=12, deadline=None)
@given(
    OPENINGS,
    st.sampled_from(["5m", "1h", "4h"]),
    ZONES,
    CHANGES,
    st.integers(4, 47),
    st.sampled_from([None, "4h", "24h"]),
)
def test_never_twice_in_an_opening_and_never_outside_of_one(
    opens: str, closes: str, zone: ZoneInfo, around: str, minutes: int, interval: str | None
) -> None:
    spec, start = declared(interval, opens, closes), at(around)
    end, length = start + timedelta(days=3), rotations.duration("", closes)
    found = rotated(spec, zone, start, end, timedelta(minutes=minutes))
    fires = _fires(opens, zone, start - length, end)
    used = [max((fire for fire in fires if fire <= moment), default=None) for moment in found]
    assert all(fire is not None and moment < fire + length for fire, moment in zip(used, found, strict=True))
    assert len(set(used)) == len(used)
    if interval is None and timedelta(minutes=minutes) <= length:
        assert {fire for fire in fires if start < fire < end - length} <= set(used)


def _fires(opens: str, zone: ZoneInfo, start: datetime, end: datetime) -> list[datetime]:
    found = []
    for fire in read(opens, zone).after(start):
        if fire >= end:
            return found
        found.append(fire)
    return found


@settings(max_examples=40, deadline=None)
@given(OPENINGS, ZONES, st.integers(0, 10**6), st.integers(0, 10**6), st.sampled_from([None, "6h", "720h"]))
def test_the_next_time_that_is_told_is_a_time_at_which_it_happens(
    opens: str, zone: ZoneInfo, anchor: int, later: int, interval: str | None
) -> None:
    spec = declared(interval, opens, "1h")
    then = at("2026-03-20") + timedelta(seconds=anchor)
    found = due(then + timedelta(seconds=later), then, spec, zone, Spacing())
    moment = found.next if isinstance(found, NotDue) else found.until if isinstance(found, Deferred) else None
    if moment is not None:
        assert due(moment, then, spec, zone, Spacing()) == Rotate()
        assert due(moment - SECOND, then, spec, zone, Spacing()) != Rotate()
