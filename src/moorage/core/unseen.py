"""Characters that nobody sees in a line of text.

Enters: any text that a person declared. Leaves: whether it is what it looks like. Pure. Controls, separators of lines, halves of characters,
marks that turn the direction of writing (Unicode Technical Report 36, 2.5), fillers and spaces without width. Joiners stay: words of Persian and
Hindi, and emoji, are written with them.
"""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ufeff\uffa0"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
_CONTROLS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def has_controls(text: str) -> bool:
    """Whether a text of several lines holds what no text does, and some databases do not store: controls but tabs and ends of lines."""
    return _CONTROLS.search(text) is not None


def has_unseen(text: str) -> bool:
    """Whether a text holds a character that people would not see."""
    return _UNSEEN.search(text) is not None


def escaped(text: str) -> str:
    """The text with such characters as escapes."""
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)
