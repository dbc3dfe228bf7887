"""Characters that nobody sees in a line of text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.core.unseen import escaped, has_unseen


@pytest.mark.parametrize(
    "char", ["\0", "\n", "\x7f", "\x85", "\u200b", "\u2028", "\u202e", "\u2067", "\ufeff", "\ud800"]
)
def test_what_nobody_sees_is_found_and_shown(char: str) -> None:
    """Controls, separators, turned directions, spaces without width and halves of characters."""
    assert has_unseen(f"a{char}b")
    assert escaped(f"a{char}b").isascii()


@pytest.mark.parametrize("text", ["میخواهم", "👩\u200d👧", "क्\u200dष", "Ünïcode Näme", "a b"])
def test_what_words_are_written_with_stays(text: str) -> None:
    """Joiners are part of words in Persian and Hindi, and of emoji."""
    assert not has_unseen(text)


@given(st.text())
def test_an_escaped_text_hides_nothing(text: str) -> None:
    """Whatever came in."""
    assert not has_unseen(escaped(text))
