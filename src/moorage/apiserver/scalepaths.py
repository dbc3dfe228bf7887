"""Where an object keeps the numbers that its Scale shows. Pure.

Enters: kinds and objects. Leaves: values at the paths that a CustomResourceDefinition names, and complaints about them.
Source: apiextensions, "Scale subresource".
"""

from __future__ import annotations

from typing import Any

from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject
from moorage.schema import FieldError, invalid

_DEFAULTS = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ""}
_MOST = 2**31 - 1


def paths(served: ServedType) -> dict[str, str]:
    """specReplicasPath, statusReplicasPath, labelSelectorPath of a kind."""
    given = (served.version.get("subresources") or {}).get("scale") or {}
    return {name: given.get(name, default) for name, default in _DEFAULTS.items()}


def walk(obj: Any, path: str) -> Any:
    """The value at a simple path such as `.spec.replicas`; None where there is none."""
    for part in filter(None, path.split(".")):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def scale_errors(served: ServedType, obj: JsonObject) -> list[FieldError]:
    """Complaints about the replicas of a custom resource that can be scaled."""
    if not served.custom or "scale" not in served.subresources:
        return []
    found = []
    for name in ("specReplicasPath", "statusReplicasPath"):
        path = paths(served)[name]
        value = walk(obj, path)
        if isinstance(value, bool) or not isinstance(value, int):
            continue
        if value < 0:
            found.append(invalid(path, value, "should be a non-negative integer"))
        elif value > _MOST:
            found.append(invalid(path, value, f"should be less than or equal to {_MOST}"))
    return found
