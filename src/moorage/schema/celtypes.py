"""What a schema knows about an expression: fields that do not exist, and types that the engine cannot see.

Enters: a Node and the source of a rule. Leaves: the source with conversions written in (`timestamp(self.since)`), or
complaints. The engine sees objects as dynamic maps; conversions around fields tell its checker their types.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from .cel import CelError, Program
from .celformat import with_formats
from .celtree import Call, Expr, Ident, Loop, Other, Select, read_tree
from .celview import RUNTIME, spellings
from .formats import is_date_time, is_duration
from .gopattern import is_pattern
from .node import Node

_CHECKING: Final = {"string": "string", "boolean": "bool", "integer": "int", "number": "double"}
_TEXT: Final = Node(type="string")
_META: Final = Node(type="object", properties={"name": _TEXT, "generateName": _TEXT})
_WORD: Final = re.compile(r"\s*\.\s*\??\s*(?:`[^`]*`|[A-Za-z_][A-Za-z0-9_]*)")
_QUOTES: Final = re.compile(r"""\"{3}.*?\"{3}|'{3}.*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|`""", re.DOTALL)
"""Literals, and the quote around names that the engine knows and Kubernetes does not."""
_VARIABLES: Final = ("self", "oldSelf")
_NUMBERS: Final = re.compile(
    r"found no matching overload for '_(?:<|>|<=|>=)_' applied to '\((?:int|double|uint), (?:int|double|uint)\)'"
)
_CALL: Final = re.compile(r"(found no matching overload for '(\w+)' applied to ')\(([^,]+?)(?:, (.*))?\)'$")
_TYPE_NAMES: Final = (
    ("*error*", "!error!"), ("google.protobuf.Timestamp", "timestamp"), ("google.protobuf.Duration", "duration"),
    ("null_type", "null"),
)  # fmt: skip
_SELECT: Final = re.compile(r"expression of type '(.+)' cannot be the operand of a select operation")
_SIMPLE: Final = re.compile(r"\w+\(\) variable name must be a simple identifier")
_PLACE: Final = re.compile(r"<input>:(\d+):(\d+)")

_SCALARS: Final = {"string": "string", "integer": "int", "number": "double", "boolean": "bool"}
_MACRO: Final = re.compile(r"\.\s*(?:filter|map|all|exists|exists_one|existsOne|transformList|transformMap)\s*\(\s*$")


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of an expression: its node, and whether it is wrapped in an optional."""

    node: Node | None = None
    optional: bool = False


_NOTHING: Final = _Known()


@dataclass(slots=True)
class _Walk:
    source: str
    checking: bool
    inserts: dict[tuple[int, int], str] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)


def converted_source(node: Node, source: str, *, resource: bool = False) -> str:
    """The source with conversions of times, durations and bytes, which reach the engine as text.

    Raises:
        CelError: it does not compile.
    """
    walk = _Walk(source, checking=False)
    _walk_source(node, walk, resource=resource)
    return _inserted(source, walk.inserts)


def check_source(node: Node, source: str, *, resource: bool = False, optional_old: bool = False) -> str:
    """Compile a rule as strictly as kube-apiserver does; the result type.

    Raises:
        CelError: it does not compile, or names a field that the schema does not have.
    """
    source = with_formats(source)
    walk = _Walk(source, checking=True)
    _walk_source(node, walk, resource=resource, optional_old=optional_old)
    if quote := next((found for found in _QUOTES.finditer(source) if found[0] == "`"), None):
        raise CelError(_pointed(source, quote.start(), "unsupported syntax: '`'"))
    if walk.complaints:
        raise CelError("\n".join(walk.complaints))
    typed = _inserted(source, walk.inserts)
    try:
        return Program.compile(typed, _VARIABLES).result_type
    except CelError as error:
        complaints = _unshifted(str(error), source, walk.inserts)
    if complaints:
        raise CelError(complaints)
    return "bool"


def _walk_source(node: Node, walk: _Walk, *, resource: bool, optional_old: bool = False) -> None:
    try:
        program = Program.compile(walk.source, _VARIABLES)
    except CelError as error:
        raise CelError(_unshifted(str(error), walk.source, {})) from None
    known = _Known(_root(node) if resource or node.embedded else node)
    old = _Known(known.node, optional=optional_old)
    _visit(read_tree(program.tree), {"self": known, "oldSelf": old}, walk)


def _root(node: Node) -> Node:
    properties = {**node.properties, "apiVersion": _TEXT, "kind": _TEXT, "metadata": _META}
    return Node(type="object", properties=properties)


def _visit(expr: Expr, scope: Mapping[str, _Known], walk: _Walk) -> _Known:
    match expr:
        case Ident():
            found = scope.get(expr.name, _NOTHING)
        case Select():
            found = _visit_select(expr, scope, walk)
        case Call():
            found = _visit_call(expr, scope, walk)
        case Loop():
            return _visit_loop(expr, scope, walk)
        case Other():
            for part in expr.parts:
                _visit(part, scope, walk)
            return _NOTHING
    if found.node is not None and not found.optional:
        _convert(expr, found.node, walk)
    return found


def _visit_select(expr: Select, scope: Mapping[str, _Known], walk: _Walk) -> _Known:
    operand = _visit(expr.operand, scope, walk)
    found = _field(operand, expr.field, expr.at, walk)
    return _NOTHING if expr.test else found


def _field(operand: _Known, name: str, at: int, walk: _Walk) -> _Known:
    node = operand.node
    if node is None or node.type != "object":
        return _NOTHING
    if node.additional is not None and not node.properties:
        return _Known(node.additional, operand.optional)
    for key, child in node.properties.items():
        if name in spellings(key):
            return _Known(child, operand.optional)
    walk.complaints.append(_pointed(walk.source, at, f"undefined field '{name}'"))
    return _NOTHING


def _pointed(source: str, at: int, text: str) -> str:
    before = source[: max(at, 0)]
    line, column = before.count("\n") + 1, len(before) - (before.rfind("\n") + 1)
    shown = source.split("\n")[line - 1]
    return f"ERROR: <input>:{line}:{column + 1}: {text}\n | {shown}\n | {'.' * column}^"


def _visit_call(expr: Call, scope: Mapping[str, _Known], walk: _Walk) -> _Known:
    known = [_visit(part, scope, walk) for part in expr.arguments]
    first = known[0] if known else _NOTHING
    if expr.function in ("_==_", "_!=_") and walk.checking and (why := _unequal(expr.function, known)):
        walk.complaints.append(_pointed(walk.source, expr.at, why))
    if expr.function == "_?._" and isinstance(expr.arguments[1], Other) and expr.arguments[1].text is not None:
        found = _field(first, expr.arguments[1].text, expr.at, walk)
        return _Known(found.node, optional=True)
    if expr.function in ("_[_]", "_[?_]") and first.node is not None:
        inner = first.node.items if first.node.type == "array" else first.node.additional
        return _Known(inner, first.optional or expr.function == "_[?_]")
    for part in expr.arguments:
        if isinstance(part, Other) and part.text is not None and not _fits_literal(expr.function, part.text):
            walk.complaints.append(_pointed(walk.source, part.at, f"invalid {expr.function} argument"))
    return _NOTHING


def _unequal(function: str, sides: list[_Known]) -> str:
    """The complaint about a scalar that is compared with an optional one; empty where the checker cannot tell."""
    names = [side.node.type if side.node is not None else "" for side in sides]
    if len(sides) != 2 or sides[0].optional == sides[1].optional or any(name not in _SCALARS for name in names):
        return ""
    shown = [
        f"optional_type({_SCALARS[name]})" if side.optional else _SCALARS[name]
        for name, side in zip(names, sides, strict=True)
    ]
    return f"found no matching overload for '{function}' applied to '({', '.join(shown)})'"


def _fits_literal(function: str, text: str) -> bool:
    """Whether a literal is a pattern, time or duration where the function wants one."""
    match function:
        case "matches":
            return is_pattern(text)
        case "timestamp":
            return is_date_time(text)
        case "duration":
            return is_duration(text)
        case _:
            return True


def _visit_loop(expr: Loop, scope: Mapping[str, _Known], walk: _Walk) -> _Known:
    over = _visit(expr.over, scope, walk).node
    start = _visit(expr.start, scope, walk)
    inner = dict(scope)
    inner[expr.accumulator] = start
    one, two = expr.variables
    items = over.items if over is not None and over.type == "array" else None
    values = over.additional if over is not None and over.type == "object" else None
    keys = _Known(_TEXT) if values is not None else _NOTHING
    inner[one] = _Known(items) if items is not None and not two else keys
    if two:
        inner[two] = _Known(items or values)
    for part in expr.parts:
        _visit(part, inner, walk)
    return _NOTHING


def _convert(expr: Expr, node: Node, walk: _Walk) -> None:
    """Note a conversion around an expression of a scalar type."""
    call = RUNTIME.get(node.format, "") if node.type == "string" else ""
    if walk.checking and not call and not node.nullable:
        call = _checking_call(node)
    if not call or (isinstance(expr, Select) and expr.test):
        return
    span = _span(expr, walk.source)
    if span is not None and not (isinstance(expr, Ident) and _declares(walk.source, *span)):
        walk.inserts[span] = call


def _declares(source: str, start: int, end: int) -> bool:
    """Whether a name stands where a macro is told its variable: `filter(x, ...)` expands to a use of `x` at that place."""
    return source[end:].lstrip().startswith(",") and _MACRO.search(source[:start]) is not None


def _checking_call(node: Node) -> str:
    """The conversion that tells the checker a type; "" for what stays dynamic."""
    inner, kind = (node.items, "list") if node.type == "array" else (node.additional, "map")
    if node.type in ("array", "object"):
        plain = inner is not None and not inner.nullable and inner.format not in RUNTIME
        name = _CHECKING.get(inner.type, "") if inner is not None and plain else ""
        return f"__{kind}_{name}" if name and not node.properties else ""
    return _CHECKING.get(node.type, "")


def _span(expr: Expr, source: str) -> tuple[int, int] | None:
    """Start and end of a chain of names and indexes in the source."""
    match expr:
        case Ident():
            end = expr.at + len(expr.name)
            return (expr.at, end) if expr.at >= 0 and source[expr.at : end] == expr.name else None
        case Select():
            inner, word = _span(expr.operand, source), _WORD.match(source, expr.at)
            return (inner[0], word.end()) if inner and word else None
        case Call(function="_[_]"):
            inner, closed = _span(expr.arguments[0], source), _closing(source, expr.at)
            return (inner[0], closed) if inner and closed else None
        case _:
            return None


def _closing(source: str, at: int) -> int | None:
    """The place after the bracket that closes the one at `at`; None when text literals make it unsure."""
    depth = 0
    for place in range(at, len(source)):
        char = source[place]
        if char in "\"'":
            end = source.find(char, place + 1)
            literal_ends = source[end + 1 : end + 2] == "]"
            return end + 2 if end > 0 and depth == 1 and literal_ends and "\\" not in source[place:end] else None
        depth += (char == "[") - (char == "]")
        if depth == 0:
            return place + 1
    return None


def _inserted(source: str, inserts: Mapping[tuple[int, int], str]) -> str:
    opening = sorted(((start, -end, f"{call}(") for (start, end), call in inserts.items()))
    marks = [(start, 1, order, text) for order, (start, _, text) in enumerate(opening)]
    marks += [(end, 0, 0, ")") for _, end in inserts]
    made, last = [], 0
    for place, _, _, text in sorted(marks):
        made += [source[last:place], text]
        last = place
    return "".join([*made, source[last:]])


def _unshifted(message: str, source: str, inserts: Mapping[tuple[int, int], str]) -> str:
    """The engine's complaints about the converted source, pointed at the places of the source as written.

    Comparisons between kinds of numbers, which Kubernetes allows, are no complaints.
    """
    typed = _inserted(source, inserts)
    shown = []
    for part in re.split(r"\n(?=ERROR: )", message):
        head = part.split("\n")[0]
        found = _PLACE.search(head)
        if found is None:
            return message
        if _NUMBERS.search(head):
            continue
        lines = typed.split("\n")[: int(found[1]) - 1]
        at = _original(sum(len(line) + 1 for line in lines) + int(found[2]) - 1, inserts)
        shown.append(_pointed(source, at, _worded(head[found.end() + 2 :], source[:at])))
    return "\n".join(shown)


def _worded(text: str, before: str) -> str:
    """The complaint as kube-apiserver's engine words it; methods are shown as `target.(arguments)`."""
    for engine, shown in _TYPE_NAMES:
        text = text.replace(engine, shown)
    text = _SIMPLE.sub("argument must be a simple name", text)
    if found := _SELECT.fullmatch(text):
        return f"type '{found[1]}' does not support field selection"
    found = _CALL.fullmatch(text)
    if found is None or not before.endswith(f".{found[2]}"):
        return text
    return f"{found[1]}{found[3]}.({found[4] or ''})'"


def _original(at: int, inserts: Mapping[tuple[int, int], str]) -> int:
    """The place in the source as written of a place in the converted source."""
    marks = [(start, len(call) + 1) for (start, _), call in inserts.items()] + [(end, 1) for _, end in inserts]
    shift = 0
    for place, size in sorted(marks):
        if place + shift + size > at:
            break
        shift += size
    return at - shift
