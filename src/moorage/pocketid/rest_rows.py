"""The rows of a list while it is read: what they weigh, and how the heaviest give way so that the others are kept.

Enters: pages of rows with their weight. Leaves: rows, some of them as sketches, or an error where no row is heavy and all together are still too much.
Whoever may declare clients makes large ones and many: theirs are looked at one by one then, by those who declared them, and everybody else goes on. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from .rest_errors import TooMuch
from .rest_types import Client
from .rest_weight import weight_of

WEIGHT_LIMIT: Final = 64 << 20
"""Bytes of memory of a whole list, some twenty thousand clients: anybody may declare a server of his own, and the operator keeps its lists in memory."""
WALKED_LIMIT: Final = 4 * WEIGHT_LIMIT
"""Bytes that all pages may weigh, with what is left out of them: reading them takes the time of everybody."""
SKETCHED: Final = 1 << 10
"""Bytes of a row of which nothing is kept but what it is known by."""
T = TypeVar("T")


@dataclass
class Rows(Generic[T]):
    """Rows of one walk.

    Args:
        what: the request, for the error.
        lighter: a sketch of a row, and None of one that is a sketch already; None: every row is kept as it is.
        weigh: what a row weighs, in bytes.
    """

    what: str
    lighter: Callable[[T], T | None] | None = None
    weigh: Callable[[T], int] = lambda _row: 0
    found: list[T] = field(default_factory=list)
    weight: int = 0
    walked: int = 0

    def add(self, rows: Sequence[T], weight: int) -> None:
        """A page, which weighs so much.

        Raises:
            TooMuch: that is too much.
        """
        self.found += rows
        self.weight += weight
        self.walked += weight
        if self.weight > WEIGHT_LIMIT and self.lighter is not None:
            self._lighten(self.lighter)
        if self.weight > WEIGHT_LIMIT or self.walked > WALKED_LIMIT:
            raise TooMuch(
                self.what,
                f"the list would take more than {WEIGHT_LIMIT >> 20} MiB of memory; whoever administers the server takes out, or makes smaller, what weighs most in it",
            )

    def _lighten(self, lighter: Callable[[T], T | None]) -> None:
        """The heaviest rows become sketches, until there is room for as much again."""
        weights = [self.weigh(row) for row in self.found]
        self.weight = sum(weights)
        for index in sorted(range(len(weights)), key=weights.__getitem__, reverse=True):
            if self.weight <= WEIGHT_LIMIT // 2 or weights[index] <= 2 * SKETCHED:
                return
            if (sketch := lighter(self.found[index])) is not None:
                self.found[index] = sketch
                self.weight -= weights[index] - SKETCHED


def lighter_client(client: Client) -> Client | None:
    """A sketch of a client that is whole."""
    return client.sketch() if client.whole else None


def weight_of_client(client: Client) -> int:
    """As its page was weighed."""
    return (
        weight_of(json.dumps(client.raw, separators=(",", ":"), ensure_ascii=False).encode())
        if client.whole
        else SKETCHED
    )


def as_it_was_kept(before: Client, client: Client) -> Client:
    """A client that was asked for, as the list keeps it: what was too much before is too much now."""
    return client if before.whole else client.sketch()
