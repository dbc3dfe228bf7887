"""The functions that Kubernetes adds to CEL and the engine lacks: strings, lists, regex, URLs, quantities, addresses.

Enters: the engine module. Leaves: its function declarations, implemented in Python. Values of Kubernetes' own types
(URL, Quantity, IP, CIDR, Semver) travel as maps with a `$type` key, because the engine has no foreign types.
Source: Kubernetes documentation, "Common Expression Language in Kubernetes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

from . import celformat, cellists, celnet, celtext

Row: TypeAlias = tuple[str, str, bool, Sequence[str], str, Callable[..., Any]]
"""Overload id, function name, whether it is a method, parameter types, result type, implementation."""

_ROWS: Final[tuple[Row, ...]] = (*celtext.ROWS, *cellists.ROWS, *celnet.ROWS, *celformat.ROWS)
_ANY: Final = ("int", "double", "string", "bool", "bytes", "timestamp", "duration", "list", "map")


def _expand(rows: Sequence[Row]) -> list[Row]:
    """A parameter type `any` becomes one overload for each type: the engine does not match dyn parameters."""
    made: list[Row] = []
    for row in rows:
        if "any" not in row[3]:
            made.append(row)
            continue
        at = list(row[3]).index("any")
        for kind in _ANY:
            parameters = [*row[3][:at], kind, *row[3][at + 1 :]]
            made.append((f"{row[0]}_{kind}", row[1], row[2], parameters, row[4], row[5]))
    return made


def functions(cel: Any) -> list[Any]:
    """Declarations for the engine."""
    kinds = {
        "dyn": cel.Type.DYN, "int": cel.Type.INT, "double": cel.Type.DOUBLE, "string": cel.Type.STRING,
        "bool": cel.Type.BOOL, "bytes": cel.Type.BYTES, "timestamp": cel.Type.TIMESTAMP,
        "duration": cel.Type.DURATION, "list": cel.Type.List(cel.Type.DYN),
        "strings": cel.Type.List(cel.Type.STRING), "map": cel.Type.Map(cel.Type.STRING, cel.Type.DYN),
    }  # fmt: skip
    grouped: dict[str, list[Any]] = {}
    for identity, name, member, parameters, result, run in _expand(_ROWS):
        overload = cel.Overload(identity, kinds[result], [kinds[item] for item in parameters], member, run)
        grouped.setdefault(name, []).append(overload)
    return [*_typed(cel, kinds), *(cel.FunctionDecl(name, overloads) for name, overloads in grouped.items())]


def _typed(cel: Any, kinds: dict[str, Any]) -> list[Any]:
    """Functions that only the checker meets: they tell it the types of lists and maps (`celtypes.py`)."""
    made = []
    for name in ("string", "bool", "int", "double"):
        shapes = (("list", cel.Type.List(kinds[name])), ("map", cel.Type.Map(kinds["string"], kinds[name])))
        for shape, result in shapes:
            overload = cel.Overload(f"typed_{shape}_{name}", result, [kinds["dyn"]], False, lambda value: value)
            made.append(cel.FunctionDecl(f"__{shape}_{name}", [overload]))
    return made
