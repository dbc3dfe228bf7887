"""Patterns of CRDs are RE2 (Go) regular expressions; Python's `re` reads most of them the same way.

Enters: an RE2 pattern. Leaves: a compiled Python pattern that matches the same texts, for the syntax that both share.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

_CLASSES: Final = {
    "alpha": "a-zA-Z", "digit": "0-9", "alnum": "a-zA-Z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\t\n\v\f\r ",
    "punct": r"!-/:-@\[-`{-~", "xdigit": "0-9A-Fa-f", "word": "0-9A-Za-z_", "blank": r"\t ", "cntrl": r"\x00-\x1f\x7f",
    "print": " -~", "graph": "!-~", "ascii": r"\x00-\x7f",
}  # fmt: skip
_POSIX: Final = re.compile(r"\[:(\w+):\]")
_PIECE: Final = re.compile(r"\\.|\[\^?\]?|\]|\$|.", re.DOTALL)


@lru_cache(maxsize=4096)
def compile_pattern(source: str) -> re.Pattern[str]:
    """The pattern, ready to search with.

    Raises:
        re.error: it is not a regular expression.
    """
    return re.compile(_translate(source), re.ASCII)


def _translate(source: str) -> str:
    r"""Names of POSIX classes are written out, `\z` and a final `$` mean the very end, as in RE2."""
    source = _POSIX.sub(lambda found: _CLASSES.get(found[1], found[0]), source)
    made: list[str] = []
    in_class = False
    for piece in _PIECE.findall(source):
        if piece == r"\z" or (piece == "$" and not in_class):
            piece = r"\Z"
        elif piece.startswith("[") and not in_class:
            in_class = True
        elif piece.startswith("[") and in_class:
            piece = "\\" + piece
        elif piece == "]":
            in_class = False
        made.append(piece)
    return "".join(made)


def is_pattern(source: str) -> bool:
    """Whether the text is a regular expression."""
    try:
        compile_pattern(source)
    except re.error:
        return False
    return True
