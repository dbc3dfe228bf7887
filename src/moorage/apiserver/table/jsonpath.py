"""The JSONPath that printer columns, selectable fields and scale paths use.

Enters: an expression such as `.status.conditions[?(@.type=="Ready")].status` and an object. Leaves: the values found.
Must not evaluate anything else: no functions, no recursion. Source: kubernetes.io, "JSONPath Support".
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias

Step: TypeAlias = Callable[[Any], Iterable[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\])+) | \[(?P<index>-?\d+)\] | \[(?P<all>\*)\] | \[(?P<quote>['"])(?P<key>.*?)(?P=quote)\]
      | \[\?\(\s*@(?P<path>[^=!<>]*?)\s*(?P<op>==|!=|>=|<=|>|<)\s*(?P<value>.*?)\s*\)\]""",
    re.VERBOSE,
)


def find(expression: str, obj: Any) -> list[Any]:
    """The values at a path, in order; none when a part of it is not there.

    Raises:
        ValueError: the expression is not understood.
    """
    values: list[Any] = [obj]
    for step in steps(expression):
        values = [found for value in values for found in step(value)]
    return values


@lru_cache(maxsize=1024)
def steps(expression: str) -> tuple[Step, ...]:
    """The compiled expression; braces around it are allowed."""
    text = expression.strip().removeprefix("{").removesuffix("}")
    text = text if text.startswith((".", "[")) else f".{text}"
    made, position = [], 0
    for match in _TOKEN.finditer(text):
        if match.start() != position:
            break
        position = match.end()
        made.append(_step(match))
    if position != len(text):
        raise ValueError(f"unrecognized JSONPath {expression!r}")
    return tuple(made)


def _step(match: re.Match[str]) -> Step:
    if match["index"] is not None:
        return lambda value, index=int(match["index"]): _item(value, index)  # type: ignore[misc]
    if match["all"]:
        return _every
    if match["op"]:
        return _filter(match["path"], match["op"], match["value"])
    name = match["key"] if match["quote"] else re.sub(r"\\(.)", r"\1", match["name"])
    return _every if name == "*" else lambda value: _field(value, name)


def _field(value: Any, name: str) -> Iterator[Any]:
    if isinstance(value, dict) and name in value:
        yield value[name]


def _item(value: Any, index: int) -> Iterator[Any]:
    if isinstance(value, list) and -len(value) <= index < len(value):
        yield value[index]


def _every(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()


def _filter(path: str, op: str, literal: str) -> Step:
    inner, wanted = steps(path or "."), _literal(literal)

    def holds(item: Any) -> bool:
        found = [item]
        for step in inner:
            found = [below for value in found for below in step(value)]
        return bool(found) and _compare(found[0], op, wanted)

    return lambda value: [item for item in value if holds(item)] if isinstance(value, list) else ()


def _literal(text: str) -> Any:
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return float(text) if re.fullmatch(r"-?\d+(\.\d+)?", text) else text


def _compare(found: Any, op: str, wanted: Any) -> bool:
    if op in ("==", "!="):
        return (found == wanted) is (op == "==")
    try:
        below, equal = found < wanted, found == wanted
    except TypeError:
        return False
    return bool({"<": below, "<=": below or equal, ">": not below and not equal, ">=": not below}[op])
