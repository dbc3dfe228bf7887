"""Checked CEL expressions as trees: read from the bytes that the engine gives.

Enters: a serialized `cel.expr.CheckedExpr`. Leaves: small frozen nodes with positions in the source. It reads the few
protobuf fields that a walk needs, so no protobuf library is asked for. Source: cel-spec, `checked.proto`, `syntax.proto`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from moorage.core import protowire

Fields: TypeAlias = dict[int, list[int | bytes]]


@dataclass(frozen=True, slots=True)
class Ident:
    """A variable."""

    at: int
    name: str


@dataclass(frozen=True, slots=True)
class Select:
    """`operand.field`, or `has(operand.field)` when `test`. `at` is the place of the dot."""

    at: int
    operand: Expr
    field: str
    test: bool


@dataclass(frozen=True, slots=True)
class Call:
    """A function or operator; a method's target is the first argument."""

    at: int
    function: str
    arguments: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """A comprehension, what macros such as `all` and `cel.bind` become."""

    at: int
    variables: tuple[str, str]
    over: Expr
    accumulator: str
    start: Expr
    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """Literals; `text` is the text of a string literal, `parts` are entries of lists and maps."""

    at: int
    text: str | None = None
    parts: tuple[Expr, ...] = ()


Expr: TypeAlias = Ident | Select | Call | Loop | Other


def read_tree(serialized: bytes) -> Expr:
    """The tree of a serialized checked expression (an Any that holds it)."""
    checked = _fields(_bytes(_fields(serialized), 2))
    info = _fields(_bytes(checked, 5))
    places: dict[int, int] = {}
    for entry in info.get(4, ()):
        pair = _fields(entry) if isinstance(entry, bytes) else {}
        places[_number(pair, 1)] = _number(pair, 2)
    return _expr(_bytes(checked, 4), places)


def _fields(data: bytes) -> Fields:
    found: Fields = {}
    for number, value in protowire.fields(data):
        found.setdefault(number, []).append(value)
    return found


def _bytes(fields: Fields, number: int) -> bytes:
    value = fields.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _number(fields: Fields, number: int) -> int:
    value = fields.get(number, [0])[-1]
    return value if isinstance(value, int) else 0


def _text(fields: Fields, number: int) -> str:
    return _bytes(fields, number).decode()


def _each(fields: Fields, number: int, places: Mapping[int, int]) -> tuple[Expr, ...]:
    return tuple(_expr(item, places) for item in fields.get(number, ()) if isinstance(item, bytes))


def _expr(data: bytes, places: Mapping[int, int]) -> Expr:
    outer = _fields(data)
    at = places.get(_number(outer, 2), -1)
    if 4 in outer:
        return Ident(at, _text(_fields(_bytes(outer, 4)), 1))
    if 5 in outer:
        inner = _fields(_bytes(outer, 5))
        return Select(at, _expr(_bytes(inner, 1), places), _text(inner, 2), bool(_number(inner, 3)))
    if 6 in outer:
        inner = _fields(_bytes(outer, 6))
        return Call(at, _text(inner, 2), _each(inner, 1, places) + _each(inner, 3, places))
    if 9 in outer:
        return _loop(at, _fields(_bytes(outer, 9)), places)
    return _other(at, outer, places)


def _loop(at: int, inner: Fields, places: Mapping[int, int]) -> Loop:
    parts = tuple(_expr(_bytes(inner, number), places) for number in (5, 6, 7))
    return Loop(
        at,
        (_text(inner, 1), _text(inner, 8)),
        _expr(_bytes(inner, 2), places),
        _text(inner, 3),
        _expr(_bytes(inner, 4), places),
        parts,
    )


def _other(at: int, outer: Fields, places: Mapping[int, int]) -> Other:
    if 7 in outer:
        return Other(at, parts=_each(_fields(_bytes(outer, 7)), 1, places))
    if 8 in outer:
        entries = [_fields(item) for item in _fields(_bytes(outer, 8)).get(2, ()) if isinstance(item, bytes)]
        return Other(
            at, parts=tuple(part for entry in entries for part in _each(entry, 3, places) + _each(entry, 4, places))
        )
    constant = _fields(_bytes(outer, 3))
    return Other(at, _text(constant, 6) if 6 in constant else None)
