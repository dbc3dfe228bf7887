"""From typed declarations to CustomResourceDefinitions.

Enters: a Resource class. Leaves: plain dicts in the order of the declaration, the same on each run. It knows no kind.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, Final, get_args, get_origin

from moorage.core.meta import JsonObject

from .declared import Field
from .model import Marks, Model, Resource

_SCALARS: Final[Mapping[Any, JsonObject]] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bytes: {"type": "string", "format": "byte"},
}
_KIND_DOC: Final = "The kind of this resource, in CamelCase."
_VERSION_DOC: Final = "Group and version of this representation."


def schema_of(model: type[Model]) -> JsonObject:
    """The structural schema of one declared structure.

    Raises:
        TypeError: an annotation has no OpenAPI form.
    """
    properties: JsonObject = {}
    required: list[str] = []
    for info in model.model_fields.values():
        properties[info.alias] = _field_schema(info)
        if info.is_required:
            required.append(info.alias)
    return _object(model, properties, required)


def resource_schema(model: type[Resource]) -> JsonObject:
    """The schema of a whole kind: apiVersion, kind and metadata as Kubernetes wants them, spec and status as declared."""
    properties: JsonObject = {
        "apiVersion": {"type": "string", "description": _VERSION_DOC},
        "kind": {"type": "string", "description": _KIND_DOC},
        "metadata": {"type": "object"},
    }
    required = []
    for info in model.model_fields.values():
        wire_name = info.alias
        if wire_name in properties:
            continue
        properties[wire_name] = _field_schema(info)
        if info.is_required and wire_name != "status":
            required.append(wire_name)
        if wire_name == "status":
            properties[wire_name].pop("default", None)
    return _object(model, properties, required)


def _object(model: type[Model], properties: JsonObject, required: Sequence[str]) -> JsonObject:
    schema: JsonObject = {"type": "object"}
    if model.__doc__ and "__doc__" in vars(model):
        schema["description"] = _clean(model.__doc__)
    if properties:
        schema["properties"] = properties
    if required:
        schema["required"] = list(required)
    if model.rules:
        schema["x-kubernetes-validations"] = [rule.to_wire() for rule in model.rules]
    return schema


def _clean(text: str) -> str:
    return " ".join(text.split())


def _marks(info: Field) -> Marks:
    return info.extra if isinstance(info.extra, Marks) else Marks()


def _field_schema(info: Field) -> JsonObject:
    marks = _marks(info)
    schema = _annotation_schema(info.annotation)
    rules = schema.pop("x-kubernetes-validations", [])
    if info.description:
        schema["description"] = _clean(info.description)
    for name, value in marks.bounds:
        schema[name] = value
    rules = [*rules, *(rule.to_wire() for rule in marks.rules)]
    if rules:
        schema["x-kubernetes-validations"] = rules
    if marks.default_in_schema and not info.is_required and (default := _default(info)) is not None:
        schema["default"] = default
    if marks.example is not None:
        schema["example"] = marks.example
    return schema


def _default(info: Field) -> Any:
    return _plain(info.any_default())


def _plain(value: Any) -> Any:
    if isinstance(value, Model):
        return value.to_wire()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value


def _annotation_schema(annotation: Any) -> JsonObject:
    if get_origin(annotation) is typing.Annotated:
        return _item_schema(*get_args(annotation))
    annotation = _unwrap(annotation)
    if annotation in _SCALARS:
        return dict(_SCALARS[annotation])
    if isinstance(annotation, type) and issubclass(annotation, Model):
        return schema_of(annotation)
    if annotation == int | str:
        return {"x-kubernetes-int-or-string": True}
    if annotation is Any:
        return {"x-kubernetes-preserve-unknown-fields": True}
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is typing.Literal:
        return {"type": "string", "enum": list(args)}
    if origin in (list, tuple, frozenset):
        return {"type": "array", "items": _annotation_schema(args[0])}
    if origin is dict:
        return _map_schema(args[1])
    raise TypeError(f"{annotation!r} has no form in a CRD")


def _item_schema(annotation: Any, *marks: Any) -> JsonObject:
    """An item of a list or map with bounds of its own: `tuple[Annotated[str, field(doc=..., pattern=...)], ...]`."""
    schema = _annotation_schema(annotation)
    for info in marks:
        if isinstance(info, Field):
            schema.update(_marks(info).bounds)
    return schema


def _map_schema(values: Any) -> JsonObject:
    if values is Any:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _annotation_schema(values)}


def _unwrap(annotation: Any) -> Any:
    """The annotation without Optional, Annotated and type aliases; int | str becomes the marker of int-or-string."""
    origin = get_origin(annotation)
    if origin is typing.Annotated:
        return _unwrap(get_args(annotation)[0])
    if origin in (typing.Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _unwrap(members[0])
        return typing.Union[tuple(members)]  # noqa: UP007 - the members are known at run time only
    return annotation
