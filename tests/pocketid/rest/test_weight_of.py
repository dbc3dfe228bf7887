"""What an answer takes in memory, known before it is decoded: never too little, and not much too much for one odd character."""

from __future__ import annotations

import json
import sys
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.calling import wire
from moorage.pocketid.rest_weight import weight_of

EMOJI = "\U0001f600"
TEXTS = [
    "\u00e9", "\u00e9a", "\u00e9" * 5, "\u20ac", "\u20aca", EMOJI, f"{EMOJI}a", "x" * 100 + "\u00e9", "x" * 100 + "\u20ac", "x" * 100 + EMOJI,
    f'a"{EMOJI}', f"\\{EMOJI}", f'\\"{EMOJI}{"x" * 90}', "a&b" * 30,
]  # fmt: skip


def taken_by(body: bytes) -> int:
    """Bytes of memory of an answer once it is decoded, measured."""
    tracemalloc.start()
    try:
        kept = wire.loads(body)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept
    return taken


@pytest.mark.parametrize(
    "junk",
    [
        "[],",
        "{},",
        '{"a":1},',
        "1.5,",
        "null,",
        '"\\ud83d\\ude00xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",',
        "[[[[[]]]]],",
    ],
)
def test_what_an_answer_takes_in_memory_is_known_before_it_is_decoded(junk: str) -> None:
    """Three bytes of text may be sixty of memory; an estimate that is too low would be no bound."""
    body = f"[{junk * 2000}0]".encode()
    assert weight_of(body) >= taken_by(body)


@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "as it is"])
@pytest.mark.parametrize("text", TEXTS, ids=ascii)
def test_texts_with_odd_characters_take_no_more_than_is_said(text: str, escaped: bool) -> None:
    """Measured: such a text has a larger head than ASCII has, and one wide character makes all of its characters wide."""
    body = json.dumps([text] * 3000, ensure_ascii=escaped).encode()
    assert weight_of(body) >= taken_by(body)


@given(
    st.lists(st.lists(st.sampled_from(["a", '"', "\\", "u0026", "\u00e9", "\u20ac", EMOJI])).map("".join), min_size=1),
    st.booleans(),
)
def test_no_text_hides_behind_quotes_and_backslashes_of_others(texts: list[str], escaped: bool) -> None:
    wide = [f"{text}{'x' * 500}" for text in texts]
    body = json.dumps(wide, ensure_ascii=escaped, separators=(",", ":")).encode()
    assert weight_of(body) >= sum(sys.getsizeof(text) for text in json.loads(body))


@pytest.mark.parametrize("escaped", [True, False], ids=["escaped", "as it is"])
def test_one_wide_character_makes_its_own_text_wide_and_no_other(escaped: bool) -> None:
    """A tenant's description made the whole page of everybody's clients count four times."""
    rows = [{"id": str(number), "callbackURLs": ["https://a.example.com/" + "x" * 1000] * 50} for number in range(50)]
    plain = weight_of(json.dumps([*rows, {"description": "smile"}]).encode())
    odd = weight_of(json.dumps([*rows, {"description": f"smile {EMOJI}"}], ensure_ascii=escaped).encode())
    assert odd - plain < 200


def test_texts_full_of_escapes_are_weighed_without_a_look_at_each() -> None:
    """Whoever fills an answer with them shall not keep the operator busy: all texts of it count as wide as the widest."""
    quotes = f'"{chr(92)}"' * (1 << 19)
    body = f'["{chr(92)}"{quotes.replace(chr(34), chr(92) + chr(34))}{EMOJI}"]'.encode()
    assert weight_of(body) >= 4 * len(body)
