"""JSON as the server reads it, and what it says to input that it refuses.

Enters: a body and its content type. Leaves: typed members, or a Problem. Member names match without regard to case, the last of several wins, null is as left out,
bytes after the value are ignored, 60.0 is no integer. Source: spec/pocketid.md 4.1, records 01.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


class Problem(Exception):
    """An answer with the error envelope."""

    def __init__(self, status: int, code: str, text: str = "", **details: Any) -> None:
        self.status, self.code, self.text, self.details = status, code, text or code.replace("_", " "), details
        super().__init__(f"{status} {code}")


class Faults:
    """Refused fields, gathered until they are thrown together."""

    def __init__(self) -> None:
        self.fields: list[dict[str, str]] = []

    def add(self, field: str, code: str) -> None:
        self.fields.append({"field": field, "code": code, "message": f"{field} is not acceptable"})

    def throw(self) -> None:
        if self.fields:
            raise Problem(400, "validation_failed", fields=self.fields)


def refused(*pairs: tuple[str, str]) -> Problem:
    """A validation error about these fields, or about none."""
    faults = Faults()
    for field, code in pairs:
        faults.add(field, code)
    return Problem(400, "validation_failed", **({"fields": faults.fields} if pairs else {}))


def missing(resource: str) -> Problem:
    """404 with the resource's name."""
    return Problem(404, "not_found", f"{resource} not found", resource=resource)


def unreadable() -> Problem:
    """400: the body does not decode."""
    return Problem(400, "invalid_request_body")


class Fraction(float):
    """A number with a point or an exponent: no integer, whatever its value."""


class Members:
    """A JSON object."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self._pairs = pairs
        self._folded = {name.lower(): value for name, value in pairs}

    def get(self, name: str) -> Any:
        return self._folded.get(name.lower())

    def has(self, name: str) -> bool:
        return name.lower() in self._folded

    def text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and not isinstance(value, str):
            raise unreadable()
        return value

    def flag(self, name: str) -> bool:
        value = self.get(name)
        if value is not None and not isinstance(value, bool):
            raise unreadable()
        return bool(value)

    def integer(self, name: str) -> int:
        value = self.get(name)
        if value is not None and (isinstance(value, (bool, Fraction)) or not isinstance(value, int)):
            raise unreadable()
        return value or 0

    def texts(self, name: str) -> list[str] | None:
        value = self._list(name)
        if value is None:
            return None
        if any(item is not None and not isinstance(item, str) for item in value):
            raise unreadable()
        return [item or "" for item in value]

    def objects(self, name: str) -> list[Members] | None:
        value = self._list(name)
        return None if value is None else [as_members(item) for item in value]

    def object(self, name: str) -> Members:
        return as_members(self.get(name))

    def plain(self) -> dict[str, Any]:
        """As it was sent, for what the server keeps verbatim."""
        return {name: plain(value) for name, value in self._pairs}

    def _list(self, name: str) -> list[Any] | None:
        value = self.get(name)
        if value is not None and not isinstance(value, list):
            raise unreadable()
        return value


def plain(value: Any) -> Any:
    """JSON values with dicts in place of Members."""
    if isinstance(value, Members):
        return value.plain()
    return [plain(item) for item in value] if isinstance(value, list) else value


def as_members(value: Any) -> Members:
    """An object; null is an empty one."""
    if value is None:
        return Members([])
    if not isinstance(value, Members):
        raise unreadable()
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=Members, parse_float=Fraction)


def decoded(content_type: str | None, body: bytes) -> Any:
    """The first JSON value of the body."""
    kind = (content_type or "").split(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise unreadable()
    try:
        text = body.decode("utf-8", errors="replace").lstrip(" \t\r\n")
        return _DECODER.raw_decode(text)[0]
    except (ValueError, RecursionError):
        raise unreadable() from None


def claims_in(value: Any) -> list[tuple[str, str]]:
    """Custom claims of a body: an array of {key, value}; null is an empty one."""
    if value is not None and not isinstance(value, list):
        raise unreadable()
    pairs = [(item.text("key") or "", item.text("value") or "") for item in map(as_members, value or [])]
    faults = Faults()
    for key, text in pairs:
        for name, part in (("key", key), ("value", text)):
            if not part:
                faults.add(name, "required")
    faults.throw()
    return pairs


def bounded(faults: Faults, field: str, text: str, bounds: tuple[int, int]) -> None:
    """A text that is required and whose length, in code points as sent, has bounds."""
    if not text:
        faults.add(field, "required")
    elif len(text) < bounds[0]:
        faults.add(field, "too_short")
    elif len(text) > bounds[1]:
        faults.add(field, "too_long")


def one_of(table: Mapping[str, Any], key: str, resource: str) -> Any:
    """A row, or 404."""
    if key not in table:
        raise missing(resource)
    return table[key]
