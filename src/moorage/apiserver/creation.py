"""What is remembered of created objects by their shape: whether decoding and defaulting leave them as they are, and their
managedFields.

Both follow from which fields there are and what types they have, not from their texts, unless there are lists of objects:
controllers create thousands of objects of few shapes. Pure but for its memory, which is bounded.
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver import builtin, strategy
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import encode
from moorage.apiserver.registry import Registry, check_gvk
from moorage.apiserver.request import Request
from moorage.apiserver.served import ServedType
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject
from moorage.schema.node import Node

_MOST = 2048
LONGEST_BODY = 16 * 1024
"""Larger objects are of no common shape, and would fill the memory."""
_FREE = frozenset({"name", "generateName", "namespace", "labels", "annotations", "finalizers"})
Shape = tuple[Any, ...]


class HasObjects(Exception):
    """The value holds a list of more than texts: its fields are named by their values."""


def shape_of(value: Any) -> Any:
    """What of a value decides about its fields: names, types, and which values are empty.

    Raises:
        HasObjects: values within lists of objects decide, too.
    """
    kind = type(value)
    if kind is str:
        return "s" if value else ""
    if kind is dict:
        return tuple([(name, shape_of(item)) for name, item in value.items()])
    if kind is list:
        if not all(type(item) is str for item in value):
            raise HasObjects
        return ("", *value)
    return None if value is None else (kind.__name__, bool(value))


class Created:
    """What was learned from objects that were created before."""

    def __init__(self) -> None:
        self._fields: dict[Shape, JsonObject] = {}
        self._whole: dict[Shape, bool] = {}

    def find(self, key: Shape, now: str) -> list[JsonObject] | None:
        """The managedFields of a create like one that was seen before, by the same writer."""
        entry = self._fields.get(key)
        return None if entry is None else [{**entry, "time": now}]

    def note(self, key: Shape, entries: list[JsonObject]) -> None:
        """Remember what a create came to."""
        if len(self._fields) >= _MOST:
            self._fields.clear()
        if len(entries) == 1:
            self._fields[key] = entries[0]

    def whole(self, registry: Registry, served: ServedType, request: Request, obj: JsonObject) -> Shape | None:
        """The shape of an object as it was sent, when nothing would be dropped, filled in or complained about; else None.

        Raises:
            StatusError: 400, another kind.
        """
        if len(request.body) > LONGEST_BODY:
            return None
        try:
            shape: Shape = shape_of(obj)
        except (HasObjects, RecursionError):
            return None
        check_gvk(served, obj)
        known = self._whole.get((served, shape))
        if known is None:
            if len(self._whole) >= _MOST:
                self._whole.clear()
            known = self._whole[served, shape] = _is_whole(registry, served, request, obj)
        return shape if known else None


def _is_whole(registry: Registry, served: ServedType, request: Request, obj: JsonObject) -> bool:
    """Whether decoding and defaulting leave every object of this shape as it is."""
    meta = obj.get("metadata")
    if not isinstance(meta, dict) or builtin.has_defaults(served.resource):
        return False
    if not (meta.keys() <= _FREE if served.custom else _is_plain(served.structural.root, obj)):
        return False
    tried, trial = copied(obj), Request(request.method, request.target, {"fieldValidation": "Strict"}, {})
    try:
        tried = strategy.decode_object(registry, served, trial, (tried, []))
    except StatusError:
        return False
    strategy.default(served, tried)
    return not trial.warnings and encode(tried) == encode(obj)


def _is_plain(node: Node, value: Any) -> bool:
    """Whether nothing but types is asked of the values in `value`."""
    if not isinstance(value, dict | list):
        return node.plain and type(value) in node.kinds
    if node.bounds or node.all_of or node.any_of or node.one_of or node.negated:
        return False
    pairs = (
        [(node.child(key), item) for key, item in value.items()]
        if isinstance(value, dict)
        else [(node.items, item) for item in value]
    )
    return all(child is not None and _is_plain(child, item) for child, item in pairs)
