"""CEL functions on lists that Kubernetes adds: isSorted, sum, min, max, indexOf, lastIndexOf.

Enters: plain lists. Leaves: plain values; ValueError becomes the evaluation's error.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

from .sameness import same


def _is_sorted(items: list[Any]) -> bool:
    try:
        return all(one <= other for one, other in pairwise(items))
    except TypeError:
        raise ValueError("no such overload") from None


def _sum(items: list[Any]) -> Any:
    try:
        return sum(items[1:], start=items[0]) if items else 0
    except TypeError:
        raise ValueError("no such overload") from None


def _extreme(choose: Any, name: str) -> Any:
    def run(items: list[Any]) -> Any:
        if not items:
            raise ValueError(f"{name} called on empty list")
        try:
            return choose(items)
        except TypeError:
            raise ValueError("no such overload") from None

    return run


def _index_of(items: list[Any], wanted: Any) -> int:
    return next((at for at, item in enumerate(items) if same(item, wanted)), -1)


def _last_index_of(items: list[Any], wanted: Any) -> int:
    return next((at for at in range(len(items) - 1, -1, -1) if same(items[at], wanted)), -1)


ROWS: Final = (
    ("list_is_sorted", "isSorted", True, ("list",), "bool", _is_sorted),
    ("list_sum", "sum", True, ("list",), "dyn", _sum),
    ("list_min", "min", True, ("list",), "dyn", _extreme(min, "min")),
    ("list_max", "max", True, ("list",), "dyn", _extreme(max, "max")),
    ("list_index_of", "indexOf", True, ("list", "any"), "int", _index_of),
    ("list_last_index_of", "lastIndexOf", True, ("list", "any"), "int", _last_index_of),
)
"""Rows for `cellibrary.functions`."""
