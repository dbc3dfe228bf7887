"""The difference of two objects as three sets of fields.

Enters: two JSON values and their type. Leaves: `Difference`. Must not change either value.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from moorage.apiserver.apply.fieldset import FieldSet, Path, field_element
from moorage.apiserver.apply.types import Shape, TypeNode, is_one_value, shape_of
from moorage.apiserver.apply.values import ABSENT, index_items, same


@dataclass(slots=True)
class Difference:
    """Fields that only the new value has, that differ, and that only the old value has."""

    added: FieldSet = field(default_factory=FieldSet)
    modified: FieldSet = field(default_factory=FieldSet)
    removed: FieldSet = field(default_factory=FieldSet)

    def __bool__(self) -> bool:
        return bool(self.added) or bool(self.modified) or bool(self.removed)

    @property
    def taken(self) -> FieldSet:
        """Fields that the new value sets anew."""
        return self.added.union(self.modified)

    def outside(self, ignored: FieldSet) -> Difference:
        """The difference without some trees."""
        parts = (part.without_trees(ignored) for part in (self.added, self.modified, self.removed))
        return Difference(*parts)


def difference(node: TypeNode, old: Any, new: Any) -> Difference:
    """How `new` differs from `old`; a parent that came or went is named as well as what is below it."""
    found = Difference()
    _compare(node, old, new, (), found)
    return found


def _compare(node: TypeNode, old: Any, new: Any, path: Path, found: Difference) -> None:
    if old is new or (isinstance(old, dict | list) and old == new):
        return
    present = [value for value in (old, new) if value is not ABSENT]
    shapes = {shape_of(node, value) for value in present}
    if len(shapes) > 1 and None not in present:
        _compare(node, old, ABSENT, path, found)
        _compare(node, ABSENT, new, path, found)
        return
    shape: Shape = "map" if "map" in shapes else "list" if "list" in shapes else "scalar"
    if is_one_value(node, shape) or not any(present):
        _compare_leaf(old, new, path, found)
        return
    if shape == "map":
        _compare_maps(node, _map(old), _map(new), path, found)
    else:
        _compare_lists(node, _list(old), _list(new), path, found)
    if path and old is ABSENT:
        found.added.add(path)
    elif path and new is ABSENT:
        found.removed.add(path)


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _compare_leaf(old: Any, new: Any, path: Path, found: Difference) -> None:
    if old is ABSENT:
        found.added.add(path)
    elif new is ABSENT:
        found.removed.add(path)
    elif not same(old, new):
        found.modified.add(path)


def _compare_maps(node: TypeNode, old: dict[str, Any], new: dict[str, Any], path: Path, found: Difference) -> None:
    for name in old.keys() | new.keys():
        below = (*path, field_element(name))
        _compare(node.child(name), old.get(name, ABSENT), new.get(name, ABSENT), below, found)


def _compare_lists(node: TypeNode, old: list[Any], new: list[Any], path: Path, found: Difference) -> None:
    left, right = index_items(node, old, path), index_items(node, new, path)
    for element in left.keys() | right.keys():
        _compare(node.item, left.get(element, ABSENT), right.get(element, ABSENT), (*path, element), found)
