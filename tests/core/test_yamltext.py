"""YAML from people and strangers: what Kubernetes reads is read, what would stop the machine is refused with its place."""

from __future__ import annotations

import json

import pytest
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


SCALARS: dict[str, object] = {
    **dict.fromkeys(("y", "Y", "yes", "on", "TRUE"), True),
    **dict.fromkeys(("n", "N", "No", "OFF"), False),
    **dict.fromkeys(("tRue", "yEs", "1:30", "190:20:30", "2026-01-01", "1.2.3", "0b2", "12e", "_1", "nUll"), None),
    "1e3": 1000,
    "+12e03": 12000,
    "1.5e-3": 0.0015,
    "0o14": 12,
    "0O14": 12,
    "014": 12,
    "09": 9,
    "0x1F": 31,
    "0b11": 3,
    "1_000": 1000,
    "1.": 1,
    "+.5": 0.5,
    "0.1e1": 1,
    "-0": 0,
    "+1": 1,
    "-0x1f": -31,
    "1_0.5": 10.5,
}
"""Plain words and what they are; None here: text, as it stands."""
SCALARS = {word: word if read is None else read for word, read in SCALARS.items()}


def bomb(levels: int) -> str:
    """Nine aliases a level: nine to the power of `levels` values."""
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


@given(PLAIN)
def test_what_a_json_writer_wrote_is_read_back(value: object) -> None:
    """JSON is YAML."""
    assert list(load_all(json.dumps(value))) == [value]


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=12))
def test_a_text_that_a_json_writer_escaped_is_read_back(text: str) -> None:
    """A character beyond the BMP is a pair of escapes in JSON, which is no escape of YAML."""
    assert list(load_all(json.dumps({"a": text, text: [text]}))) == [{"a": text, text: [text]}]


def test_pairs_are_read_in_each_document_of_json_and_only_there() -> None:
    """A backslash that is escaped, a quoted text of YAML: what stands there is plain text."""
    text = '{"a": "\\ud83d\\uDE00 \\\\ud83d"}\n---\n["\\uD83D\\ude00"]\n---\n{\'a\': \'\\ud83d\\ude00\'}\n---\na: \\ud83d\\ude00\n'
    assert list(load_all(text)) == [
        {"a": "\N{GRINNING FACE} \\ud83d"},
        ["\N{GRINNING FACE}"],
        {"a": "\\ud83d\\ude00"},
        {"a": "\\ud83d\\ude00"},
    ]


@pytest.mark.parametrize(
    ("text", "why", "place"),
    [
        ('{"a": "\\ud83d"}', "invalid Unicode character escape", (1, 10)),
        ('{"a": "\\ude00\\ud83d"}', "invalid Unicode character escape", (1, 10)),
        ('{"a": "\\ud83d\\ude00 \\ud83d"}', "invalid Unicode character escape", (1, 23)),
        ('{"a":\n ["\\ud83d\\ude00", "\\ud83d\\ude00"], "b": 1, "b": 2}', "given twice", (2, 44)),
        ('{"a": "\\ud83d\\ude00",\n "b": 1, "b": 2}', "given twice", (2, 10)),
        ('{"a": "\\ud83d\\ude00", "b": [}', "did not find expected node", (1, 29)),
    ],
    ids=["half", "turned", "half behind a pair", "same line", "next line", "no more JSON"],
)
def test_half_a_pair_and_what_stands_behind_a_pair_are_refused_at_their_place(
    text: str, why: str, place: tuple[int, int]
) -> None:
    """The column is that of the file, not of what was made of it."""
    with pytest.raises(Unreadable, match=why) as caught:
        list(load_all(text))
    assert (caught.value.line, caught.value.column) == place


def test_merge_keys_are_read_and_may_be_overridden() -> None:
    """As kubectl reads them; an own key wins and is no repetition."""
    text = "base: &b {x: 1, z: 2}\nmade: {<<: *b, z: 3}\n"
    assert next(load_all(text))["made"] == {"x": 1, "z": 3}


@pytest.mark.parametrize(("word", "read"), SCALARS.items())
def test_plain_words_are_what_kubectl_makes_of_them(word: str, read: object) -> None:
    """tests/conformance/test_yaml.py asks the real one."""
    found = next(load_all(f"k: {word}\n"))["k"]
    assert (type(found), found) == (type(read), read)


def test_a_key_that_kubectl_reads_as_a_truth_value_is_one() -> None:
    """The `y` of an elliptic curve is the one that people meet."""
    assert next(load_all("y: 1\nn: 2\n")) == {"true": 1, "false": 2}


@pytest.mark.parametrize(
    "value",
    ["!!binary aGk=", "!!set {a, b}", "!!timestamp 2026-01-01", "!!omap [b: 1]", '!!bool "x"', "!!int x", "!foo bar"],
)
def test_other_types_than_those_of_json_are_refused_at_their_place(value: str) -> None:
    with pytest.raises(Unreadable) as refused:
        next(load_all(f"a:\n  b: {value}\n"))
    assert refused.value.line == 2


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
