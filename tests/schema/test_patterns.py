"""Patterns of CRDs come from strangers and run inside the server's event loop."""

from __future__ import annotations

import pytest

from moorage.schema import Structural
from moorage.schema.gopattern import BadPattern, compile_pattern


def test_a_pattern_that_backtracks_for_ever_elsewhere_ends_here() -> None:
    """Linear time: a backtracking engine would not return within the life of the machine."""
    schema = Structural.compile({"type": "string", "pattern": "^(a+)+$"})
    assert schema.validate("a" * 100_000 + "b").errors
    assert not schema.validate("a" * 100_000).errors


@pytest.mark.parametrize("source", ["a(?=b)", "(", "[a", "a**", "a{1001}", "\\"])
def test_what_go_does_not_take_is_refused_in_its_words(source: str) -> None:
    """Look-ahead and broken syntax."""
    with pytest.raises(BadPattern, match=r"^\w+"):
        compile_pattern(source)


def test_text_that_is_no_utf_8_is_searched_all_the_same() -> None:
    """A lone surrogate from a JSON escape."""
    assert compile_pattern("^a.b$").search("a\ud800b")
    assert not compile_pattern("^ab$").search("a\ud800b")


def test_a_dollar_means_the_very_end() -> None:
    """Not the place before a final newline."""
    assert not compile_pattern("^a$").search("a\n")
