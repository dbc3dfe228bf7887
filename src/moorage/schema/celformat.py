"""Kubernetes' `format` library in CEL: `format.dns1123Label().validate(x)` is an optional list of complaints.

Enters: the source of a rule. Leaves: the source with such calls written as one function that the engine can have,
because functions of ours cannot make optionals. Source: Kubernetes documentation, "Kubernetes format library".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from moorage.core import names

from .formats import FORMATS, is_uri

_CALL: Final = re.compile(r"\bformat\.(\w+)\(\)\.validate\(|\bformat\.named\((['\"])(\w+)\2\)\.value\(\)\.validate\(")
_LITERAL: Final = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'")


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A name to which a generated suffix is added may end in a dash."""
    return lambda text: check(text[:-1] + "a" if len(text) > 1 and text.endswith("-") else text)


def _plain(name: str, complaint: str) -> Callable[[str], list[str]]:
    return lambda text: [] if FORMATS[name](text) else [complaint]


def _uri(text: str) -> list[str]:
    return [] if is_uri(text) else [f'parse "{text}": {"invalid URI for request" if text else "empty url"}']


_CHECKS: Final[Mapping[str, Callable[[str], list[str]]]] = {
    "dns1123Label": names.dns1123_label,
    "dns1123Subdomain": names.dns1123_subdomain,
    "dns1035Label": names.dns1035_label,
    "qualifiedName": names.qualified_name,
    "dns1123LabelPrefix": _prefix(names.dns1123_label),
    "dns1123SubdomainPrefix": _prefix(names.dns1123_subdomain),
    "dns1035LabelPrefix": _prefix(names.dns1035_label),
    "labelValue": names.label_value,
    "uri": _uri,
    "uuid": _plain("uuid", "does not match the UUID format"),
    "byte": _plain("byte", "invalid base64"),
    "date": _plain("date", "invalid date"),
    "datetime": _plain("datetime", "invalid datetime"),
}


def with_formats(source: str) -> str:
    """The source with each `format.NAME().validate(x)` as `optional.ofNonZeroValue(__format('NAME', x))`."""
    at, made = 0, []
    while (found := _CALL.search(source, at)) is not None:
        name, end = found[1] or found[3], _closing(source, found.end())
        if name not in _CHECKS or end is None:
            made.append(source[at : found.end()])
            at = found.end()
            continue
        inner = with_formats(source[found.end() : end])
        made += [source[at : found.start()], f"optional.ofNonZeroValue(__format('{name}', {inner}))"]
        at = end + 1
    return "".join([*made, source[at:]])


def _closing(source: str, at: int) -> int | None:
    """The place of the parenthesis that closes the call whose arguments begin at `at`."""
    depth = 1
    while at < len(source):
        if (literal := _LITERAL.match(source, at)) is not None:
            at = literal.end()
            continue
        depth += (source[at] == "(") - (source[at] == ")")
        if depth == 0:
            return at
        at += 1
    return None


def _validate(name: str, text: str) -> list[str]:
    return _CHECKS[name](text)


ROWS: Final = (("format_validate", "__format", False, ("string", "string"), "strings", _validate),)
"""Rows for `cellibrary.functions`."""
