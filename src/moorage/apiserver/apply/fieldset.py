"""Sets of field paths, in the wire form that `metadata.managedFields` uses.

Enters: path elements as text (`f:spec`, `k:{"name":"a"}`, `v:"x"`, `i:0`). Leaves: new sets; no operation changes its operands
except `add`. Must not know schemas. Source: API concepts, "Server-side apply", fieldsV1.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.core.meta import JsonObject

Path = tuple[str, ...]

_ORDER = {"f": 0, "k": 1, "v": 2, "i": 3}


_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def compact(value: Any) -> str:
    """JSON without spaces and with sorted keys: the text form inside path elements."""
    return _ENCODER.encode(value)


def field_element(name: str) -> str:
    """The element of a struct field or map key."""
    return f"f:{name}"


def key_element(keys: Mapping[str, Any]) -> str:
    """The element of a list item that is found by its keys."""
    return f"k:{compact(keys)}"


def value_element(value: Any) -> str:
    """The element of a set's item, which is its own key."""
    return f"v:{compact(value)}"


def path_text(path: Path) -> str:
    """A path as conflicts print it: `.spec.ports[port=80,protocol="TCP"].name`."""
    return "".join(_element_text(element) for element in path)


def _element_text(element: str) -> str:
    mark, rest = element[0], element[2:]
    if mark == "f":
        return f".{rest}"
    if mark == "k":
        return "[" + ",".join(f"{name}={compact(value)}" for name, value in json.loads(rest).items()) + "]"
    return f"[={rest}]" if mark == "v" else f"[{rest}]"


class FieldSet:
    """Members at this level and the sets below it. A path may be a member, a parent of members, or both."""

    __slots__ = ("children", "members")

    def __init__(self, members: set[str] | None = None, children: dict[str, FieldSet] | None = None) -> None:
        self.members: set[str] = members if members is not None else set()
        self.children: dict[str, FieldSet] = children if children is not None else {}

    @classmethod
    def of(cls, *paths: Path) -> FieldSet:
        """The set of these paths."""
        made = cls()
        for path in paths:
            made.add(path)
        return made

    def add(self, path: Path) -> None:
        """Put a path into this set."""
        here = self
        for element in path[:-1]:
            here = here.children.setdefault(element, FieldSet())
        if path:
            here.members.add(path[-1])

    def __bool__(self) -> bool:
        return bool(self.members) or any(self.children.values())

    def covers(self, other: FieldSet) -> bool:
        """Whether each path of `other` is here, too."""
        if not other.members <= self.members:
            return False
        for element, below in other.children.items():
            mine = self.children.get(element)
            if below and (mine is None or not mine.covers(below)):
                return False
        return True

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FieldSet) and self.to_wire() == other.to_wire()

    __hash__ = None  # type: ignore[assignment]

    def union(self, other: FieldSet) -> FieldSet:
        """Paths in either."""
        children = dict(self.children)
        for element, below in other.children.items():
            mine = children.get(element)
            children[element] = below if mine is None else mine.union(below)
        return FieldSet(self.members | other.members, children)

    def difference(self, other: FieldSet) -> FieldSet:
        """Paths here that are not in `other`; what lies below a removed path stays."""
        children = {}
        for element, below in self.children.items():
            theirs = other.children.get(element)
            rest = below if theirs is None else below.difference(theirs)
            if rest:
                children[element] = rest
        return FieldSet(self.members - other.members, children)

    def without_trees(self, other: FieldSet) -> FieldSet:
        """Paths here that are neither in `other` nor below a path of `other`."""
        children = {}
        for element, below in self.children.items():
            if element in other.members:
                continue
            theirs = other.children.get(element)
            rest = below if theirs is None else below.without_trees(theirs)
            if rest:
                children[element] = rest
        return FieldSet(self.members - other.members, children)

    def intersection(self, other: FieldSet) -> FieldSet:
        """Paths in both."""
        children = {}
        for element, below in self.children.items():
            theirs = other.children.get(element)
            if theirs is not None and (both := below.intersection(theirs)):
                children[element] = both
        return FieldSet(self.members & other.members, children)

    def paths(self) -> Iterator[Path]:
        """All paths: those that end here first, then what lies below, each in wire order."""
        for element in sorted(self.members, key=_sort_key):
            yield (element,)
        for element in sorted(self.children, key=_sort_key):
            for below in self.children[element].paths():
                yield (element, *below)

    def to_wire(self) -> JsonObject:
        """The fieldsV1 object: `{}` for a member, `.` beside children for a member that is also a parent."""
        wire: JsonObject = {}
        for element in sorted(self.members | self.children.keys(), key=_sort_key):
            below = self.children[element].to_wire() if element in self.children else {}
            if element in self.members:
                wire[element] = {".": {}, **below} if below else {}
            elif below:
                wire[element] = below
        return wire

    @classmethod
    def from_wire(cls, wire: Mapping[str, Any]) -> FieldSet:
        """The set that a fieldsV1 object stands for.

        Raises:
            ValueError: an element is none of `f:`, `k:`, `v:`, `i:`, or its JSON is broken.
        """
        made = cls()
        for text, below in wire.items():
            if text == ".":
                continue
            element = _canonical(text)
            if not below or "." in below:
                made.members.add(element)
            if below and below.keys() != {"."}:
                made.children[element] = cls.from_wire(below)
        return made


def _canonical(element: str) -> str:
    mark, colon, rest = element[:1], element[1:2], element[2:]
    if colon != ":" or mark not in _ORDER:
        raise ValueError(f"unknown path element {element!r}")
    return f"{mark}:{compact(json.loads(rest))}" if mark in "kv" else element


def _sort_key(element: str) -> tuple[int, str]:
    return _ORDER[element[0]], element[2:]
