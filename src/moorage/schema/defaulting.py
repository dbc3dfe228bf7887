"""Defaults: what the schema fills in, and nulls that make way for them.

Enters: a Node and an object. Leaves: the same object, completed. Running twice changes nothing more.
Source: apiextensions defaulting; nulls of fields that are not nullable go, with or without a default.
"""

from __future__ import annotations

from typing import Any

from moorage.core.jsoncopy import copied

from .node import MISSING, Node
from .prune import META


def apply_defaults(node: Node, value: Any, *, resource: bool = False) -> None:
    """Complete `value` in place; nulls in the metadata of a resource go, too."""
    if type(value) is dict:
        _default_object(node, value)
        if resource or node.embedded:
            _drop_nulls(value.get("metadata"))
    elif type(value) is list and node.items is not None:
        for at, item in enumerate(value):
            if item is None and not node.items.nullable and node.items.default is not MISSING:
                value[at] = item = copied(node.items.default)
            if type(item) in (dict, list):
                apply_defaults(node.items, item)


def _default_object(node: Node, value: dict[str, Any]) -> None:
    for key in [key for key, item in value.items() if item is None]:
        child = node.child(key)
        if child is not None and not child.nullable:
            del value[key]
    for key, default in _defaults_of(node):
        if key not in value:
            value[key] = copied(default)
    for key, item in value.items():
        if type(item) in (dict, list) and (child := node.child(key)) is not None:
            apply_defaults(child, item)


def _drop_nulls(metadata: Any) -> None:
    if type(metadata) is dict:
        _default_object(META, metadata)


def _defaults_of(node: Node) -> tuple[tuple[str, Any], ...]:
    if "defaults" not in node.cache:
        node.cache["defaults"] = tuple(
            (key, child.default) for key, child in node.properties.items() if child.default is not MISSING
        )
    found: tuple[tuple[str, Any], ...] = node.cache["defaults"]
    return found
