"""Objects walked by their type: the fields an object sets, the merge of two objects, and an object without some fields.

Enters: JSON values and their `TypeNode`s. Leaves: `FieldSet`s and new JSON values; inputs are never changed, but outputs may share
parts with them. Must not know managers. Source: API concepts, "Server-side apply".
"""

from __future__ import annotations

import operator
from typing import Any, Final

from moorage.apiserver.apply.fieldset import FieldSet, Path, field_element, key_element, path_text, value_element
from moorage.apiserver.apply.types import TypeNode, is_one_value, shape_of

ABSENT: Final = object()
"""Stands for a field that is not there; None is a field that is there and null."""


class BadValue(ValueError):
    """A list whose items cannot be told apart; `field` is its path in conflict notation."""

    def __init__(self, field: str, why: str) -> None:
        self.field = field
        super().__init__(f"{field}: {why}")


def same(left: Any, right: Any) -> bool:
    """JSON equality: true is not 1."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(value, right[name]) for name, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    return isinstance(left, bool) == isinstance(right, bool) and bool(left == right)


def item_element(node: TypeNode, item: Any, path: Path) -> str:
    """The path element by which a list of this type knows an item.

    Raises:
        BadValue: a list map's item is no object or sets none of the keys.
    """
    if not node.keys:
        return value_element(item)
    if not isinstance(item, dict):
        raise BadValue(path_text(path), "item must be a map for associative list with keys")
    found: dict[str, Any] = {}
    for key in node.keys:
        value = item.get(key)
        value = node.key_default(key) if value is None else value
        if value is not None:
            found[key] = value
    if not found:
        names = ", ".join(f'"{key}"' for key in node.keys)
        raise BadValue(
            path_text(path), f"element 0: associative list with keys has an element that omits key field {names}"
        )
    return key_element(found)


def index_items(node: TypeNode, items: Any, path: Path, *, unique: bool = False) -> dict[str, Any]:
    """Items of an associative list by path element, in order; of duplicates the first one.

    Raises:
        BadValue: an item has no key, or `unique` was asked and two items have the same one.
    """
    found: dict[str, Any] = {}
    for item in items or ():
        element = item_element(node, item, path)
        if element in found and unique:
            raise BadValue(path_text(path), f"duplicate entries for key {path_text((element,))}")
        found.setdefault(element, item)
    return found


def fields_of(node: TypeNode, value: Any) -> FieldSet:
    """The fields that a value sets.

    Raises:
        BadValue: an associative list has duplicates or items without keys.
    """
    found = FieldSet()
    if not is_one_value(node, shape_of(node, value)):
        _collect(node, value, (), found)
    return found


def _collect(node: TypeNode, value: Any, path: Path, found: FieldSet) -> None:
    """Puts what is below a map or list into its set."""
    if shape_of(node, value) == "map":
        for name, below in (value or {}).items():
            lone = below is None or below == {} or name not in node.fields
            _note(node.child(name), below, (*path, field_element(name)), found, lone=lone)
    else:
        for element, item in index_items(node, value, path, unique=True).items():
            _note(node.item, item, (*path, element), found, lone=True)


def _note(node: TypeNode, value: Any, path: Path, found: FieldSet, *, lone: bool) -> None:
    whole = is_one_value(node, shape_of(node, value))
    if whole or lone:
        found.members.add(path[-1])
    if not whole and value:
        below = found.children[path[-1]] = FieldSet()
        _collect(node, value, path, below)


def merge(node: TypeNode, live: Any, applied: Any, path: Path = ()) -> Any:
    """`applied` laid over `live`: maps and associative lists item by item, everything else replaced.

    What does not change is the same Python object afterwards, so that comparing it costs nothing.
    """
    if applied is ABSENT:
        return live
    shape = shape_of(node, applied)
    if live is ABSENT or live is None or is_one_value(node, shape) or shape_of(node, live) != shape:
        return live if live is not ABSENT and same(live, applied) else applied
    if not applied:
        return live or applied
    if shape == "list":
        return _merge_list(node, live, applied, path)
    changed = {}
    for name, value in applied.items():
        before = live.get(name, ABSENT)
        after = merge(node.child(name), before, value, (*path, field_element(name)))
        if after is not before:
            changed[name] = after
    return {**live, **changed} if changed else live


def _merge_list(node: TypeNode, live: list[Any], applied: Any, path: Path) -> list[Any]:
    """Applied items keep their order; live items that were not applied come as early as the shared ones allow."""
    left, right = index_items(node, live, path), index_items(node, applied, path)
    shared = [element for element in right if element in left]
    ahead, behind, order = list(left), list(right), list[str]()
    while ahead or behind:
        first = ahead[0] if ahead else None
        if first is not None and first not in right:
            order.append(ahead.pop(0))
        elif first is not None and shared and first != shared[0]:
            ahead.pop(0)
        else:
            element = behind.pop(0) if behind else None
            shared = shared[1:] if shared and element == shared[0] else shared
            ahead = ahead[1:] if element is None or element == first else ahead
            order += [] if element is None else [element]
    items = ((element, left.get(element, ABSENT), right.get(element, ABSENT)) for element in order)
    merged = [merge(node.item, old, new, (*path, element)) for element, old, new in items]
    unchanged = len(merged) == len(live) and all(map(operator.is_, merged, live))
    return live if unchanged else merged


def remove(node: TypeNode, value: Any, gone: FieldSet, path: Path = ()) -> Any:
    """The value without the fields of a set.

    A map or list of which nothing is left stays, empty. (Kubernetes makes it null, and then refuses its own result for a
    custom resource, although the other owner of the empty map changed nothing.)
    """
    shape = shape_of(node, value)
    if not value or not gone or is_one_value(node, shape):
        return value
    if shape == "map":
        kept = {}
        for name, below in value.items():
            element = field_element(name)
            if element not in gone.members:
                deeper = gone.children.get(element)
                kept[name] = below if deeper is None else remove(node.child(name), below, deeper, (*path, element))
        return kept
    items = []
    for item in value:
        element = item_element(node, item, path)
        if element not in gone.members:
            deeper = gone.children.get(element)
            items.append(item if deeper is None else remove(node.item, item, deeper, (*path, element)))
    return items


def with_named(node: TypeNode, fields: FieldSet) -> FieldSet:
    """The set, plus each declared field that is a parent of a member: structs go when nothing in them is left."""
    named = {element for element in fields.children if element[0] == "f" and element[2:] in node.fields}
    children = {element: with_named(_below(node, element), below) for element, below in fields.children.items()}
    return FieldSet(fields.members | named, children)


def _below(node: TypeNode, element: str) -> TypeNode:
    return node.child(element[2:]) if element[0] == "f" else node.item
