"""JSON in one line, as programs send it where YAML is expected: read as JSON, at a tenth of the cost, where both read the same.

Enters: a body. Leaves: the object, or None where YAML must say what it is: it refuses, folds or tells more than JSON does. It must not read anything
differently (a test draws objects and compares).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from moorage.core.meta import JsonObject

_LONGEST: Final = 1_000_000
_DEEPEST: Final = 150
_KEY: Final = 1000
"""YAML finds no key that is longer than 1,024 characters."""
_DIGITS: Final = 18
_OTHERWISE: Final = re.compile(
    r"[^\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\\u"
)
"""Characters that YAML refuses or takes for the end of a line, and escapes, whose halves are mended elsewhere."""


class _Otherwise(Exception):
    """YAML may read this in another way."""


def plain(body: bytes) -> JsonObject | None:
    """The object of a body that is one line of JSON without repeated keys, fractions or unusual characters."""
    if body[:1] != b"{" or len(body) > _LONGEST:
        return None
    try:
        text = body.decode()
        if _OTHERWISE.search(text):
            return None
        found: JsonObject = json.loads(
            text, object_pairs_hook=_mapping, parse_float=_refused, parse_constant=_refused, parse_int=_whole
        )
    except (ValueError, RecursionError, _Otherwise):
        return None
    return found if _shallow(found) else None


def _mapping(pairs: list[tuple[str, Any]]) -> JsonObject:
    made = dict(pairs)
    if len(made) != len(pairs) or any(len(key) > _KEY for key in made):
        raise _Otherwise
    return made


def _whole(text: str) -> int:
    if len(text) > _DIGITS or text == "-0":
        raise _Otherwise
    return int(text)


def _refused(text: str) -> float:
    raise _Otherwise(text)


def _shallow(found: JsonObject) -> bool:
    """Whether YAML would follow to the bottom."""
    level: list[Any] = [found]
    for _ in range(_DEEPEST):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return True
    return False
