"""CEL functions on text: the strings extension, regular expressions.

Enters: plain values. Leaves: plain values; ValueError becomes the evaluation's error.
"""

from __future__ import annotations

import base64
import re
from typing import Any, Final

from .fielderror import format_value
from .gopattern import BadPattern, Pattern, compile_pattern

_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER: Final = {upper: lower for lower, upper in _UPPER.items()}
_VERB: Final = re.compile(r"%(?:\.(\d+))?([sdfexXob%])")


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise ValueError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise ValueError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, last: int | None = None) -> int:
    if last is None:
        return text.rfind(part)
    if not 0 <= last <= len(text):
        raise ValueError(f"index out of range: {last}")
    return text.rfind(part, 0, last + len(part))


def _replace(text: str, old: str, new: str, times: int = -1) -> str:
    return text.replace(old, new, times)


def _split(text: str, separator: str, times: int = -1) -> list[str]:
    if times == 0:
        return []
    if not separator:
        return list(text) if times < 0 or times >= len(text) else [*text[: times - 1], text[times - 1 :]]
    return text.split(separator, times - 1 if times > 0 else -1)


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise ValueError(f"index out of range: {start}")
    if not start <= stop <= len(text):
        raise ValueError(
            f"index out of range: {stop}"
            if stop > len(text)
            else f"invalid substring range. start: {start}, end: {stop}"
        )
    return text[start:stop]


def _join(parts: list[Any], separator: str = "") -> str:
    if not all(isinstance(part, str) for part in parts):
        raise ValueError("no such overload")
    return separator.join(parts)


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    found = [match[0] for match in _compiled(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


def _compiled(pattern: str) -> Pattern:
    try:
        return compile_pattern(pattern)
    except BadPattern as error:
        raise ValueError(f"Illegal regex: {error}") from None


def _format(template: str, values: list[Any]) -> str:
    """`'%s is %d'.format([a, b])`."""
    rest = iter(values)

    def one(found: re.Match[str]) -> str:
        if found[2] == "%":
            return "%"
        try:
            value = next(rest)
        except StopIteration:
            raise ValueError("index out of range") from None
        return _format_one(found[2], found[1], value)

    return _VERB.sub(one, template)


def _format_one(verb: str, precision: str | None, value: Any) -> str:
    if verb == "s":
        return text_of(value)
    if verb in "fe":
        return f"{float(value):.{precision or 6}{verb}}"
    if verb == "d":
        return str(int(value))
    return format(value, verb) if isinstance(value, int) else value.encode().hex()


def text_of(value: Any) -> str:
    """How `%s` shows a value."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, list):
        return "[" + ", ".join(text_of(item) for item in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{text_of(key)}: {text_of(value[key])}" for key in sorted(value)) + "}"
    return str(value)


def _decoded(text: str) -> bytes:
    return base64.b64decode(text)


ROWS: Final = (
    ("decoded_bytes", "__bytes", False, ("string",), "bytes", _decoded),
    ("string_char_at", "charAt", True, ("string", "int"), "string", _char_at),
    ("string_index_of", "indexOf", True, ("string", "string"), "int", _index_of),
    ("string_index_of_from", "indexOf", True, ("string", "string", "int"), "int", _index_of),
    ("string_last_index_of", "lastIndexOf", True, ("string", "string"), "int", _last_index_of),
    ("string_last_index_of_from", "lastIndexOf", True, ("string", "string", "int"), "int", _last_index_of),
    ("string_lower_ascii", "lowerAscii", True, ("string",), "string", lambda text: text.translate(_LOWER)),
    ("string_upper_ascii", "upperAscii", True, ("string",), "string", lambda text: text.translate(_UPPER)),
    ("string_replace", "replace", True, ("string", "string", "string"), "string", _replace),
    ("string_replace_times", "replace", True, ("string", "string", "string", "int"), "string", _replace),
    ("string_split", "split", True, ("string", "string"), "strings", _split),
    ("string_split_times", "split", True, ("string", "string", "int"), "strings", _split),
    ("string_substring", "substring", True, ("string", "int"), "string", _substring),
    ("string_substring_to", "substring", True, ("string", "int", "int"), "string", _substring),
    ("string_trim", "trim", True, ("string",), "string", str.strip),
    ("string_format", "format", True, ("string", "list"), "string", _format),
    ("strings_quote", "strings.quote", False, ("string",), "string", format_value),
    ("list_join", "join", True, ("list",), "string", _join),
    ("list_join_separator", "join", True, ("list", "string"), "string", _join),
    ("string_find", "find", True, ("string", "string"), "string", _find),
    ("string_find_all", "findAll", True, ("string", "string"), "strings", _find_all),
    ("string_find_all_limit", "findAll", True, ("string", "string", "int"), "strings", _find_all),
)
"""Rows for `cellibrary.functions`."""
