"""The comparison notices: each kind of difference is one, and only that."""

from __future__ import annotations

from typing import Any

import pytest
from tests.pocketid.contract.matching import Names, differences, projected

ID, OTHER = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ({"a": 1}, {"a": 2}), ({"a": 1}, {}), ({}, {"a": 1}), ({"a": "<absent>"}, {"a": None}), ([1], [1, 2]), ([1, 2], [2, 1]),
        ({"a": False}, {"a": 0}), ({"a": None}, {"a": ""}), ("<time sec Z>", "2040-01-01T00:00:00.5Z"), ("<time frac Z>", "2040-01-01T00:00:00Z"),
        ("<time sec offset>", "2040-01-01T00:00:00Z"), ("<id1>", "app"), (["<id1>", "<id1>"], [ID, OTHER]), ("<unix seconds>", "5"),
        ("<420 or 419>", 418), ({"p": "<prefix of secret1>", "s": "<secret1: 32 letters and digits>"}, {"p": "wxyz", "s": "a" * 32}),
        ({"s": "<secret1: 32 letters and digits>"}, {"s": "a" * 31}), ("<text>", ""), ("text", 5),
    ],
)  # fmt: skip
def test_a_difference_is_noticed(want: Any, got: Any) -> None:
    assert differences(Names(), want, got)


@pytest.mark.parametrize(
    ("want", "got"),
    [
        ({"a": "<absent>"}, {}), (["<id1>", "<id2>", "<id1>"], [ID, OTHER, ID]), ("<time frac offset>", "2040-01-01T00:00:00.123456789+05:30"),
        ({"p": "<prefix of secret1>", "s": "<secret1: 32 letters and digits>"}, {"p": "aaaa", "s": "a" * 32}), ("<420 or 419>", 419),
        ("static-api-user-<6 chars>", "static-api-user-abc123"), ("<text>", "any"),
    ],
)  # fmt: skip
def test_what_may_differ_may_differ(want: Any, got: Any) -> None:
    assert differences(Names(), want, got) == []


def test_an_arbitrary_order_is_any_order_of_the_same_rows() -> None:
    want = [{"id": "<id1>", "n": "a"}, {"id": "<id2>", "n": "b"}]
    assert differences(Names(), want, [{"id": OTHER, "n": "b"}, {"id": ID, "n": "a"}], unordered=True) == []
    assert differences(Names(), want, [{"id": OTHER, "n": "b"}, {"id": ID, "n": "b"}], unordered=True)


def test_a_projection_shows_members_only() -> None:
    assert projected(["n"], {"n": 1, "m": 2}) == {"n": 1}
    assert projected(["n"], {"data": [{"n": 1, "m": 2}], "pagination": {}}) == {"data": [1], "pagination": {}}
    assert projected(["n", "m"], [{"n": 1, "m": 2, "o": 3}]) == [{"n": 1, "m": 2}]
