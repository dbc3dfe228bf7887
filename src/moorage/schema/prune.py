"""Unknown fields: found, named, and dropped.

Enters: a Node and an object. Leaves: the paths of fields that the schema does not know; the object without them.
Source: apiextensions pruning; the root and embedded resources keep apiVersion, kind and metadata.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from .fieldpath import Path, path_text
from .node import Node

_TYPE_META: Final = frozenset({"apiVersion", "kind", "metadata"})
_CLOSED: Final = Node()
_STRINGS: Final = Node(type="object", additional=Node(type="string"))
_OWNER: Final = Node(
    type="object",
    properties={name: Node() for name in ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")},
)
_MANAGED: Final = Node(
    type="object",
    properties={
        **{name: Node() for name in ("manager", "operation", "apiVersion", "time", "fieldsType", "subresource")},
        "fieldsV1": Node(opaque=True, preserve=True),
    },
)
META: Final = Node(
    type="object",
    properties={
        **{
            name: Node()
            for name in (
                "name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation",
                "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds",
            )
        },
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "ownerReferences": Node(type="array", items=_OWNER),
        "finalizers": Node(type="array", items=Node(type="string")),
        "managedFields": Node(type="array", items=_MANAGED),
    },
)  # fmt: skip
"""metav1.ObjectMeta, for objects whose schema leaves metadata open."""


def leaves_metadata_open(node: Node | None) -> bool:
    """Whether a schema says no more of metadata than a CRD may: the name and its prefix."""
    return node is None or node.properties.keys() <= {"name", "generateName"}


@dataclass(slots=True)
class _Walk:
    drop: bool
    found: list[str] = field(default_factory=list)


def unknown_fields(node: Node, obj: Any, *, drop: bool) -> list[str]:
    """Paths of fields that the schema does not know, in the order of the object; dropped from it when `drop`."""
    walk = _Walk(drop)
    _visit(node, obj, None, walk, resource=True)
    return walk.found


def _visit(node: Node, value: Any, path: Path, walk: _Walk, *, resource: bool = False) -> None:
    if type(value) is dict:
        _visit_object(node, value, path, walk, resource or node.embedded)
    elif type(value) is list and (node.items is not None or not node.opaque):
        for at, item in enumerate(value):
            if type(item) in (dict, list):
                _visit(node.items or _CLOSED, item, (path, at), walk)


def _visit_object(node: Node, value: dict[str, Any], path: Path, walk: _Walk, resource: bool) -> None:
    properties, additional, opaque = node.properties, node.additional, node.opaque
    gone: list[str] = []
    for key, item in value.items():
        child = properties.get(key, additional)
        if resource and key == "metadata" and leaves_metadata_open(child):
            child = META
        if child is not None:
            if type(item) in (dict, list):
                _visit(child, item, (path, key), walk)
        elif not opaque and not (resource and key in _TYPE_META):
            gone.append(key)
            walk.found.append(path_text((path, key)))
    if walk.drop:
        for key in gone:
            del value[key]
