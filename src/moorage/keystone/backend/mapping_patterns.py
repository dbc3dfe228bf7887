"""Regular expressions that can take for ever: found by their structure, without a search.

Enters: an expression. Leaves: a part of it that matches one text in more and more ways, or nothing. Such an expression keeps a worker of
Keystone busy for as long as a value that almost matches is long: 2^n steps for n characters. Python's own parser gives the tree; from it an
automaton is made whose states are the places of the expression, and whose steps count in how many ways they can be taken. Two different ways
from a place back to itself over the same text, behind which a match can still fail, are what is looked for (exponential ambiguity).

No judgement is made of what is no regular language (references, look-arounds, conditions), of word boundaries, of what never tries again
(atomic groups, possessive repetitions), and of more places than are counted below. Slow but not exponential expressions: `mapping_slowness`.
Source: decisions, Keystone 14.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import import_module
from typing import Any, Final

from .mapping_match import compiled

MANY: Final = 10
"""From as many repetitions on a bounded loop is as bad as an endless one."""
KNOT: Final = 60
"""Places that lie on loops together, at most."""
PLACES: Final = 600
"""Places of an expression, repetitions written out, at most."""
UNBOUNDED: Final = 1000
"""From as many repetitions on a loop is as long as the value."""
_END: Final = "the end"
"""Stands for a character that only `$` matches."""
_SAMPLES: Final = "azAZmM0959_ \n\t-.,;:@/+!~#éÉß٣漢\u2003"
_parser: Final[Any] = import_module("re._parser")


class _Unjudged(Exception):
    """Holds what this analysis does not know."""


@dataclass
class _Piece:
    """A part of the expression: in how many ways it matches nothing, and where it can begin and end, each in how many ways (2: more than one)."""

    empty: int = 0
    first: Counter[int] = field(default_factory=Counter)
    last: Counter[int] = field(default_factory=Counter)


@lru_cache(maxsize=1024)
def endless(pattern: str) -> bool:
    """Whether a value of a few dozen characters can keep the search busy for ever; False also where that cannot be told.

    Raises:
        NotAPattern: it is no regular expression.
    """
    flags = compiled(pattern).flags
    try:
        tree = _parser.parse(pattern)
        return _Automaton(_samples(tree), int(flags)).explodes(tree)
    except (_Unjudged, RecursionError, re.error):
        return False


@dataclass(frozen=True, slots=True)
class Graph:
    """An expression as places: which characters each one matches, the steps between them, where a search can begin and a match can end.

    Args:
        loops: steps that lead back without a bound.
        anywhere: the search begins at every character, not only at the first.
        characters: all that are looked at.
    """

    matches: Sequence[frozenset[str]]
    steps: Sequence[frozenset[int]]
    first: frozenset[int]
    last: frozenset[int]
    loops: frozenset[tuple[int, int]]
    anywhere: bool
    characters: frozenset[str]

    def ends(self, place: int) -> bool:
        """Whether nothing need follow this place, or only the end of the value."""
        return place in self.last or any(
            self.matches[step] == {_END} and step in self.last for step in self.steps[place]
        )


def graph(pattern: str) -> Graph | None:
    """The places of an expression, None when it is not judged.

    Raises:
        NotAPattern: it is no regular expression.
    """
    flags = int(compiled(pattern).flags)
    try:
        tree = _parser.parse(pattern)
        samples = _samples(tree)
        return _Automaton(samples, flags).graph(tree, samples, anywhere=not _is_fixed(tree, flags))
    except (_Unjudged, RecursionError, re.error):
        return None


def _is_fixed(tree: Any, flags: int) -> bool:
    """Whether every match begins at the first character of the value."""
    for op, arg in tree:
        if str(op) == "AT":
            return str(arg) == "AT_BEGINNING_STRING" or (str(arg) == "AT_BEGINNING" and not flags & re.MULTILINE)
        if str(op) == "SUBPATTERN":
            return _is_fixed(arg[3], (flags | arg[1]) & ~arg[2])
        return str(op) == "BRANCH" and all(_is_fixed(item, flags) for item in arg[1])
    return False


def _samples(tree: Any) -> frozenset[str]:
    return frozenset(_SAMPLES).union(*_written(tree))


def _written(tree: Any) -> Iterator[set[str]]:
    """Characters that the expression names, their neighbours, and both cases of them."""
    for op, arg in _walk(tree):
        codes = arg if op == "RANGE" else (arg,) if op in ("LITERAL", "NOT_LITERAL") else ()
        near = {chr(code + step) for code in codes for step in (-1, 0, 1) if 0 <= code + step < 0x110000}
        yield near | {char.lower()[:1] for char in near} | {char.upper()[:1] for char in near}


def _walk(node: Any) -> Iterator[tuple[str, Any]]:
    """Every operation of a tree with its argument."""
    for op, arg in node:
        yield str(op), arg
        for child in _children(str(op), arg):
            yield from _walk(child)


def _children(op: str, arg: Any) -> Iterable[Any]:
    match op:
        case "BRANCH":
            return tuple(arg[1])
        case "IN":
            return (arg,)
        case "SUBPATTERN":
            return (arg[3],)
        case "MAX_REPEAT" | "MIN_REPEAT":
            return (arg[2],)
    return ()


class _Automaton:
    """Places with what they match, and the steps between them."""

    def __init__(self, samples: frozenset[str], flags: int) -> None:
        self._samples, self._flags = samples, flags
        self._matches: list[frozenset[str]] = []
        self._steps: list[Counter[int]] = []
        self._loops: set[tuple[int, int]] = set()
        self._unbounded: set[tuple[int, int]] = set()

    def graph(self, tree: Any, samples: frozenset[str], *, anywhere: bool) -> Graph:
        """What was made of the tree."""
        whole = self._sequence(tree, self._flags)
        steps = [frozenset(counted) for counted in self._steps]
        ends = (frozenset(whole.first), frozenset(whole.last))
        return Graph(self._matches, steps, *ends, frozenset(self._unbounded), anywhere, samples)

    def explodes(self, tree: Any) -> bool:
        """Whether some knot of loops is ambiguous at a place behind which the match can still fail."""
        whole = self._sequence(tree, self._flags)
        for knot in knots({place: list(steps) for place, steps in enumerate(self._steps)}):
            endless = any(step in self._loops for step in _inside(knot, self._steps))
            if endless and len(knot) <= KNOT and any(place not in whole.last for place in self._ambiguous(knot)):
                return True
        return False

    # --- from the tree

    def _sequence(self, tree: Any, flags: int) -> _Piece:
        found = _Piece(empty=1)
        for op, arg in tree:
            found = self._then(found, self._piece(str(op), arg, flags))
        return found

    def _then(self, one: _Piece, other: _Piece) -> _Piece:
        self._link(one.last, other.first)
        return _Piece(
            _capped(one.empty * other.empty),
            _sum(one.first, _times(other.first, one.empty)),
            _sum(other.last, _times(one.last, other.empty)),
        )

    def _piece(self, op: str, arg: Any, flags: int) -> _Piece:
        match op:
            case "LITERAL" | "NOT_LITERAL" | "ANY" | "IN":
                return self._place(frozenset(char for char in self._samples if _matches(op, arg, char, flags)))
            case "BRANCH":
                return self._choice([self._sequence(item, flags) for item in arg[1]])
            case "SUBPATTERN":
                return self._sequence(arg[3], (flags | arg[1]) & ~arg[2])
            case "MAX_REPEAT" | "MIN_REPEAT":
                return self._repeated(arg, flags)
            case "AT" if str(arg) in ("AT_BEGINNING", "AT_BEGINNING_STRING"):
                return _Piece(empty=1)
            case "AT" if str(arg) in ("AT_END", "AT_END_STRING"):
                return self._place(frozenset({_END}))
        raise _Unjudged(op)

    def _place(self, matches: frozenset[str]) -> _Piece:
        if len(self._matches) == PLACES:
            raise _Unjudged("too many places")
        self._matches.append(matches)
        self._steps.append(Counter())
        here = Counter({len(self._matches) - 1: 1})
        return _Piece(0, here, Counter(here))

    def _choice(self, pieces: Iterable[_Piece]) -> _Piece:
        found = _Piece()
        for item in pieces:
            found = _Piece(
                _capped(found.empty + item.empty), _sum(found.first, item.first), _sum(found.last, item.last)
            )
        return found

    def _repeated(self, arg: Any, flags: int) -> _Piece:
        """Few repetitions, or a fixed number of them, are written out; others are a loop."""
        least, most, tree = arg
        if int(most) >= MANY and least != most:
            body = self._sequence(tree, flags)
            self._link(body.last, body.first)
            back = {(one, other) for one in body.last for other in body.first}
            self._loops |= back
            self._unbounded |= back if int(most) >= UNBOUNDED else set()
            return _Piece(body.empty if least else 1, body.first, body.last)
        if int(most) > KNOT:
            raise _Unjudged(f"{most} repetitions")
        found = _Piece(empty=1)
        for _ in range(int(most) - int(least)):
            found = self._choice([self._then(self._sequence(tree, flags), found), _Piece(empty=1)])
        for _ in range(int(least)):
            found = self._then(self._sequence(tree, flags), found)
        return found

    def _link(self, ends: Counter[int], starts: Counter[int]) -> None:
        for end, ways in ends.items():
            for start, more in starts.items():
                self._steps[end][start] = _capped(self._steps[end][start] + ways * more)

    # --- to the judgement

    def _ambiguous(self, knot: frozenset[int]) -> Iterator[int]:
        """Places of a knot from which two ways over one text lead back."""
        for place in knot:
            if any(ways > 1 and other in knot and self._matches[other] for other, ways in self._steps[place].items()):
                yield place
        for pairs in knots(self._pairs(knot)):
            equal = [one for one, other in pairs if one == other]
            if equal and len(equal) < len(pairs):
                yield from equal

    def _pairs(self, knot: frozenset[int]) -> Mapping[tuple[int, int], list[tuple[int, int]]]:
        """Steps of two ways that go on together over the same characters."""
        found: dict[tuple[int, int], list[tuple[int, int]]] = {}
        todo = [(place, place) for place in knot]
        while todo:
            pair = todo.pop()
            if pair in found:
                continue
            nexts = ([step for step in self._steps[place] if step in knot] for place in pair)
            one, other = nexts
            found[pair] = [(a, b) for a in one for b in other if self._matches[a] & self._matches[b]]
            todo += found[pair]
        return found


def _matches(op: str, arg: Any, char: str, flags: int) -> bool:
    """Whether one item of the tree matches a character."""
    cases = {char, char.lower(), char.upper()} if flags & re.IGNORECASE else {char}
    match op:
        case "LITERAL":
            return any(len(item) == 1 and ord(item) == arg for item in cases)
        case "NOT_LITERAL":
            return not any(len(item) == 1 and ord(item) == arg for item in cases)
        case "ANY":
            return char != "\n" or bool(flags & re.DOTALL)
        case "RANGE":
            return any(len(item) == 1 and arg[0] <= ord(item) <= arg[1] for item in cases)
        case "CATEGORY":
            return _category(str(arg), char, flags)
    negated = bool(arg) and str(arg[0][0]) == "NEGATE"
    items = arg[1:] if negated else arg
    return any(_matches(str(item), value, char, flags) for item, value in items) != negated


def _category(name: str, char: str, flags: int) -> bool:
    plain, word = name.removeprefix("CATEGORY_"), name.rpartition("_")[2]
    here = {"DIGIT": char.isdecimal(), "SPACE": char.isspace(), "WORD": char.isalnum() or char == "_"}[word]
    return (here and (char.isascii() or not flags & re.ASCII)) != plain.startswith("NOT_")


def _capped(ways: int) -> int:
    return min(ways, 2)


def _sum(one: Counter[int], other: Counter[int]) -> Counter[int]:
    return Counter({place: _capped(one[place] + other[place]) for place in {**one, **other}})


def _times(ends: Counter[int], ways: int) -> Counter[int]:
    return Counter({place: _capped(number * ways) for place, number in ends.items()}) if ways else Counter()


def _inside(knot: frozenset[int], steps: list[Counter[int]]) -> Iterator[tuple[int, int]]:
    return ((one, other) for one in knot for other in steps[one] if other in knot)


def knots(steps: Mapping[Any, list[Any]]) -> Iterator[frozenset[Any]]:
    """Sets of places that can all be reached from each other, by at least one step (strongly connected components, after Tarjan)."""
    order: dict[Any, int] = {}
    low: dict[Any, int] = {}
    stack: list[Any] = []
    held: set[Any] = set()
    for root in steps:
        work: list[tuple[Any, Iterator[Any]]] = [] if root in order else [(root, iter(steps[root]))]
        while work:
            place, rest = work[-1]
            if place not in order:
                order[place] = low[place] = len(order)
                stack.append(place)
                held.add(place)
            for other in rest:
                if other not in order:
                    work.append((other, iter(steps[other])))
                    break
                if other in held:
                    low[place] = min(low[place], low[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[place])
                if low[place] == order[place]:
                    knot = frozenset(stack[stack.index(place) :])
                    del stack[-len(knot) :]
                    held -= knot
                    if len(knot) > 1 or place in steps[place]:
                        yield knot
