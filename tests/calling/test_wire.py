"""JSON of the wire: what the quick library cannot say exactly is said as `json` says it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.calling import wire

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_infinity=False, allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine draws slowly
@given(VALUES)
def test_what_is_sent_means_what_json_would_have_sent(value: Any) -> None:
    sent = json.loads(wire.dumps(value))
    assert sent == value
    assert json.dumps(sent) == json.dumps(value), "key order, and integers that stay integers"


@pytest.mark.parametrize("value", ["\ud800", {"a": float("nan")}, 10**30, {1: "a"}, {"a": None, "b": float("inf")}])
def test_what_only_json_can_say_is_sent_as_before(value: Any) -> None:
    assert wire.dumps(value) == json.dumps(value, separators=(",", ":")).encode()


@pytest.mark.parametrize("text", ['"\\ud800"', '{"a": 1, "a": 2}', "1e400", str(2**64 - 1), str(-(2**63)), "1.0", "{}"])
def test_what_comes_reads_as_json_reads_it(text: str) -> None:
    assert repr(wire.loads(text.encode())) == repr(json.loads(text))


def test_an_integer_of_more_than_64_bits_reads_as_a_float_as_in_kubernetes() -> None:
    assert wire.loads(b"100000000000000000000") == 1e20


@pytest.mark.parametrize("text", ["", "{", "nothing", '{"a":}'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        wire.loads(text.encode())


def test_what_is_no_json_value_is_never_sent() -> None:
    with pytest.raises(TypeError):
        wire.dumps({"a": object()})
