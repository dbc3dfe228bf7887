"""Structural-schema rules: what a schema must be so that objects can be pruned, defaulted and applied by it.

Enters: an OpenAPI v3 schema. Leaves: complaints, worded and placed as kube-apiserver's. It reads no objects.
Source: Kubernetes documentation, "Specifying a structural schema"; recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from moorage.core.meta import JsonObject

from .fielderror import FieldError, forbidden, invalid, not_supported, required
from .gopattern import BadPattern, compile_pattern

_TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
_UNSUPPORTED: Final = ("$ref", "definitions", "patternProperties", "dependencies", "id", "$schema", "additionalItems")
_NOT_IN_JUNCTOR: Final = (
    ("description", "must be empty to be structural"), ("title", "must be empty to be structural"),
    ("type", "must be empty to be structural"), ("default", "must be undefined to be structural"),
    ("nullable", "must be false to be structural"), ("additionalProperties", "must be undefined to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)  # fmt: skip
_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_META_FIELDS: Final = frozenset({"name", "generateName"})


class _At(NamedTuple):
    """A schema and where it stands."""

    schema: JsonObject
    path: str

    def child(self, schema: Any, step: str) -> _At:
        return _At(schema if isinstance(schema, dict) else {}, f"{self.path}.{step}")


def structural_errors(schema: JsonObject, base: str) -> list[FieldError]:
    """All complaints about the structure of a schema."""
    root = _At(schema, base)
    return [*_root_errors(root), *_schema_errors(root, "root")]


def _root_errors(root: _At) -> Iterator[FieldError]:
    kind = root.schema.get("type")
    if not kind:
        yield required(f"{root.path}.type", "must not be empty at the root")
    elif kind != "object":
        yield invalid(f"{root.path}.type", kind, "must be object at the root")
    if root.schema.get("nullable"):
        yield forbidden(f"{root.path}.nullable", "nullable cannot be true at the root")
    if root.schema.get("additionalProperties") is not None:
        yield forbidden(f"{root.path}.additionalProperties", "must not be used at the root")
    yield from _resource_errors(root)


def _resource_errors(at: _At) -> Iterator[FieldError]:
    """What a schema may say of apiVersion, kind and metadata."""
    properties = at.schema.get("properties") or {}
    for name, wanted in (("apiVersion", "string"), ("kind", "string"), ("metadata", "object")):
        part = properties.get(name)
        if isinstance(part, dict) and part.get("type") != wanted:
            yield invalid(f"{at.path}.properties[{name}].type", part.get("type", ""), f"must be {wanted}")
    metadata = properties.get("metadata")
    if isinstance(metadata, dict) and metadata.get("type") == "object" and not _is_open_metadata(metadata):
        text = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield forbidden(f"{at.path}.properties[metadata]", text)


def _is_open_metadata(metadata: JsonObject) -> bool:
    known = (metadata.get("properties") or {}).keys() <= _META_FIELDS
    return known and metadata.keys() <= {"type", "description", "properties"}


def _schema_errors(at: _At, role: str) -> Iterator[FieldError]:
    """Complaints about a schema and all below. `role`: root, field, item or value."""
    schema = at.schema
    yield from _type_errors(at, role)
    for name in _UNSUPPORTED:
        if schema.get(name):
            yield forbidden(f"{at.path}.{name}", f"{name} is not supported")
    yield from _keyword_errors(at)
    yield from _extension_errors(at)
    yield from _list_errors(at)
    yield from _junctor_errors(at)
    yield from _child_errors(at)


def _type_errors(at: _At, role: str) -> Iterator[FieldError]:
    kind, schema = at.schema.get("type"), at.schema
    free = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    names = {"field": "object fields", "item": "array items", "value": "object fields"}
    if not kind:
        if role != "root" and not free:
            yield required(f"{at.path}.type", f"must not be empty for specified {names[role]}")
    elif kind not in _TYPES:
        yield not_supported(f"{at.path}.type", kind, _TYPES)
    if kind == "array":
        if isinstance(schema.get("items"), list):
            yield forbidden(f"{at.path}.items", "items must be a schema object and not an array")
        elif schema.get("items") is None:
            yield required(f"{at.path}.items", "must be specified")


def _keyword_errors(at: _At) -> Iterator[FieldError]:
    schema = at.schema
    if schema.get("uniqueItems"):
        text = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield forbidden(f"{at.path}.uniqueItems", text)
    if schema.get("additionalProperties") not in (None, False) and schema.get("properties"):
        text = "additionalProperties and properties are mutual exclusive"
        yield forbidden(f"{at.path}.additionalProperties", text)
    if isinstance(schema.get("pattern"), str):
        problem = _pattern_problem(schema["pattern"])
        if problem:
            text = f"must be a valid regular expression, but isn't: error parsing regexp: {problem}"
            yield invalid(f"{at.path}.pattern", schema["pattern"], text)


def _pattern_problem(pattern: str) -> str:
    try:
        compile_pattern(pattern)
    except BadPattern as error:
        return str(error)
    return ""


def _extension_errors(at: _At) -> Iterator[FieldError]:
    schema = at.schema
    preserve = schema.get("x-kubernetes-preserve-unknown-fields")
    if preserve is False:
        yield invalid(f"{at.path}.x-kubernetes-preserve-unknown-fields", False, "must be true or undefined")
    if preserve and schema.get("x-kubernetes-int-or-string"):
        text = "must be false if x-kubernetes-int-or-string is true"
        yield invalid(f"{at.path}.x-kubernetes-preserve-unknown-fields", True, text)
    if schema.get("x-kubernetes-embedded-resource"):
        yield from _embedded_errors(at, preserve=bool(preserve))
    map_type = schema.get("x-kubernetes-map-type")
    if map_type:
        if schema.get("type") != "object":
            text = "must be object if x-kubernetes-map-type is specified"
            yield invalid(f"{at.path}.type", schema.get("type", ""), text)
        if map_type not in ("atomic", "granular"):
            yield not_supported(f"{at.path}.x-kubernetes-map-type", map_type, ("atomic", "granular"))


def _embedded_errors(at: _At, *, preserve: bool) -> Iterator[FieldError]:
    if not preserve and not at.schema.get("properties"):
        text = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield required(f"{at.path}.properties", text)
    if at.schema.get("type") != "object":
        text = "must be object if x-kubernetes-embedded-resource is true"
        yield invalid(f"{at.path}.type", at.schema.get("type", ""), text)
    yield from _resource_errors(at)


def _list_errors(at: _At) -> Iterator[FieldError]:
    schema = at.schema
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")
    if keys and list_type != "map":
        at_type = f"{at.path}.x-kubernetes-list-type"
        text = "must be map if x-kubernetes-list-map-keys is non-empty"
        yield invalid(at_type, list_type, text) if list_type else required(at_type, text)
    if not list_type:
        return
    if schema.get("type") != "array":
        text = "must be array if x-kubernetes-list-type is specified"
        yield invalid(f"{at.path}.type", schema.get("type", ""), text)
    elif list_type == "map":
        yield from _list_map_errors(at, keys or [])
    elif list_type == "set":
        yield from _set_errors(at)
    elif list_type != "atomic":
        yield not_supported(f"{at.path}.x-kubernetes-list-type", list_type, ("atomic", "set", "map"))


def _set_errors(at: _At) -> Iterator[FieldError]:
    items = at.schema.get("items")
    if not isinstance(items, dict):
        return
    if items.get("nullable"):
        yield forbidden(f"{at.path}.items.nullable", "cannot be nullable when x-kubernetes-list-type is set")
    if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield invalid(f"{at.path}.items.x-kubernetes-map-type", items.get("x-kubernetes-map-type"), text)
    if items.get("type") == "array" and items.get("x-kubernetes-list-type", "atomic") != "atomic":
        text = "must be atomic as item of a list with x-kubernetes-list-type=set"
        yield invalid(f"{at.path}.items.x-kubernetes-list-type", items["x-kubernetes-list-type"], text)


def _list_map_errors(at: _At, keys: list[str]) -> Iterator[FieldError]:
    at_keys = f"{at.path}.x-kubernetes-list-map-keys"
    items = at.schema.get("items")
    if not keys:
        yield required(at_keys, "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        return
    if items.get("type") != "object":
        text = "must be object if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{at.path}.items.type", items.get("type", ""), text)
        return
    if len(set(keys)) != len(keys):
        yield invalid(at_keys, keys, "must not contain duplicate entries")
    properties = items.get("properties") or {}
    if any(key not in properties for key in keys):
        yield invalid(at_keys, keys, "entries must all be names of item properties")
    for key in dict.fromkeys(keys):
        if isinstance(properties.get(key), dict):
            yield from _map_key_errors(f"{at.path}.items", items, key)


def _map_key_errors(path: str, items: JsonObject, key: str) -> Iterator[FieldError]:
    schema = items["properties"][key]
    if schema.get("type") in ("object", "array"):
        text = "must be a scalar type if parent array's x-kubernetes-list-type is map"
        yield invalid(f"{path}.properties[{key}].type", schema["type"], text)
    if schema.get("default") is None and key not in (items.get("required") or ()):
        text = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
        yield required(f"{path}.properties[{key}].default", text)


def _junctors(at: _At) -> Iterator[_At]:
    for name in ("allOf", "anyOf", "oneOf"):
        for place, part in enumerate(at.schema.get(name) or ()):
            yield at.child(part, f"{name}[{place}]")
    if isinstance(at.schema.get("not"), dict):
        yield at.child(at.schema["not"], "not")


def _junctor_errors(at: _At) -> Iterator[FieldError]:
    schema = at.schema
    if schema.get("x-kubernetes-int-or-string"):
        alternatives = schema.get("anyOf") == _INT_OR_STRING
        wrapped = (schema.get("allOf") or [{}])[0].get("anyOf") == _INT_OR_STRING
        if alternatives:
            schema = {key: value for key, value in schema.items() if key != "anyOf"}
        elif wrapped:
            schema = {**schema, "allOf": [{}, *schema["allOf"][1:]]}
    for part in _junctors(_At(schema, at.path)):
        yield from _inside_errors(part)


def _inside_errors(at: _At) -> Iterator[FieldError]:
    """A schema inside allOf, anyOf, oneOf or not restricts values; it declares nothing."""
    for name, text in _NOT_IN_JUNCTOR:
        if at.schema.get(name):
            yield forbidden(f"{at.path}.{name}", text)
    for name, part in (at.schema.get("properties") or {}).items():
        yield from _inside_errors(at.child(part, f"properties[{name}]"))
    if isinstance(at.schema.get("items"), dict):
        yield from _inside_errors(at.child(at.schema["items"], "items"))
    for inner in _junctors(at):
        yield from _inside_errors(inner)


def _child_errors(at: _At) -> Iterator[FieldError]:
    for name, part in (at.schema.get("properties") or {}).items():
        if name == "metadata" and (at.schema.get("x-kubernetes-embedded-resource") or at.path.endswith("Schema")):
            continue
        yield from _schema_errors(at.child(part, f"properties[{name}]"), "field")
    if isinstance(at.schema.get("items"), dict):
        yield from _schema_errors(at.child(at.schema["items"], "items"), "item")
    if isinstance(at.schema.get("additionalProperties"), dict):
        yield from _schema_errors(at.child(at.schema["additionalProperties"], "additionalProperties"), "value")
