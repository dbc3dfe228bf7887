"""Whole lists of a Pocket-ID, page by page.

Enters: a Caller, a path, how a row is read. Leaves: every row once. A page beyond the end is the last page again, so the walk stops by the answer's own count,
and a list that moved meanwhile (a row twice, another total) is walked anew. A row that is absent may still have slipped through a deletion during the walk:
who concludes that an object is gone asks for it by id. Source: spec/pocketid.md 4.1.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from .rest_errors import Nonsense, TooLarge, Unreachable
from .rest_reading import list_of, object_of, unique
from .rest_requests import Call, Caller
from .rest_rows import Rows

PAGE_LIMIT: Final = 1000
SECONDS_LIMIT: Final = 300.0
"""For a whole list, with all its walks."""
WALKS: Final = 3
"""How often a list that moves is walked."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Paged:
    """Which list: the operation that is counted, its path, the column it is sorted by, what is searched for."""

    operation: str
    path: str
    sort: str
    search: str = ""

    @property
    def name(self) -> str:
        """What it is weighed as: what is searched for is a list of its own."""
        return f"{self.path}?{self.search}" if self.search else self.path

    def page(self, number: int, rows: int) -> Call:
        """The request for one page of so many rows."""
        params = [
            ("pagination[page]", str(number)), ("pagination[limit]", str(rows)),
            ("sort[column]", self.sort), ("sort[direction]", "asc"),
        ]  # fmt: skip
        return Call(self.operation, "GET", self.path, params + ([("search", self.search)] if self.search else []))


async def every(
    caller: Caller, listing: Paged, read: Callable[[Any], T], rows: Callable[[str], Rows[T]] = Rows
) -> tuple[T, ...]:
    """Every row of a list.

    Args:
        rows: what gathers them, made for each walk with the name of the request.

    Raises:
        Nonsense: the list has no end, or never holds still.
        Unreachable: it takes too long.
    """
    whole = False
    try:
        async with asyncio.timeout(SECONDS_LIMIT):
            for _ in range(WALKS):
                found, still = await _read(caller, listing, read, rows)
                if still and unique(found):
                    whole = True
                    return found
                del found  # the next walk must not hold them beside its own
    except TimeoutError:
        raise Unreachable(f"GET {listing.path}", f"the list was not whole after {SECONDS_LIMIT:.0f} seconds") from None
    finally:
        caller.scale.ends(listing.name, kept=whole and not listing.search)
    raise Nonsense(f"GET {listing.path}", f"the list changed during each of {WALKS} walks")


async def _read(
    caller: Caller, listing: Paged, read: Callable[[Any], T], rows: Callable[[str], Rows[T]]
) -> tuple[tuple[T, ...], bool]:
    """One walk, with pages that can be read: where one is too large the walk begins anew with fewer rows a page, from now on."""
    while True:
        try:
            return await _walk(caller, listing, read, rows(f"GET {listing.path}"))
        except TooLarge:
            if not caller.scale.shrink(listing.path):
                raise


async def _walk(caller: Caller, listing: Paged, read: Callable[[Any], T], rows: Rows[T]) -> tuple[tuple[T, ...], bool]:
    totals: set[int] = set()
    heaviest = 0
    size = caller.scale.size(listing.path)
    for number in range(1, PAGE_LIMIT + 1):
        page = await caller.answer(listing.page(number, size))
        heaviest = max(heaviest, page.weight)
        answer = object_of(f"GET {listing.path}", page.body)
        rows.add([read(item) for item in list_of(f"GET {listing.path}", answer.get("data"))], page.weight)
        caller.scale.weigh(listing.name, rows.weight)
        pagination = object_of(f"GET {listing.path}", answer.get("pagination"))
        totals.add(_count(listing, pagination, "totalItems"))
        current = _count(listing, pagination, "currentPage")
        if current >= _count(listing, pagination, "totalPages"):
            if not listing.search:  # what is searched for is few rows, and tells nothing of the others
                caller.scale.grow(listing.path, size, heaviest)
            return tuple(rows.found), totals == {len(rows.found)} and current == number
        if current != number:
            return tuple(rows.found), False
    raise Nonsense(f"GET {listing.path}", f"the list does not end after {PAGE_LIMIT} pages")


def _count(listing: Paged, pagination: dict[str, Any], name: str) -> int:
    value = pagination.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise Nonsense(f"GET {listing.path}", f"the answer has no {name}")
    return value


def pattern(name: str) -> str:
    """What to search for so that a row of that name is found: a backslash escapes on some databases, so any one character stands for it.

    The search finds more than the name (`%` and `_` are wildcards, letter case may not count): compare what it finds.
    """
    return name.replace("\\", "_")
