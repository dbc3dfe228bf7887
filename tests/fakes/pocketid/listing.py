"""Lists as the server pages, sorts and searches them.

Enters: rows in order of creation, the query. Leaves: one page. `search` is a LIKE with its wildcards, letter case of ASCII aside. Source: spec 4.1; records 05.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
DEFAULT, MOST = 20, 100


def page(
    rows: Sequence[T],
    query: Mapping[str, str],
    searched: Callable[[T], Sequence[str]],
    columns: Mapping[str, Callable[[T], Any]],
    shown: Callable[[T], Any],
) -> dict[str, Any]:
    """One page; one beyond the end is the last."""
    number, limit, column, down = _wanted(query)
    text = query.get("search", "")
    found = [row for row in rows if not text or any(like(text, item) for item in searched(row))]
    if column in columns:
        found.sort(key=columns[column], reverse=down)
    pages = max(1, math.ceil(len(found) / limit))
    number = min(number, pages)
    part = found[(number - 1) * limit : number * limit]
    counts = {"totalPages": pages, "totalItems": len(found), "currentPage": number, "itemsPerPage": limit}
    return {"data": [shown(row) for row in part], "pagination": counts}


def _wanted(query: Mapping[str, str]) -> tuple[int, int, str, bool]:
    """Page, limit, column, descending. One number that is none puts everything back to its default."""
    try:
        number, limit = int(query.get("pagination[page]") or 1), int(query.get("pagination[limit]") or DEFAULT)
    except ValueError:
        return 1, DEFAULT, "", False
    limit = DEFAULT if limit <= 0 else min(limit, MOST)
    return max(1, number), limit, query.get("sort[column]", ""), query.get("sort[direction]", "").lower() == "desc"


def like(pattern: str, text: str) -> bool:
    """`text LIKE %pattern%` of SQLite."""
    shape = "".join({"%": ".*", "_": "."}.get(char) or _either(char) for char in pattern)
    return re.search(shape, text, re.DOTALL) is not None


def _either(char: str) -> str:
    return f"[{char.lower()}{char.upper()}]" if char.isascii() and char.isalpha() else re.escape(char)


def bytewise(text: str | None) -> bytes:
    """Sorting key of a text."""
    return (text or "").encode("utf-8", errors="surrogatepass")
