"""From JSON to values: times of every shape, versions, answers that are none."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.pocketid import rest_reading
from moorage.pocketid.rest import Feature, Nonsense, Support, Version, dropped
from moorage.pocketid.rest_reading import client_of, made_client_of, made_secret_of, time_of


@given(st.integers(100_000, 7_000_000_000_000_000), st.integers(1, 9), st.integers(-14 * 60, 14 * 60))
def test_times_with_any_fraction_and_offset_are_read(micros: int, digits: int, minutes: int) -> None:
    zone = timezone(timedelta(minutes=minutes))
    local = (datetime(1970, 1, 2, tzinfo=UTC) + timedelta(microseconds=micros)).astimezone(zone)
    sign = "-" if minutes < 0 else "+"
    fraction = f"{local.microsecond:06}999"[:digits]
    text = f"{local:%Y-%m-%dT%H:%M:%S}.{fraction}{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
    read = time_of(text)
    assert read is not None
    assert read.utcoffset() == timedelta(minutes=minutes)
    assert abs(read - local) <= timedelta(microseconds=10 ** max(0, 6 - digits))


@pytest.mark.parametrize(
    "text",
    [None, 5, "", "2040-01-01", "2040-01-01T00:00:00", "tomorrow", "2040-13-01T00:00:00Z", "2040-01-01T00:00:00+99:99"],
)
def test_what_is_no_time_is_none(text: Any) -> None:
    assert time_of(text) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["id", "name", "secret", "createdAt", "credentials", "secrets", "data", "api", "apiKey", "token", "resource", "users",
                         "permissions", "allowedUserGroups", "username", "customClaims", "key", "value", "endpoint"]), inner, max_size=6),
    max_leaves=15,
)  # fmt: skip
_READERS = [
    getattr(rest_reading, name)
    for name in dir(rest_reading)
    if name.endswith("_of") and name not in ("time_of", "object_of", "list_of")
]


@given(st.sampled_from(_READERS), _JSON)
def test_an_answer_is_read_or_is_nonsense(reader: Any, answer: Any) -> None:
    with suppress(Nonsense):
        reader(answer)


def test_a_secret_made_with_the_client_may_be_bare_text() -> None:
    listed = {"id": "s", "prefix": "abcd", "createdAt": "2040-01-01T00:00:00Z", "isActive": True}
    made = made_client_of({"id": "app", "createdSecret": "abcdefgh", "credentials": {"secrets": [listed]}})
    assert made.secret is not None
    assert (made.secret.value.reveal(), made.secret.secret.id) == ("abcdefgh", "s")
    assert "createdSecret" not in made.client.raw


def test_a_secret_without_a_value_is_nonsense() -> None:
    with pytest.raises(Nonsense):
        made_secret_of({"id": "s", "secret": "", "createdAt": "2040-01-01T00:00:00Z"})


def test_a_client_that_hides_its_groups_says_so() -> None:
    assert client_of({"id": "app"}).groups is None
    assert client_of({"id": "app", "allowedUserGroups": []}).groups == ()


# --- versions


@pytest.mark.parametrize(
    ("text", "number", "supported"),
    [
        ("2.14.0", (2, 14, 0), True), ("v2.17", (2, 17, 0), True), ("2.15.0-rc.1", (2, 15, 0), True), ("2.13.9", (2, 13, 9), False),
        ("3.0.0", (3, 0, 0), False), ("unknown", None, True), ("", None, True), ("2", None, True), ("9" * 50, None, True),
    ],
)  # fmt: skip
def test_versions_are_read_and_judged(text: str, number: tuple[int, int, int] | None, supported: bool) -> None:
    version = Version.of(text)
    assert (version.number, version.is_supported) == (number, supported)


@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("2.14.3", (Support.NO, Support.NO)), ("2.15.0", (Support.YES, Support.NO)),
        ("2.17.0", (Support.YES, Support.YES)), ("unknown", (Support.BY_READBACK,) * 2),
    ],
)  # fmt: skip
def test_features_go_by_version(text: str, answers: tuple[Support, ...]) -> None:
    features = (Feature.PUBLIC_KEYS, Feature.BACKCHANNEL_LOGOUT)
    assert tuple(Version.of(text).supports(feature) for feature in features) == answers


def test_only_what_carries_something_can_be_dropped() -> None:
    sent = {
        "a": "",
        "b": None,
        "c": False,
        "d": [],
        "e": 0,
        "f": "x",
        "g": {"h": "y", "i": ""},
        "logoUrl": "https://a.example/l",
    }
    assert dropped(sent, {"g": {}}) == ("f", "g.h")
    assert dropped({"l": [{"m": 1}, {"m": 2}]}, {"l": [{"m": 1}, {}]}) == ("l[1].m",)
    assert dropped({"n": "old"}, {"n": "new"}) == ()
