"""YAML from people and strangers: what Kubernetes reads is read, what would stop the machine is refused with its place."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.yamltext import Unreadable, load, load_all

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**9), 10**9)
    | st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.text(st.characters(codec="ascii", categories=("L",)), min_size=1, max_size=6), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def bomb(levels: int) -> str:
    """Nine aliases a level: nine to the power of `levels` values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@given(PLAIN)
def test_what_a_yaml_writer_wrote_is_read_back(value: object) -> None:
    """Plain values survive."""
    assert list(load_all(yaml.safe_dump(value))) == [value]


def test_merge_keys_are_read_and_may_be_overridden() -> None:
    """As kubectl reads them; an own key wins and is no repetition."""
    text = "base: &b {x: 1, y: 2}\nmade: {<<: *b, y: 3}\n"
    assert next(load_all(text))["made"] == {"x": 1, "y": 3}


def test_keys_become_text_and_times_stay_text() -> None:
    """JSON knows neither other keys nor times."""
    assert list(load_all("1: a\ntrue: b\nwhen: 2026-01-01\n")) == [{"1": "a", "true": "b", "when": "2026-01-01"}]


@pytest.mark.parametrize(
    ("text", "why", "place"),
    [
        (bomb(9), "excessive aliasing", (7, 5)),
        ("a: &m {x: *m}", "refers to itself", (1, 4)),
        ("n: " + "9" * 5000, "a number of 5000 digits", (1, 4)),
        ("a: 1\na: 2", "key 'a' is given twice", (2, 1)),
        ("a: b: c", "mapping values are not allowed", (1, 5)),
        ("[" * 300 + "]" * 300, "nested more than", (1, 202)),
        ("a: \x00", "character #x0000 is not allowed", (0, 0)),
        ("a: !!python/object:os.system x", "could not determine a constructor", (1, 4)),
    ],
    ids=["bomb", "loop", "digits", "twice", "syntax", "deep", "nul", "tag"],
)
def test_what_is_refused_is_named_with_its_place(text: str, why: str, place: tuple[int, int]) -> None:
    """Line and column count from 1."""
    with pytest.raises(Unreadable, match=why) as caught:
        list(load_all(text))
    assert (caught.value.line, caught.value.column) == place


def test_a_body_notes_repeated_keys_and_takes_the_last() -> None:
    """The API server answers them with a warning or an error, as the client asked."""
    repeated: list[str] = []
    value = load("a: 1\na: 2\nb: {c: 1, c: 2}", repeated)
    assert value == {"a": 2, "b": {"c": 2}}
    assert repeated == ['line 2: key "a" already set in map', 'line 3: key "c" already set in map']


def test_a_body_is_one_document() -> None:
    """A second one is not ignored."""
    with pytest.raises(Unreadable, match="more than one document"):
        load("a: 1\n---\nb: 2", [])
