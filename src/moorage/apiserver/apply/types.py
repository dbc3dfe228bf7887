"""What merging needs to know of a type: which maps and lists are one value, and by what list items are told apart.

Enters: OpenAPI v3 schemas as they stand in records or CRDs. Leaves: `TypeNode`s, resolved lazily. Must not look at objects, except
to guess the shape of what a schema does not describe. Source: API concepts, "Merge strategy" markers (`x-kubernetes-*`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from moorage.core.meta import JsonObject

Shape = Literal["scalar", "map", "list", "any"]

_PREFIX = "#/components/schemas/"
_TEXT: JsonObject = {"type": "string"}
_TEXTS: JsonObject = {"type": "object", "additionalProperties": _TEXT}
_OBJECT_META: JsonObject = {
    "type": "object",
    "properties": {
        "name": _TEXT,
        "generateName": _TEXT,
        "namespace": _TEXT,
        "uid": _TEXT,
        "resourceVersion": _TEXT,
        "selfLink": _TEXT,
        "creationTimestamp": _TEXT,
        "deletionTimestamp": _TEXT,
        "deletionGracePeriodSeconds": {"type": "integer"},
        "generation": {"type": "integer"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
        "ownerReferences": {
            "type": "array",
            "items": {"type": "object", "x-kubernetes-map-type": "atomic"},
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["uid"],
        },
        "managedFields": {"type": "array", "x-kubernetes-list-type": "atomic"},
    },
}
_ROOT_FIELDS: JsonObject = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": _OBJECT_META}


def resolve(schema: Mapping[str, Any], definitions: Mapping[str, JsonObject]) -> JsonObject:
    """The schema with its reference followed; what stands beside the reference wins.

    A reference is `$ref`, or the one-element `allOf` that built-in schemas use.

    Raises:
        KeyError: the reference leads nowhere.
    """
    rest = dict(schema)
    parts: list[JsonObject] = rest.get("allOf") or []
    ref = rest.pop("$ref", None)
    if ref is None and len(parts) == 1 and "$ref" in parts[0]:
        ref = parts[0]["$ref"]
        del rest["allOf"]
    if ref is None:
        return rest
    return {**resolve(definitions[ref.removeprefix(_PREFIX)], definitions), **rest}


class TypeNode:
    """The type at one place of an object. Nodes are made on demand and kept, because schemas may be recursive."""

    def __init__(self, schema: Mapping[str, Any], definitions: Mapping[str, JsonObject]) -> None:
        self._definitions = definitions
        self.schema = resolve(schema, definitions)
        self.shape = _shape(self.schema)
        self._children: dict[str, TypeNode] = {}

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """Declared fields by name."""
        named: Mapping[str, Any] = self.schema.get("properties") or {}
        return {**named, **_ROOT_FIELDS} if self.schema.get("x-kubernetes-embedded-resource") else named

    @cached_property
    def atomic(self) -> bool:
        """Whether the value is owned and replaced as one."""
        if self.shape == "list":
            return self.schema.get("x-kubernetes-list-type", "atomic") not in ("set", "map")
        return self.shape == "scalar" or self.schema.get("x-kubernetes-map-type") == "atomic"

    @cached_property
    def keys(self) -> tuple[str, ...]:
        """The key fields of a list map; empty for other types."""
        is_map = self.schema.get("x-kubernetes-list-type") == "map"
        return tuple(self.schema.get("x-kubernetes-list-map-keys") or ()) if is_map else ()

    @cached_property
    def item(self) -> TypeNode:
        """The type of a list's items, or of the values of a map without declared fields."""
        found = self.schema.get("items") if self.shape == "list" else self.schema.get("additionalProperties")
        return TypeNode(found, self._definitions) if isinstance(found, dict) and found else ANY

    @cached_property
    def closed(self) -> bool:
        """Whether fields that are not declared are errors."""
        loose = ("additionalProperties", "x-kubernetes-preserve-unknown-fields", "x-kubernetes-embedded-resource")
        return self.shape == "map" and bool(self.fields) and not any(self.schema.get(name) for name in loose)

    def child(self, name: str) -> TypeNode:
        """The type of a declared field, else of any value of the map."""
        if name not in self.fields:
            return self.item
        node = self._children.get(name)
        if node is None:
            node = self._children[name] = TypeNode(self.fields[name], self._definitions)
        return node

    def key_default(self, key: str) -> Any:
        """The default of a key field of this list map, or None."""
        return self.item.child(key).schema.get("default") if key in self.item.fields else None


def _shape(schema: Mapping[str, Any]) -> Shape:
    if schema.get("x-kubernetes-int-or-string"):
        return "scalar"
    match schema.get("type"):
        case "array":
            return "list"
        case "object":
            return "map"
        case None if schema.get("properties") or schema.get("x-kubernetes-embedded-resource"):
            return "map"
        case None if schema.get("oneOf") and not schema.get("x-kubernetes-preserve-unknown-fields"):
            return "scalar"
        case None:
            return "any"
        case _:
            return "scalar"


ANY = TypeNode({}, {})
"""The type of what no schema describes: maps are granular, lists are one value."""


def shape_of(node: TypeNode, value: Any) -> Shape:
    """The shape in which a value of this type is walked; a value that does not fit is walked by its own shape."""
    own: Shape = "map" if isinstance(value, dict) else "list" if isinstance(value, list) else "scalar"
    if value is None:
        return node.shape if node.shape != "any" else "scalar"
    return own


def is_one_value(node: TypeNode, shape: Shape) -> bool:
    """Whether a value walked in this shape is owned as one."""
    if shape == "scalar":
        return True
    if node.shape == shape:
        return node.atomic
    return shape == "list"


@dataclass(frozen=True, eq=False)
class TypeMap:
    """The type of one kind of object.

    Attributes:
        root: the type of the whole object.
        builtin: whether objects of this type are Go structs on Kubernetes, so that even a new object has its plain struct fields.
        status: whether `status` is written through the status subresource only.
    """

    root: TypeNode
    builtin: bool = False
    status: bool = True

    @classmethod
    def of(cls, schema: JsonObject, definitions: Mapping[str, JsonObject], *, status: bool | None = None) -> TypeMap:
        """The types of a kind, from its OpenAPI v3 schema.

        Args:
            schema: the schema of the whole object, of a built-in kind or of a CRD version.
            definitions: components that the schema refers to.
            status: whether the kind has a status subresource; None: it has one if the schema is of a built-in and declares `status`.

        Raises:
            KeyError: a reference leads nowhere.
        """
        builtin = _is_builtin(schema)
        if not builtin:
            fields = {**(schema.get("properties") or {}), **_ROOT_FIELDS}
            schema = {"type": "object", **schema, "properties": fields}
        root = TypeNode(schema, definitions)
        return cls(root, builtin, "status" in root.fields if status is None else status)

    @property
    def kind(self) -> str:
        """The kind that the schema names; empty for custom resources."""
        named = self.root.schema.get("x-kubernetes-group-version-kind") or [{}]
        return str(named[0].get("kind", ""))

    @cached_property
    def blank(self) -> JsonObject:
        """A new object before anything was written to it: empty, or a built-in's struct with its zero values."""
        return _zero(self.root) if self.builtin else {"metadata": {}}


def _is_builtin(schema: Mapping[str, Any]) -> bool:
    metadata = (schema.get("properties") or {}).get("metadata") or {}
    parts = metadata.get("allOf") or [metadata]
    return "$ref" in parts[0] or "$ref" in schema or "allOf" in schema


def _zero(node: TypeNode) -> JsonObject:
    made: JsonObject = {}
    required = node.schema.get("required") or ()
    for name in node.fields:
        child = node.child(name)
        if child.schema.get("default") == {}:
            made[name] = _zero(child)
        elif name in required or "default" in child.schema:
            made[name] = child.schema.get("default")
    return made
