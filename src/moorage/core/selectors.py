"""Label and field selectors. Source: apimachinery `labels` and `fields`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

_SPLIT = re.compile(r",(?![^()]*\))")
_SET = re.compile(r"(?P<key>\S+)\s+(?P<op>in|notin)\s*\((?P<values>[^()]*)\)")
_COMPARE = re.compile(r"(?P<key>[^=!<>\s]+)\s*(?P<op>==|!=|=|>|<)\s*(?P<value>[^=!<>]*)")


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement: `op` is one of in, notin, exists, absent, gt, lt."""

    key: str
    op: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.op:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "absent":
                return value is None
            case _:
                return _compare_numbers(value, self.op, next(iter(self.values)))


def _compare_numbers(value: str | None, op: str, bound: str) -> bool:
    try:
        left, right = int(value or ""), int(bound)
    except ValueError:
        return False
    return left > right if op == "gt" else left < right


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """All requirements must hold; no requirement matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        return all(item.matches(labels or {}) for item in self.requirements)


def _parse_part(part: str) -> Requirement:
    part = part.strip()
    if found := _SET.fullmatch(part):
        values = frozenset(value.strip() for value in found["values"].split(","))
        return Requirement(found["key"], found["op"], values)
    if found := _COMPARE.fullmatch(part):
        op = {"=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}[found["op"]]
        return Requirement(found["key"], op, frozenset({found["value"].strip()}))
    name = part.removeprefix("!").strip()
    if not name or re.search(r"[\s()=!<>,]", name):
        raise ValueError(f"unable to parse requirement: found {part!r}, expected: identifier")
    return Requirement(name, "absent" if part.startswith("!") else "exists")


def parse_labels(text: str) -> LabelSelector:
    """A selector from its query form (`a=b,c in (d,e),!f`).

    Raises:
        ValueError: the text is no selector.
    """
    if not text.strip():
        return LabelSelector()
    return LabelSelector(tuple(_parse_part(part) for part in _SPLIT.split(text)))


def from_wire(selector: Mapping[str, Any] | None) -> LabelSelector:
    """A selector from a metav1.LabelSelector (`matchLabels`, `matchExpressions`); None matches nothing.

    Raises:
        ValueError: an operator is unknown.
    """
    if selector is None:
        return LabelSelector((Requirement("", "in"),))
    found = [Requirement(key, "in", frozenset({value})) for key, value in (selector.get("matchLabels") or {}).items()]
    ops = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "absent"}
    for item in selector.get("matchExpressions") or ():
        if item["operator"] not in ops:
            raise ValueError(f"{item['operator']!r} is not a valid label selector operator")
        found.append(Requirement(item["key"], ops[item["operator"]], frozenset(item.get("values") or ())))
    return LabelSelector(tuple(found))


def parse_fields(text: str) -> tuple[tuple[str, bool, str], ...]:
    """Terms (path, equal, value) of a field selector (`metadata.name=x,status.phase!=Running`).

    Raises:
        ValueError: a term is not `path=value`, `path==value` or `path!=value`.
    """
    terms = []
    for part in filter(None, text.split(",")):
        found = re.fullmatch(r"(?P<path>[^=!]+)(?P<op>==|!=|=)(?P<value>.*)", part)
        if found is None:
            raise ValueError(f"invalid selector: {part!r}; can't understand {part!r}")
        terms.append((found["path"].strip(), found["op"] != "!=", found["value"].strip()))
    return tuple(terms)


def matches_fields(terms: tuple[tuple[str, bool, str], ...], value_of: Callable[[str], str]) -> bool:
    """Whether all terms hold for an object whose field values `value_of` gives."""
    return all((value_of(path) == value) is equal for path, equal, value in terms)
