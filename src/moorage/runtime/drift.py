"""Whether a live object still holds what was applied, defaults and foreign additions apart. Pure.

Enters: the wanted and the live object. Leaves: yes or no. Servers add defaults, other managers add fields and list
entries: none of that is drift. A changed or missing value of ours is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.core.digest import json_digest
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity

APPLIED = "moorage.internal/applied"
"""Annotation with the digest of what we applied last: it tells removed fields apart from foreign ones."""


def fingerprint(wanted: JsonObject) -> str:
    """The digest that stands in the annotation. Of a Secret only the names of its keys enter it: contents are
    compared with the live object, and nothing about a secret is written beside it (case B77)."""
    if wanted.get("kind") == "Secret":
        wanted = {**wanted, **{name: sorted(wanted[name]) for name in ("data", "stringData") if name in wanted}}
    return json_digest(wanted)


def contains(live: Any, wanted: Any) -> bool:
    """Whether `live` holds every value of `wanted`."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(_holds(live, name, value) for name, value in wanted.items())
    if isinstance(wanted, list):
        return isinstance(live, list) and _list_contains(live, wanted)
    return bool(live == wanted) or _same_quantity(live, wanted)


def _holds(live: Mapping[str, Any], name: str, value: Any) -> bool:
    if name in live:
        return contains(live[name], value)
    return value is None or value in ({}, [])


def _list_contains(live: Sequence[Any], wanted: Sequence[Any]) -> bool:
    """Lists of plain values are equal; lists of objects hold ours in our order, others may stand between."""
    if not any(isinstance(item, Mapping) for item in wanted):
        return len(live) == len(wanted) and all(map(contains, live, wanted))
    rest = iter(live)
    return all(any(contains(item, value) for item in rest) for value in wanted)


def _same_quantity(live: Any, wanted: Any) -> bool:
    """`1000m` is stored as `1`."""
    if not isinstance(live, str) or isinstance(wanted, bool) or not isinstance(wanted, str | int | float):
        return False
    try:
        return parse_quantity(live) == parse_quantity(wanted)
    except ValueError:
        return False
