"""Claims from a person: JSON, `NAME: value` lines, or `NAME=VALUE` words.

Leaves: claim name to value as it was written. Input that cannot be read is an InputError that never shows a value. Contract: spec/cli.md,
`moorage mapping test`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from moorage.cli.manifests import text_of
from moorage.core.errors import InputError

_SHAPE = "Give a JSON object of claims, or lines such as `preferred_username: alice`"


def claims_of(path: str | None, words: Iterable[str]) -> dict[str, Any]:
    """All claims; words take the place of a claim of the same name in the file, and several words of one name are its values.

    Raises:
        InputError: the file or a word is not of these forms.
    """
    said: dict[str, list[str]] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise InputError("--claim", f"{name or 'it'} has no value", "Write --claim NAME=VALUE")
        said.setdefault(name, []).append(value)
    return (_file(path) if path else {}) | {name: ";".join(values) for name, values in said.items()}


def _file(path: str) -> dict[str, Any]:
    text = text_of(path).strip()
    return _json(path, text) if text.startswith(("{", "[")) else dict(_lines(path, text))


def _json(path: str, text: str) -> dict[str, Any]:
    """A token's claims; a decoded token may hold them beside its header, as `payload`."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        place = f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "somewhere"
        raise InputError(path, f"is no JSON at {place}", _SHAPE) from error
    if isinstance(found, dict) and isinstance(found.get("payload"), dict) and "header" in found:
        found = found["payload"]
    if not isinstance(found, dict):
        raise InputError(path, "is JSON but no object", _SHAPE)
    return found


def _lines(path: str, text: str) -> Iterable[tuple[str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        name, colon, value = line.partition(":")
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not colon or not name.strip():
            raise InputError(f"{path}:{number}", "is no line `NAME: value`", _SHAPE)
        yield name.strip(), value.strip()
