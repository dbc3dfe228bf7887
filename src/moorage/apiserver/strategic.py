"""Strategic merge patch: lists that merge by key, and directives that say otherwise.

Enters: an object, a patch, and the schema with `x-kubernetes-patch-strategy` and `-patch-merge-key`. Leaves: a new object.
Must not change its inputs. Source: kubernetes.io, "Update API objects in place using kubectl patch"; the community's
strategic-merge-patch notes; answers recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from moorage.apiserver.apply.types import ANY, TypeNode
from moorage.apiserver.patcherror import PatchError
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject

_DIRECTIVE, _RETAIN = "$patch", "$retainKeys"
_DELETE_ITEMS, _ORDER = "$deleteFromPrimitiveList/", "$setElementOrder/"


def strategic_merge(
    obj: JsonObject, patch: Any, schema: JsonObject, definitions: Mapping[str, JsonObject]
) -> JsonObject:
    """The object with a strategic merge patch applied.

    Raises:
        PatchError: 400, the patch is no object; 422, a list item lacks its merge key. Values that do not fit their place are kept,
            for decoding to refuse.
    """
    if not isinstance(patch, dict):
        text = f"json: cannot unmarshal {'array' if isinstance(patch, list) else 'string'} into Go value of type map[string]interface {{}}"
        raise PatchError(400, "BadRequest", text)
    return _merge_map(TypeNode(schema, definitions), obj, patch)


@dataclass(frozen=True)
class _List:
    """How one list merges: by a key of its items, or as a set of plain values."""

    item: TypeNode
    key: str

    @cached_property
    def identity(self) -> Callable[[Any], Any]:
        """What tells items apart."""
        return self._of_map if self.key else lambda value: value

    def _of_map(self, item: Any) -> Any:
        if not isinstance(item, dict) or self.key not in item:
            shown = " ".join(f"{name}:{value}" for name, value in item.items()) if isinstance(item, dict) else item
            raise PatchError(422, "Invalid", f"map: map[{shown}] does not contain declared merge key: {self.key}")
        return item[self.key]


def _strategies(node: TypeNode) -> Sequence[str]:
    return str(node.schema.get("x-kubernetes-patch-strategy", "")).split(",")


def _merge_map(node: TypeNode, old: JsonObject, patch: JsonObject) -> JsonObject:
    """Maps merge field by field; null removes a field."""
    directive = patch.get(_DIRECTIVE)
    if directive == "delete":
        return {}
    if directive not in (None, "replace", "merge"):
        shown = " ".join(f"{name}:{value}" for name, value in sorted(patch.items()))
        raise PatchError(422, "Invalid", f"unknown patch type: {directive} in map: map[{shown}]")
    made = {} if directive == "replace" else dict(old)
    if _RETAIN in patch:
        made = {name: value for name, value in made.items() if name in patch[_RETAIN]}
    for name, value in patch.items():
        if not name.startswith("$"):
            _merge_field(node, made, name, value, patch)
    for name in patch:
        if (
            name.startswith((_ORDER, _DELETE_ITEMS))
            and (field := name.partition("/")[2]) not in patch
            and field in made
        ):
            _merge_field(node, made, field, [], patch)
    return made


def _merge_field(node: TypeNode, made: JsonObject, name: str, value: Any, patch: JsonObject) -> None:
    child = node.child(name) if node.shape == "map" else ANY
    if value is None:
        made.pop(name, None)
    elif isinstance(value, dict):
        _merge_object(child, made, name, value)
    elif isinstance(value, list):
        made[name] = _merge_list(
            child, made.get(name), value, patch.get(_ORDER + name), patch.get(_DELETE_ITEMS + name)
        )
    else:
        made[name] = value


def _merge_object(child: TypeNode, made: JsonObject, name: str, value: JsonObject) -> None:
    before = made.get(name)
    if value.get(_DIRECTIVE) == "delete":
        made.pop(name, None)
    elif child.shape not in ("map", "any"):
        made[name] = copied(value)  # which cannot be decoded
    else:
        made[name] = _merge_map(child, before if isinstance(before, dict) else {}, value)


def _merge_list(node: TypeNode, old: Any, patch: list[Any], order: Any, doomed: Any) -> list[Any]:
    before = old if isinstance(old, list) else []
    if "merge" not in _strategies(node):
        return copied(patch)
    shape = _List(node.item, str(node.schema.get("x-kubernetes-patch-merge-key") or ""))
    if any(isinstance(item, dict) and item.get(_DIRECTIVE) == "replace" for item in patch):
        return [copied(item) for item in patch if _DIRECTIVE not in item]
    merged = _merge_items(shape, before, patch)
    if doomed:
        merged = [item for item in merged if item not in doomed]
    wanted = patch if order is None else order
    return _ordered(shape, merged, [shape.identity(item) for item in wanted], [shape.identity(item) for item in before])


def _merge_items(shape: _List, before: list[Any], patch: list[Any]) -> list[Any]:
    """Items of both, each once; later ones win."""
    made = {_hashable(shape.identity(item)): item for item in before}
    for item in patch:
        key = _hashable(shape.identity(item))
        if not shape.key:
            made[key] = item
        elif item.get(_DIRECTIVE) == "delete":
            made.pop(key, None)
        else:
            made[key] = _merge_map(shape.item, made.get(key, {}), item)
    return list(made.values())


def _hashable(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else repr(value)


def _ordered(shape: _List, items: list[Any], wanted: list[Any], before: list[Any]) -> list[Any]:
    """Items that the patch names come in its order; the others keep their old place relative to them."""
    named = sorted((i for i in items if shape.identity(i) in wanted), key=lambda i: wanted.index(shape.identity(i)))
    others = [item for item in items if shape.identity(item) not in wanted]
    made: list[Any] = []
    for item in named:
        place = _place(before, shape.identity(item))
        made += _take_while(others, lambda other, place=place: _place(before, shape.identity(other)) < place)  # type: ignore[misc]
        made.append(item)
    return made + others


def _place(order: Sequence[Any], key: Any) -> int:
    """Position in the old list; what was not there comes first."""
    return order.index(key) if key in order else -1


def _take_while(items: list[Any], holds: Callable[[Any], bool]) -> Iterable[Any]:
    while items and holds(items[0]):
        yield items.pop(0)
