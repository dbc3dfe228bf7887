"""Label and field selectors. Source: apimachinery `labels` and `fields`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.core import names

_TOKEN = re.compile(r"\s*(?:(?P<special>==|!=|[=!(),<>])|(?P<word>[^\s=!(),<>]+)|$)")
_OPERATORS = {"in": "in", "notin": "notin", "=": "in", "==": "in", "!=": "notin", ">": "gt", "<": "lt"}


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


class _Parser:
    """Reads the tokens of a selector one by one, with the complaints of apimachinery."""

    def __init__(self, text: str) -> None:
        self._tokens: list[str] = []
        at, text = 0, text.strip()
        while at < len(text) and (found := _TOKEN.match(text, at)) is not None:
            self._tokens.append(found["special"] or found["word"] or "")
            at = found.end()

    @property
    def next(self) -> str:
        """The token that comes; empty at the end."""
        return self._tokens[0] if self._tokens else ""

    def take(self) -> str:
        return self._tokens.pop(0) if self._tokens else ""

    def all(self) -> tuple[Requirement, ...]:
        found: list[Requirement] = []
        while self.next:
            if self.next != "!" and not _is_word(self.next):
                raise ValueError(f"found '{self.next}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from error
            separator = self.take()
            if separator not in ("", ","):
                raise ValueError(f"found '{separator}', expected: ',' or 'end of string'")
            if separator and self.next != "!" and not _is_word(self.next):
                raise ValueError(f"found '{self.next}', expected: identifier after ','")
        return tuple(found)

    def _requirement(self) -> Requirement:
        absent = self.next == "!"
        key = (self.take(), self.take())[1] if absent else self.take()
        if not _is_word(key):
            raise ValueError(f"found '{key}', expected: identifier")
        _refuse("<nil>", key, names.qualified_name(key))
        if absent:
            return Requirement(key, "absent")
        if self.next in ("", ","):
            return Requirement(key, "exists")
        sign = self.take()
        if sign not in _OPERATORS:
            raise ValueError(f"found '{sign}', expected: in, notin, =, ==, !=, gt, lt")
        values = self._values() if sign in ("in", "notin") else frozenset({self._value()})
        return Requirement(key, _OPERATORS[sign], _checked(key, sign, values))

    def _value(self) -> str:
        if self.next in ("", ","):
            return ""
        if not _is_word(self.next):
            raise ValueError(f"found '{self.next}', expected: identifier")
        return self.take()

    def _values(self) -> frozenset[str]:
        """What stands between parentheses; a missing value between commas is the empty one."""
        if (opening := self.take()) != "(":
            raise ValueError(f"found '{opening}' expected: '('")
        if self.next == ")":
            self.take()
            return frozenset({""})
        found = [self._listed()]
        while self.next == ",":
            self.take()
            found.append(self._listed())
        if self.take() != ")":
            raise ValueError("found '', expected: ')'")
        return frozenset(found)

    def _listed(self) -> str:
        if self.next in (",", ")"):
            return ""
        if not _is_word(self.next):
            raise ValueError(f"found '{self.next}', expected: ',', ')' or identifier")
        value = self.take()
        if self.next not in (",", ")"):
            raise ValueError(f"found '{self.next}', expected: ',' or ')'")
        return value


def _is_word(token: str) -> bool:
    return bool(token) and token not in {"==", "!=", *"=!(),<>"}


def _refuse(path: str, value: str, complaints: list[str]) -> None:
    """Raises ValueError with the complaints as field errors."""
    errors = [f'{path}: Invalid value: "{value}": {why}' for why in complaints]
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _checked(key: str, sign: str, values: frozenset[str]) -> frozenset[str]:
    for at, value in enumerate(sorted(values)):
        if sign in "<>" and not re.fullmatch(r"[+-]?\d+", value):
            _refuse(f"values[{at}]", value, ["for 'Gt', 'Lt' operators, the value must be an integer"])
        _refuse(f"values[{at}][{key}]", value, names.label_value(value))
    return values


def parse_labels(text: str) -> LabelSelector:
    """A selector from its query form (`a=b,c in (d,e),!f`).

    Raises:
        ValueError: the text is no selector; worded as apimachinery words it.
    """
    return LabelSelector(_Parser(text).all())


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


def text_of(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector in its query form, by key: `a=b,c in (d,e)`."""
    found = selector or {}
    parts = {name: f"{name}={value}" for name, value in (found.get("matchLabels") or {}).items()}
    for item in found.get("matchExpressions") or ():
        name, values = item["key"], ",".join(sorted(item.get("values") or ()))
        forms = {
            "In": f"{name} in ({values})",
            "NotIn": f"{name} notin ({values})",
            "Exists": name,
            "DoesNotExist": f"!{name}",
        }
        parts[name] = forms.get(item["operator"], name)
    return ",".join(parts[name] for name in sorted(parts))


def parse_fields(text: str) -> tuple[tuple[str, bool, str], ...]:
    """Terms (path, equal, value) of a field selector (`metadata.name=x,status.phase!=Running`); `\\` escapes `,`, `=` and itself.

    Raises:
        ValueError: a term is not `path=value`, `path==value` or `path!=value`.
    """
    terms = []
    for part in filter(None, re.split(r"(?<!\\),", text)):
        found = re.fullmatch(r"(?P<path>[^=!]*)(?P<op>==|!=|=)(?P<value>.*)", part)
        if found is None:
            raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
        terms.append((found["path"].strip(), found["op"] != "!=", _unescaped(found["value"].strip())))
    return tuple(terms)


def _unescaped(value: str) -> str:
    made, at = "", 0
    while at < len(value):
        sign = value[at]
        if sign == "\\":
            at += 1
            sign = value[at : at + 1]
            if sign not in ("\\", ",", "="):
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{sign}")
        elif sign in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {ord(sign)}")
        made, at = made + sign, at + 1
    return made
