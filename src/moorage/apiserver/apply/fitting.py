"""Whether a configuration fits its type well enough to be merged: declared fields, and the JSON types of their values.

Enters: the applied configuration and its type. Leaves: complaints in conflict notation. Must not check bounds, enums or formats:
that is validation, and comes after the merge.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from moorage.apiserver.apply.fieldset import Path, field_element, path_text
from moorage.apiserver.apply.types import TypeNode
from moorage.apiserver.apply.values import BadValue, index_items, item_element

_PYTHON: dict[str, type | tuple[type, ...]] = {"string": str, "boolean": bool, "integer": int, "number": (int, float)}
_GO = {
    "string": "string",
    "boolean": "boolean",
    "integer": "numeric (int or float)",
    "number": "numeric (int or float)",
}


def misfits(node: TypeNode, value: Any, path: Path = ()) -> Iterator[str]:
    """Complaints about an applied configuration, as a failed apply prints them."""
    if value is None:
        return
    match node.shape:
        case "map":
            yield from _map_misfits(node, value, path)
        case "list":
            yield from _list_misfits(node, value, path)
        case "scalar":
            yield from _scalar_misfits(node, value, path)


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return (
        f"&value.valueUnstructured{{Value:{text}}}"
        if not isinstance(value, str)
        else f'&value.valueUnstructured{{Value:"{value}"}}'
    )


def _map_misfits(node: TypeNode, value: Any, path: Path) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{path_text(path)}: expected map, got {_shown(value)}"
        return
    for name, below in value.items():
        here = (*path, field_element(name))
        if node.closed and name not in node.fields:
            yield f"{path_text(here)}: field not declared in schema"
        else:
            yield from misfits(node.child(name), below, here)


def _list_misfits(node: TypeNode, value: Any, path: Path) -> Iterator[str]:
    if not isinstance(value, list):
        yield f"{path_text(path)}: expected list, got {_shown(value)}"
        return
    if not node.atomic:
        try:
            index_items(node, value, path, unique=True)
        except BadValue as bad:
            yield str(bad)
            return
    for number, item in enumerate(value):
        element = f"i:{number}" if node.atomic else item_element(node, item, path)
        yield from misfits(node.item, item, (*path, element))


def _scalar_misfits(node: TypeNode, value: Any, path: Path) -> Iterator[str]:
    wanted = node.schema.get("type", "")
    expected = _PYTHON.get(wanted)
    if node.schema.get("x-kubernetes-int-or-string") or expected is None:
        return
    if not isinstance(value, expected) or (isinstance(value, bool) and wanted != "boolean"):
        yield f"{path_text(path)}: expected {_GO[wanted]}, got {_shown(value)}"


def misfit_text(complaints: list[str]) -> str:
    """One sentence or a list of them."""
    return complaints[0] if len(complaints) == 1 else "errors:\n" + "\n".join(f"  {text}" for text in complaints)
