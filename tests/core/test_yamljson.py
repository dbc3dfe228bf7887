"""JSON in place of YAML: what is read quickly is what YAML reads, and what YAML sees otherwise is left to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.yamljson import plain
from moorage.core.yamltext import Unreadable, load

WORDS = st.text(max_size=12) | st.sampled_from(
    ["<<", "=", "y", "no", "1e3", "~", "a: b", "# c", "- d", "\\", '"', "\u2028", "\x85", "\x7f", "\ufeff"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


def shown(value: Any) -> str:
    """Types and the order of keys count as well."""
    return json.dumps(value)


@given(st.dictionaries(WORDS, VALUES, max_size=4), st.booleans(), st.booleans())
def test_what_is_read_as_json_is_what_yaml_reads(value: dict[str, Any], escaped: bool, spaced: bool) -> None:
    """Whatever is in it; compact and with blanks, escaped and not."""
    text = json.dumps(value, ensure_ascii=escaped, separators=None if spaced else (",", ":"))
    found = plain(text.encode(errors="replace"))
    repeated: list[str] = []
    assert found is None or (shown(found), repeated) == (shown(load(text, repeated)), [])


def test_what_programs_send_is_read_so() -> None:
    """An object with text in several scripts, numbers, truth and nothing."""
    value = {"kind": "A", "data": {"größe": '日本 \n\t\\ "', "n": -7, "on": True, "none": None, "list": [{}, [], "x"]}}
    assert plain(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}', '{"a": 1.5}', '{"a": 1e3}', '{"a": NaN}', '{"a": -0}', '{"a": 1234567890123456789}',
        '{"a":\n1}', '{"a":\t1}', '{"a": "\x7f"}', '{"a": "\u2028"}', '{"a": "\\ud83d"}', '{"a": 1', "[]", "a: 1", "",
        '{"' + "k" * 1100 + '": 1}', '{"a": ' + "[" * 180 + "]" * 180 + "}", '{"a": "' + "x" * 1_000_000 + '"}', "{a: 1}",
    ],
)  # fmt: skip
def test_what_yaml_may_see_otherwise_is_left_to_it(text: str) -> None:
    assert plain(text.encode()) is None


def test_yaml_refuses_a_key_that_is_left_to_it() -> None:
    """So the bound of the key is there for a reason."""
    with pytest.raises(Unreadable):
        load('{"' + "k" * 1100 + '": 1}', [])
