"""What JSON takes in memory once it is decoded, known before it is.

Enters: bytes of an answer. Leaves: bytes of memory, rather too many. Pure.
"""

from __future__ import annotations

import re
from typing import Final

WEIGHT_LIMIT: Final = 32 << 20
"""Bytes of memory of one answer once it is decoded: a group of ten thousand users has some 26 MiB."""
_WIDEST: Final = re.compile(rb"[\xf0-\xf4]"), re.compile(rb"\\u[dD]")
"""A character that makes four bytes of each of the text that it stands in, as it is and escaped."""
_WIDE: Final = re.compile(rb"[\xc4-\xef]"), re.compile(rb"\\u(?!00)")
"""One that makes two."""
_TEXT: Final = re.compile(rb'"([^"\\]*(?:\\.[^"\\]*)*)"?', re.DOTALL)
"""The next text, ended or not, so that it never has to go back: possessive patterns would be quicker, and do not work in Python 3.11.2."""
_ODD_TEXT_EXTRA: Final = 32
"""Bytes that a text takes beyond an ASCII one of its length when it is not all ASCII."""
_ESCAPES: Final = 1 << 19
"""In one answer; with more of them, which nobody writes, every text counts as wide as the widest character of all."""
_SHORT: Final = 64
"""Bytes of a text that is not worth a look: it counts as four bytes a character."""


def weight_of(body: bytes) -> int:
    """Bytes of memory that JSON takes once it is decoded, rather too many: every value is 64 and every object 256, whatever it holds.

    Known before it is decoded, in a few passes over the bytes: `[],` is three bytes of text and twenty times as many of memory.
    """
    weight = len(body) + 64 * (body.count(b",") + body.count(b"[")) + 256 * body.count(b"{")
    if weight > WEIGHT_LIMIT or (body.isascii() and b"\\u" not in body):
        return weight
    if body.count(b"\\") > _ESCAPES:  # texts full of them take long to find the end of
        return weight + _width(body) * len(body) + _ODD_TEXT_EXTRA * body.count(b'"')
    texts = (found[1] for found in _TEXT.finditer(body))
    odd = (text for text in texts if not text.isascii() or b"\\u" in text)
    return weight + sum(_ODD_TEXT_EXTRA + _width(text) * len(text) for text in odd)


def _width(text: bytes) -> int:
    """Bytes that each character of a text takes beyond the first."""
    if len(text) < _SHORT or any(kind.search(text) for kind in _WIDEST):
        return 3
    return 1 if any(kind.search(text) for kind in _WIDE) else 0
