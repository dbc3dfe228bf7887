"""Characters beyond the BMP as JSON writers escape them: two halves (`\\ud83d\\ude00`), which are no escapes of YAML.

Enters: text that will be read as YAML. Leaves: the same text with each pair as the one escape that YAML knows (`\\U0001f600`), and where things
stood before. Only JSON is changed, as far as it is JSON: in YAML the halves may be plain text. Half a pair stays, and YAML refuses it at its place.
"""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

_START: Final = re.compile(r"(?m)(?:\A\ufeff?|^---)\s*(?=[{\[])")
_PAIR: Final = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})|\\.")
_LINE: Final = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
_SHORTER: Final = len(r"\ud83d\ude00") - len(r"\U0001f600")


class Mended(NamedTuple):
    """Text in which YAML can read what JSON wrote.

    Args:
        before: the text that came in, as long as it was changed.
        pairs: where the pairs stood in it.
    """

    text: str
    before: str = ""
    pairs: tuple[int, ...] = ()

    def column(self, line: int, column: int) -> int:
        """The column of the text that came in; both count from 1."""
        begins = [0, *(found.end() for found in _LINE.finditer(self.before))]
        if not self.pairs or not 0 < line <= len(begins):
            return column
        begin, end = begins[line - 1], [*begins[1:], len(self.before)][line - 1]
        for pair in self.pairs:
            if begin <= pair < end and pair - begin + 1 < column:
                column += _SHORTER
        return column


def mended(text: str) -> Mended:
    """The text with one escape for each pair."""
    if "\\ud" not in text and "\\uD" not in text:
        return Mended(text)
    parts: list[str] = []
    pairs: list[int] = []
    done = 0
    for begin, end in _json_parts(text):
        for found in _PAIR.finditer(text, begin, end):
            if found[1]:
                parts += text[done : found.start()], _escape(found[1], found[2])
                pairs.append(found.start())
                done = found.end()
    return Mended("".join((*parts, text[done:])), text, tuple(pairs)) if pairs else Mended(text)


def _escape(high: str, low: str) -> str:
    code = 0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)
    return f"\\U{code:08x}"


def _json_parts(text: str) -> list[tuple[int, int]]:
    """Where documents are JSON: from their start to their end, or to what is no JSON."""
    decoder, parts, done = json.JSONDecoder(), [], 0
    for start in _START.finditer(text):
        if (begin := start.end()) < done:
            continue
        try:
            _, done = decoder.raw_decode(text, begin)
        except json.JSONDecodeError as error:
            done = error.pos
        except (RecursionError, ValueError):  # nested without end, a number of thousands of digits: YAML says so
            continue
        parts.append((begin, done))
    return parts
