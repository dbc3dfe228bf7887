"""Schemas compiled to small node objects that all walks share.

Enters: an OpenAPI v3 schema as a dict, definitions for `$ref`. Leaves: one tree (or graph, for types that contain
themselves) of Nodes. It checks nothing: `crdcheck.py` judges schemas, this file reads what is admitted.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any, Final, TypeAlias

from moorage.core.meta import JsonObject

from .formats import CHECKED_FORMATS, MICRO_TIME, QUANTITY


class _Missing(Enum):
    MISSING = "missing"


MISSING: Final = _Missing.MISSING
"""Stands for "there is no such value"; None is the JSON null."""

Kinds: TypeAlias = frozenset[type]
_KINDS: Final[Mapping[str, Kinds]] = {
    "object": frozenset({dict}),
    "array": frozenset({list}),
    "string": frozenset({str}),
    "integer": frozenset({int}),
    "number": frozenset({int, float}),
    "boolean": frozenset({bool}),
}
_ANY: Final = frozenset({dict, list, str, int, float, bool})
_INT_OR_STRING: Final = frozenset({int, str})
_QUANTITY: Final = frozenset({int, float, str})
_VALUE_BOUNDS: Final = (
    "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf",
    "minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class Node:
    """One schema node. `kinds` are the Python types that JSON values of the node may have.

    Attributes:
        type: OpenAPI type; "" when the schema names none, "integer,string" for int-or-string.
        additional: schema of map values; None when the schema has none.
        opaque: unknown properties are kept (preserve-unknown-fields, `additionalProperties: true`).
        bounds: keywords that restrict the value itself, as written in the schema.
        plain: nothing but `kinds` restricts the value.
    """

    type: str = ""
    kinds: Kinds = _ANY
    properties: dict[str, Node] = field(default_factory=dict)
    additional: Node | None = None
    items: Node | None = None
    required: tuple[str, ...] = ()
    default: Any = MISSING
    nullable: bool = False
    opaque: bool = False
    preserve: bool = False
    embedded: bool = False
    int_or_string: bool = False
    list_type: str = ""
    list_keys: tuple[str, ...] = ()
    map_type: str = ""
    format: str = ""
    bounds: JsonObject = field(default_factory=dict)
    rules: tuple[JsonObject, ...] = ()
    all_of: tuple[Node, ...] = ()
    any_of: tuple[Node, ...] = ()
    one_of: tuple[Node, ...] = ()
    negated: Node | None = None
    plain: bool = False
    cache: dict[str, Any] = field(default_factory=dict)

    def children(self) -> tuple[Node, ...]:
        """The nodes one step below."""
        found = (*self.properties.values(), self.additional, self.items)
        return tuple(child for child in found if child is not None)

    def child(self, key: str) -> Node | None:
        """The node of one property or map value; None when the schema knows none."""
        return self.properties.get(key, self.additional)


class Compiler:
    """Compiles schemas; one per set of definitions, so that shared types are compiled once. Threads may share it."""

    def __init__(self, definitions: Mapping[str, JsonObject]) -> None:
        self._one = threading.Lock()  # a type that is half made is nobody else's
        self._definitions = definitions
        self._named: dict[str, Node] = {}
        self._open: set[str] = set()
        self._waiting: list[tuple[str, Node, JsonObject]] = []

    def compile(self, schema: JsonObject) -> Node:
        """The node of one schema.

        Raises:
            KeyError: a `$ref` names no definition.
        """
        with self._one:
            return self._fill(Node(), schema)

    def _named_node(self, name: str) -> Node:
        if name not in self._named:
            schema = self._definitions[name]
            self._named[name] = Node()
            self._open.add(name)
            node = self._fill(self._named[name], schema)
            # A built-in type without a schema (JSON, JSONSchemaPropsOrArray) means any value.
            node.opaque = node.preserve = node.preserve or not schema
            if name.endswith(".MicroTime"):
                node.format = MICRO_TIME
            self._open.discard(name)
            self._finish(name)
        return self._named[name]

    def _finish(self, name: str) -> None:
        """Fill the overlays of a type that contains itself, which had to wait until it was whole."""
        ready = [item for item in self._waiting if item[0] == name]
        self._waiting = [item for item in self._waiting if item[0] != name]
        for _, node, schema in ready:
            _copy_into(node, self._named[name], schema)

    def _child(self, schema: JsonObject) -> Node:
        reference = _reference(schema)
        if reference is None:
            return self._fill(Node(), schema)
        name = reference.rsplit("/", 1)[-1]
        target = self._named_node(name)
        if set(schema) <= {"$ref", "allOf", "description"}:
            return target
        overlay = Node()
        if name in self._open:
            self._waiting.append((name, overlay, schema))
        else:
            _copy_into(overlay, target, schema)
        return overlay

    def _fill(self, node: Node, schema: JsonObject) -> Node:
        _read_type(node, schema)
        node.properties = {name: self._child(item) for name, item in (schema.get("properties") or {}).items()}
        extra = schema.get("additionalProperties")
        if isinstance(extra, dict):
            node.additional = self._child(extra)
        items = schema.get("items")
        if isinstance(items, dict):
            node.items = self._child(items)
        _read_extensions(node, schema)
        node.opaque = node.preserve or extra is True
        node.required = tuple(schema.get("required") or ())
        node.default = schema.get("default", MISSING)
        node.bounds = {name: schema[name] for name in _VALUE_BOUNDS if schema.get(name) is not None}
        for name in ("exclusiveMinimum", "exclusiveMaximum"):
            if schema.get(name):
                node.bounds[name] = True
        self._read_junctors(node, schema)
        node.plain = _is_plain(node)
        return node

    def _read_junctors(self, node: Node, schema: JsonObject) -> None:
        if node.format == "int-or-string" or node.kinds is _QUANTITY:
            return
        node.all_of = tuple(self._child(item) for item in schema.get("allOf") or ())
        node.any_of = tuple(self._child(item) for item in schema.get("anyOf") or ())
        node.one_of = tuple(self._child(item) for item in schema.get("oneOf") or ())
        negated = schema.get("not")
        node.negated = self._child(negated) if isinstance(negated, dict) else None


def _copy_into(overlay: Node, target: Node, schema: JsonObject) -> None:
    """A reference with a default or a list rule of its own beside it."""
    for name in Node.__slots__:
        setattr(overlay, name, getattr(target, name))
    overlay.cache = {}
    if "default" in schema:
        overlay.default = schema["default"]
    overlay.nullable = overlay.nullable or bool(schema.get("nullable"))
    overlay.map_type = schema.get("x-kubernetes-map-type", overlay.map_type)


def _reference(schema: JsonObject) -> str | None:
    """The `$ref` of a schema, also when it is wrapped in an allOf of one."""
    if "$ref" in schema:
        return str(schema["$ref"])
    wrapped = schema.get("allOf")
    if isinstance(wrapped, list) and len(wrapped) == 1 and "$ref" in wrapped[0]:
        return str(wrapped[0]["$ref"])
    return None


def _read_type(node: Node, schema: JsonObject) -> None:
    node.type = schema.get("type") or ""
    node.format = schema.get("format") or ""
    node.nullable = bool(schema.get("nullable"))
    node.int_or_string = bool(schema.get("x-kubernetes-int-or-string")) or node.format == "int-or-string"
    if node.int_or_string:
        node.type, node.kinds = "integer,string", _INT_OR_STRING
    elif not node.type and _alternatives(schema) == {"string", "number"}:
        node.type, node.kinds, node.format = "string,number", _QUANTITY, QUANTITY
    else:
        node.kinds = _KINDS.get(node.type, _ANY)


def _alternatives(schema: JsonObject) -> set[str]:
    return {str(item.get("type")) for item in schema.get("oneOf") or ()}


def _read_extensions(node: Node, schema: JsonObject) -> None:
    node.preserve = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    node.embedded = bool(schema.get("x-kubernetes-embedded-resource"))
    node.list_type = schema.get("x-kubernetes-list-type") or ""
    node.list_keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    node.map_type = schema.get("x-kubernetes-map-type") or ""
    node.rules = tuple(schema.get("x-kubernetes-validations") or ())


def _is_plain(node: Node) -> bool:
    junctors = node.all_of or node.any_of or node.one_of or node.negated
    restricted = bool(node.bounds or junctors) or node.format in CHECKED_FORMATS or node.type == "integer"
    nested = node.properties or node.additional or node.items or node.required
    return not (restricted or nested or node.kinds is _ANY)


def anywhere(what: str, test: Callable[[Node], bool], node: Node) -> bool:
    """Whether a node or one below it passes a test; remembered as `what` on all nodes that were looked at."""
    if what not in node.cache:
        _search(what, test, node)
    return bool(node.cache[what])


def _search(what: str, test: Callable[[Node], bool], root: Node) -> None:
    """Each node is looked at once, also where types contain themselves; what passes is so for all that lead to it."""
    nodes, above, todo = {id(root): root}, dict[int, list[Node]](), [root]
    while todo:
        node = todo.pop()
        for child in () if what in node.cache else node.children():
            above.setdefault(id(child), []).append(node)
            if id(child) not in nodes:
                nodes[id(child)] = child
                todo.append(child)
    found, passing = set[int](), [node for node in nodes.values() if node.cache.get(what, False) or test(node)]
    while passing:
        node = passing.pop()
        if id(node) not in found:
            found.add(id(node))
            passing += above.get(id(node), ())
    for node in nodes.values():
        node.cache[what] = id(node) in found


has_rules: Final = partial(anywhere, "rules", lambda node: bool(node.rules))
"""Whether a rule stands anywhere in the schema of a node."""
