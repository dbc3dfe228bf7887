"""Tables: what `kubectl get` prints, made by the server.

Enters: objects of one kind and the time. Leaves: a meta.k8s.io/v1 Table. Must not read a clock or a store.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal

from moorage.apiserver.served import ServedType
from moorage.apiserver.table import cells, jsonpath, podcells
from moorage.core.meta import JsonObject

__all__ = ["to_table"]

_NAME_TEXT = "Name must be unique within a namespace."
_AGE: JsonObject = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_NAME: JsonObject = {"name": "Name", "type": "string", "format": "name", "description": _NAME_TEXT, "priority": 0}


def to_table(
    served: ServedType,
    objects: Sequence[JsonObject],
    *,
    now: datetime,
    list_meta: JsonObject,
    include: Literal["Metadata", "Object", "None"],
) -> JsonObject:
    """The table of some objects of one kind.

    Args:
        now: an aware time, for ages.
        list_meta: metadata of the list (resourceVersion, continue, remainingItemCount), or of the one object.
        include: what each row carries of its object.
    """
    return {
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta,
        "columnDefinitions": _definitions(served),
        "rows": [_row(served, obj, now, include) for obj in objects],
    }


def _definitions(served: ServedType) -> list[JsonObject]:
    if not served.custom and served.columns:
        return [_plain(column) for column in served.columns]
    return [_NAME, *map(_definition, _columns(served))]


def _columns(served: ServedType) -> Sequence[JsonObject]:
    """The columns of a custom kind, after its name."""
    return served.columns or (_AGE,)


def _definition(column: JsonObject) -> JsonObject:
    text = (
        f"Custom resource definition column (in JSONPath format): {column['jsonPath']}" if "jsonPath" in column else ""
    )
    return _plain({**column, "description": column.get("description") or text})


def _plain(column: JsonObject) -> JsonObject:
    return {
        "name": column["name"],
        "type": column["type"],
        "format": column.get("format", ""),
        "description": column.get("description", ""),
        "priority": column.get("priority", 0),
    }


def _row(served: ServedType, obj: JsonObject, now: datetime, include: str) -> JsonObject:
    made: JsonObject = {"cells": _custom(served, obj, now) if served.custom else _builtin(served, obj, now)}
    if served.resource.kind == "Pod" and (conditions := list(podcells.row_conditions(obj))):
        made["conditions"] = conditions
    if include == "Object":
        made["object"] = obj
    elif include == "Metadata":
        made["object"] = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    else:
        made["object"] = None
    return made


def _builtin(served: ServedType, obj: JsonObject, now: datetime) -> list[Any]:
    rt = served.resource
    return cells.CELLS.get((rt.group, rt.kind), cells.plain)(obj, now)


def _custom(served: ServedType, obj: JsonObject, now: datetime) -> list[Any]:
    return [obj["metadata"].get("name", ""), *(_cell(column, obj, now) for column in _columns(served))]


def _cell(column: JsonObject, obj: JsonObject, now: datetime) -> Any:
    """One cell: the first value found, in the type of its column; null when there is none or it does not fit."""
    try:
        found = jsonpath.find(column["jsonPath"], obj)
    except ValueError:
        return None
    if not found or found[0] is None:
        return None
    value, kind = found[0], column["type"]
    if kind == "date":
        return cells.since(value, now, "<invalid>") if isinstance(value, str) else None
    if kind == "string":
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"), sort_keys=True)
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if kind == "integer" else value
