"""Patterns of CRDs are RE2 regular expressions, as in Go: matched by RE2 itself, in time linear in the text.

A pattern comes from whoever may create a CRD and runs inside the server's one event loop: a backtracking engine would let one
pattern and thirty characters stop everything. Enters: a pattern. Leaves: something to search with.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

_GO_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid character class range": "invalid character class range",
    "trailing \\": "trailing backslash at end of expression",
}
"""How Go words what RE2 complains about."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. Lone surrogates, which no UTF-8 text holds, are read as question marks."""

    _compiled: Any

    def search(self, text: str) -> Any:
        """The first match in the text, or None."""
        return self._compiled.search(_encodable(text))

    def finditer(self, text: str) -> Iterator[Any]:
        """All matches, from left to right."""
        found: Iterator[Any] = self._compiled.finditer(_encodable(text))
        return found


def _encodable(text: str) -> str:
    return text if text.isascii() else text.encode(errors="replace").decode()


class BadPattern(ValueError):
    """The text is no RE2 regular expression; the message says why, as Go words it."""


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> Pattern:
    """The pattern, ready to search with.

    Raises:
        BadPattern: it is not a regular expression.
    """
    import re2  # brought in by the first pattern, not by the import of a schema

    options = re2.Options()
    options.log_errors = False
    try:
        return Pattern(re2.compile(_encodable(source), options))
    except re2.error as error:
        raise BadPattern(_go_words(error.args[0] if error.args else b"")) from None


def _go_words(why: bytes | str) -> str:
    text = why.decode(errors="replace") if isinstance(why, bytes) else why
    kind, _, fragment = text.partition(": ")
    words = _GO_WORDS.get(kind, kind)
    return f"{words}: `{fragment}`" if fragment else words


def is_pattern(source: str) -> bool:
    """Whether the text is a regular expression."""
    try:
        compile_pattern(source)
    except BadPattern:
        return False
    return True
