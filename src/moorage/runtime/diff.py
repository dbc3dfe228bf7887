"""Differences between JSON values, as patches. Pure.

Source: RFC 6902 (JSON patch), RFC 7386 (merge patch).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.core.meta import JsonObject


def merge_patch(old: Mapping[str, Any], new: Mapping[str, Any]) -> JsonObject:
    """The merge patch that makes `new` of `old`; empty when they are equal. Lists are replaced whole."""
    patch: JsonObject = {name: None for name in old if name not in new}
    for name, value in new.items():
        before = old.get(name)
        if name in old and before == value:
            continue
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            patch[name] = merge_patch(before, value)
        else:
            patch[name] = value
    return patch


def without_nulls(value: Mapping[str, Any]) -> JsonObject:
    """The object without null members, at any depth: what is left of it on a server."""
    return {
        name: without_nulls(item) if isinstance(item, Mapping) else item
        for name, item in value.items()
        if item is not None
    }


def json_patch(old: Any, new: Any, path: str = "") -> Iterable[JsonObject]:
    """The operations of a JSON patch that makes `new` of `old`."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in old.keys() - new.keys():
            yield {"op": "remove", "path": f"{path}/{_escape(name)}"}
        for name, value in new.items():
            where = f"{path}/{_escape(name)}"
            if name in old:
                yield from json_patch(old[name], value, where)
            else:
                yield {"op": "add", "path": where, "value": value}
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for position, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from json_patch(before, after, f"{path}/{position}")
    elif old != new or type(old) is not type(new):
        yield {"op": "replace", "path": path, "value": new}


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
