"""Rotation of key repositories: properties that must hold for any repository."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st
from tests.keystone.service import given

from moorage.keystone.service import keys

_sizes = st.integers(min_value=2, max_value=9)
_most = st.integers(min_value=3, max_value=9)
_starts = st.integers(min_value=1, max_value=50)


def repository(size: int, start: int = 1) -> dict[str, str]:
    """Key 0 and `size - 1` keys from index `start` on."""
    return {"0": given.key(0), **{str(start + i): given.key(1 + i) for i in range(size - 1)}}


@for_all(_sizes, _starts, _most)
def test_the_staged_key_becomes_primary_and_the_old_primary_stays(size: int, start: int, most: int) -> None:
    """What the old primary signed stays readable; what the new primary signs, every node could read before."""
    before = repository(size, start)
    after = keys.rotate(before, given.key(200), most)
    assert after[str(keys.primary(after))] == before["0"]
    assert before[str(keys.primary(before))] in after.values()
    assert after["0"] == given.key(200)


@for_all(_sizes, _starts, _most)
def test_a_rotation_gives_a_repository_that_works_and_is_not_too_large(size: int, start: int, most: int) -> None:
    """At most `most` keys, none twice, indexes that only grow."""
    before = repository(size, start)
    after = keys.rotate(before, given.key(200), most)
    assert keys.problem(after, most) == ""
    assert len(after) <= most
    assert keys.primary(after) == keys.primary(before) + 1


@for_all(_most, st.integers(min_value=1, max_value=30))
def test_a_token_survives_as_many_rotations_as_there_are_secondary_keys(most: int, rotations: int) -> None:
    """A key that signed is readable for `most - 2` rotations after the one that took its place, and not for ever."""
    current = repository(most)
    signed_with = current[str(keys.primary(current))]
    for number in range(1, rotations + 1):
        current = keys.rotate(current, given.key(100 + number), most)
        assert (signed_with in current.values()) is (number <= most - 2)


@for_all(_sizes, _most)
def test_a_staged_set_of_our_own_is_committed(size: int, most: int) -> None:
    """What `rotate` makes passes the check that guards the commit."""
    live = _secret(repository(size), version="4")
    staging = _secret(keys.rotate(repository(size), given.key(200), most), rotates="u.4")
    assert isinstance(keys.staged_step(live, staging, most), keys.Commit)


@pytest.mark.parametrize(
    ("staged", "why"),
    [
        ({"0": given.key(9)}, "1 keys, wanted 3 to 4"),
        ({"0": given.key(9), "1": given.key(1), "2": given.key(9)}, "two keys are equal"),
        ({"0": given.key(9), "1": given.key(1), "2": "short"}, 'key "2" is not URL-safe base64 of 32 bytes'),
        ({"0": given.key(9), "1": given.key(1), "2": "+" * 43 + "="}, 'key "2" is not URL-safe base64 of 32 bytes'),
        ({"0": given.key(9), "1": given.key(7), "2": given.key(0)}, "it drops the primary key"),
        ({"0": given.key(0), "1": given.key(1), "2": given.key(9)}, "its primary is not the staged key of before"),
        ({"1": given.key(1), "2": given.key(0), "3": given.key(8)}, 'the staged key "0" is missing'),
        ({"0": given.key(9), "1": given.key(1), "02": given.key(0)}, "a key index is no plain number"),
    ],
)
def test_a_staged_set_that_would_lose_something_is_discarded(staged: dict[str, str], why: str) -> None:
    """Count, form, duplicates, the primary and the order are checked before anything is committed."""
    live = _secret({"0": given.key(0), "1": given.key(1)}, version="4")
    assert keys.staged_step(live, _secret(staged, rotates="u.4"), 3) == keys.Discard(why)


def test_a_staged_set_of_another_version_is_discarded() -> None:
    """After a commit whose clean-up was lost, the staging Secret names the version of before."""
    live = _secret({"0": given.key(0), "1": given.key(1)}, version="5")
    staging = _secret(keys.rotate(repository(2), given.key(200), 3), rotates="u.4")
    assert keys.staged_step(live, staging, 3) == keys.Discard("it belongs to another version of the repository")


@for_all(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=4000)))
def test_however_long_nobody_looked_it_is_one_rotation(away: timedelta) -> None:
    """After the commit of a missed rotation nothing is due until the schedule's next time (clock jumps included)."""
    now = datetime(2026, 11, 29, 12, tzinfo=UTC) + away
    live = _secret(repository(3), version="1")
    live["metadata"]["annotations"] = {keys.ROTATED_AT: f"{now:%Y-%m-%dT%H:%M:%SZ}"}
    assert not keys.due(live, "0 0 * * 0", False, now)
    assert keys.due(live, "0 0 * * 0", False, now + timedelta(days=8))


def test_a_clock_that_went_back_rotates_nothing() -> None:
    """Rotated "in the future": nothing is due until then."""
    live = _secret(repository(3), version="1")
    live["metadata"]["annotations"] = {keys.ROTATED_AT: "2027-01-01T00:00:00Z"}
    assert not keys.due(live, "0 0 * * 0", False, datetime(2026, 11, 29, tzinfo=UTC))


def test_a_plan_does_not_print_its_keys() -> None:
    """No key in the repr of what decide answers."""
    assert given.key(1) not in repr(keys.Commit({"1": given.key(1)}))


def _secret(data: dict[str, str], *, version: str = "1", rotates: str = "") -> dict[str, object]:
    found = given.secret("keystone-fernet-keys", data)
    found["metadata"] |= {"uid": "u", "resourceVersion": version, "creationTimestamp": given.BORN}
    if rotates:
        found["metadata"]["annotations"] = {keys.ROTATES: rotates}
    return found
