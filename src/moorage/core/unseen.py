"""Characters that nobody sees in a line of text.

Enters: any text that a person declared. Leaves: whether it is what it looks like. Pure. Controls, separators of lines, halves of characters,
marks that turn the direction of writing (Unicode Technical Report 36, 2.5), spaces without width. Joiners stay: words of Persian and
Hindi, and emoji, are written with them.
"""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\u200b\u2028-\u202e\u2060\u2066-\u2069\ufeff\ud800-\udfff]")


def has_unseen(text: str) -> bool:
    """Whether a text holds a character that people would not see."""
    return _UNSEEN.search(text) is not None


def escaped(text: str) -> str:
    """The text with such characters as escapes."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)
