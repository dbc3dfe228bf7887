"""Lists that are sets or maps: no entry twice.

Enters: a Node and a value. Leaves: complaints about duplicates, one per repeated entry. It changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Hashable
from functools import partial
from typing import Any, Final

from .fielderror import FieldError, duplicate, invalid
from .fieldpath import MapKey, Path, path_text
from .node import MISSING, Node, anywhere


def key_of(node: Node, item: Any) -> Hashable:
    """What identifies an entry of a list map among its siblings: the values of its keys, defaults filled in."""
    if type(item) is not dict:
        return _frozen(item)
    return tuple(_frozen(_key_value(node, item, key)) for key in node.list_keys)


def _key_value(node: Node, item: dict[str, Any], key: str) -> Any:
    if key in item or node.items is None:
        return item.get(key)
    child = node.items.properties.get(key)
    return None if child is None or child.default is MISSING else child.default


def _frozen(value: Any) -> Hashable:
    if isinstance(value, dict | list):
        return "json", json.dumps(value, sort_keys=True)
    return type(value), value


has_lists: Final = partial(anywhere, "lists", lambda node: node.list_type in ("set", "map"))
"""Whether a set or list map stands anywhere in the schema of a node."""


def check_lists(node: Node, value: Any, path: Path, out: list[FieldError]) -> None:
    """Add one complaint for each entry that stands in a set or list map for the second time."""
    if type(value) is dict:
        for key, item in value.items():
            child = node.child(key)
            if child is not None and type(item) in (dict, list):
                step = key if key in node.properties else MapKey(key)
                check_lists(child, item, (path, step), out)
    elif type(value) is list:
        if node.list_type in ("set", "map"):
            _check_unique(node, value, path, out)
        if node.items is not None:
            for at, item in enumerate(value):
                if type(item) in (dict, list):
                    check_lists(node.items, item, (path, at), out)


def _check_unique(node: Node, value: list[Any], path: Path, out: list[FieldError]) -> None:
    seen: dict[Hashable, int] = {}
    for at, item in enumerate(value):
        if node.list_type == "map" and type(item) is not dict:
            if item is None:
                continue
            out.append(invalid(path_text((path, at)), item, "must be an object for an array of list-type map"))
            return
        key = key_of(node, item) if node.list_type == "map" else _frozen(item)
        times = seen[key] = seen.get(key, 0) + 1
        if times == 2:
            out.append(duplicate(path_text((path, at)), _shown(node, item)))


def _shown(node: Node, item: Any) -> Any:
    if node.list_type == "set" or type(item) is not dict:
        return item
    keys = {key: _key_value(node, item, key) for key in node.list_keys}
    return {key: value for key, value in keys.items() if value is not None}
