"""Of each kind of complaint no more than people read.

Enters: field errors, or sentences that begin with a path and a colon. Leaves: the first of each kind, and how many more there are. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from .fielderror import INDEX, NO_VALUE, FieldError

F = TypeVar("F", FieldError, str)
FEW: Final = 20
"""Complaints of one kind that are told one by one."""
_WORD: Final = re.compile(r"\b[a-z]{3,}\b")


def few(findings: Iterable[F]) -> Iterator[F]:
    """The first of each kind, in their order, then how many more there are of it."""
    seen: Counter[tuple[str, str]] = Counter()
    last: dict[tuple[str, str], F] = {}
    for item in findings:
        kind = _kind(item)
        seen[kind] += 1
        last[kind] = item
        if seen[kind] <= FEW:
            yield item
    for kind, item in last.items():
        if (more := seen[kind] - FEW) > 0:
            told = f"and {more} more like this"
            if isinstance(item, str):
                yield f"{item.partition(': ')[0]}: {told}"
            else:
                yield item._replace(value=NO_VALUE, detail=told)


def _kind(item: FieldError | str) -> tuple[str, str]:
    """Field and words; what a person wrote is in capitals, in quotes or after a colon, as far as a look tells."""
    if isinstance(item, FieldError):
        return item.place, f"{item.type.name} {item.detail.partition(':')[0]}"
    path, _, said = item.partition(": ")
    return INDEX.sub("[]", path), " ".join(_WORD.findall(said.partition(":")[0]))
