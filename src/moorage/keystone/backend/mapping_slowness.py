"""Regular expressions that are slow on long values: by which power of a value's length a search for one can take.

Enters: an expression. Leaves: a number. Two loops in a row that can match one text between them share it in as many ways as it has characters, three
loops in as many as its square; a search that begins at every character is a loop more. Python's search tries them all when what follows does not match.
What can take for ever is `mapping_patterns`, whose places and limits are used here.
Source: A. Weber, H. Seidl, On the degree of ambiguity of finite automata (1991), criterion IDA; decisions, Keystone 14.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Final

from .mapping_patterns import Graph, graph, knots

SLOW: Final = 3
"""From this power on a value of some thousand characters takes minutes; the square of the longest claim is a few seconds."""
TRIPLES: Final = 50_000
"""Places looked at together, at most; an expression that needs more is not judged."""


class _Unjudged(Exception):
    """Too much to look at."""


@lru_cache(maxsize=1024)
def power(pattern: str) -> int:
    """The power of a value's length by which a search grows, at least 1; 1 also where that cannot be told.

    Raises:
        NotAPattern: it is no regular expression.
    """
    found = graph(pattern)
    if found is None:
        return 1
    try:
        return _Loops(_searched(found)).power()
    except _Unjudged:
        return 1


def _searched(given: Graph) -> Graph:
    """The same with the search's own loop over where a match begins."""
    if not given.anywhere:
        return given
    here = len(given.matches)
    return replace(
        given,
        matches=[*given.matches, given.characters],
        steps=[*given.steps, given.first | {here}],
        loops=given.loops | {(here, here)},
    )


@dataclass
class _Loops:
    """The loops of an expression and how they share texts."""

    of: Graph
    _looked: int = field(default=0, init=False)

    def power(self) -> int:
        """One for the last loop, and one for each before it that shares a text with a later one."""
        steps = self.of.steps
        everything = list(knots({place: sorted(after) for place, after in enumerate(steps)}))
        loops = [knot for knot in reversed(everything) if self._is_endless(knot)]
        reached = [self._reached(knot) for knot in loops]
        best = [0] * len(loops)
        for later, knot in enumerate(loops):
            for earlier in range(later):
                if knot & reached[earlier]:
                    shares = self._share(loops[earlier], knot, reached[earlier])
                    best[later] = max(best[later], best[earlier] + shares)
        return 1 + max((ways for ways, knot in zip(best, loops, strict=True) if self._can_fail(knot)), default=0)

    def _is_endless(self, knot: frozenset[int]) -> bool:
        return any((one, other) in self.of.loops for one in knot for other in self.of.steps[one] & knot)

    def _can_fail(self, knot: frozenset[int]) -> bool:
        """Whether a value can go on so that nothing matches: not behind a loop that takes every character to the end."""
        everything = self.of.characters - {"\n"}
        return not any(self.of.ends(place) and everything <= self.of.matches[place] for place in knot) and any(
            place not in self.of.last for place in knot
        )

    def _reached(self, knot: frozenset[int]) -> frozenset[int]:
        found, todo = set(knot), list(knot)
        while todo:
            new = self.of.steps[todo.pop()] - found
            found |= new
            todo += new
        return frozenset(found)

    def _share(self, one: frozenset[int], other: frozenset[int], between: frozenset[int]) -> bool:
        """Whether some text leads from a place of one loop to itself, to a place of the other, and from that to itself."""
        return any(self._shares(start, end, (one, between, other)) for start in one for end in other)

    def _shares(self, start: int, end: int, inside: Sequence[frozenset[int]]) -> bool:
        seen: set[tuple[int, ...]] = set()
        todo: list[tuple[int, ...]] = [(start, start, end)]
        while todo:
            for step in self._together(todo.pop(), inside):
                if step == (start, end, end):
                    return True
                if step not in seen:
                    self._looked += 1
                    if self._looked > TRIPLES:
                        raise _Unjudged
                    seen.add(step)
                    todo.append(step)
        return False

    def _together(self, places: tuple[int, ...], inside: Sequence[frozenset[int]]) -> Iterator[tuple[int, ...]]:
        """Steps of three ways over one character."""
        matches = self.of.matches
        first, second, third = (self.of.steps[place] & within for place, within in zip(places, inside, strict=True))
        for a in first:
            for b in second:
                if both := matches[a] & matches[b]:
                    yield from ((a, b, c) for c in third if both & matches[c])
