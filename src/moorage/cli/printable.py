"""Text from elsewhere on a terminal.

Enters: any text. Leaves: text that moves no cursor and turns no line around. It prints nothing itself.
"""

from __future__ import annotations

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")


def printable(text: str) -> str:
    """Text for a terminal: control characters and those that turn the direction of writing are shown as escapes."""
    return "".join(char if char.isprintable() and char not in _TURNING else f"\\u{ord(char):04x}" for char in text)
