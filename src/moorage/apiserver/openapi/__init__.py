"""OpenAPI documents of what is served: v3 by group and version with hashed URLs, v2 as one.

Enters: served types. Leaves: documents for `kubectl explain`, client-side validation and editors. Must not keep state other than
a cache of what follows from its arguments.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from moorage.apiserver.openapi.components import components
from moorage.apiserver.openapi.paths import NEEDED, paths_of
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

__all__ = ["openapi_v2", "openapi_v3", "openapi_v3_index"]

_INFO = {"title": "Moorage", "version": "v1"}


def openapi_v3_index(types: Sequence[ServedType]) -> JsonObject:
    """The documents that there are: `apis/apps/v1` to its URL, which changes when the document does."""
    places = sorted({_place(served) for served in types})
    return {
        "paths": {
            place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={_hash(tuple(types), place)}"} for place in places
        }
    }


def openapi_v3(types: Sequence[ServedType], group_version: str) -> JsonObject:
    """The document of one group and version.

    Args:
        group_version: as the index names it, `api/v1` or `apis/apps/v1`; `v1` and `apps/v1` are understood, too.

    Raises:
        KeyError: no kind of it is served.
    """
    place = group_version
    if not place.startswith(("api/", "apis/")):
        place = f"apis/{place}" if "/" in place else f"api/{place}"
    return _document(tuple(types), place)


def openapi_v2(types: Sequence[ServedType]) -> JsonObject:
    """One Swagger 2.0 document of all kinds."""
    paths = {path: _v2_item(item) for served in types for path, item in paths_of(served).items()}
    found = components(types, _shared(types), NEEDED)
    return {
        "swagger": "2.0",
        "info": _INFO,
        "paths": dict(sorted(paths.items())),
        "definitions": {name: _v2_schema(schema) for name, schema in found.items()},
        "securityDefinitions": {"BearerToken": {"type": "apiKey", "name": "authorization", "in": "header"}},
        "security": [{"BearerToken": []}],
    }


def _place(served: ServedType) -> str:
    rt = served.resource
    return f"apis/{rt.group}/{rt.version}" if rt.group else f"api/{rt.version}"


def _shared(types: Sequence[ServedType]) -> Mapping[str, JsonObject]:
    return next((served.definitions for served in types if served.definitions), {})


@lru_cache(maxsize=128)
def _document(types: tuple[ServedType, ...], place: str) -> JsonObject:
    mine = [served for served in types if _place(served) == place]
    if not mine:
        raise KeyError(place)
    paths = {path: item for served in mine for path, item in paths_of(served).items()}
    return {
        "openapi": "3.0.0",
        "info": _INFO,
        "paths": dict(sorted(paths.items())),
        "components": {"schemas": components(mine, _shared(types), NEEDED)},
    }


@lru_cache(maxsize=128)
def _hash(types: tuple[ServedType, ...], place: str) -> str:
    text = json.dumps(_document(types, place), sort_keys=True, separators=(",", ":"))
    return hashlib.sha512(text.encode()).hexdigest().upper()


def _v2_schema(value: Any) -> Any:
    """A v3 schema in the words of Swagger 2.0: references without `allOf`, nothing that 2.0 does not know."""
    if isinstance(value, list):
        return [_v2_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("format") == "int-or-string":
        return {"type": "string", "format": "int-or-string"}
    made = {name: _v2_value(name, below) for name, below in value.items() if name not in _NOT_IN_V2}
    parts: list[JsonObject] = value.get("allOf") or []
    if len(parts) == 1 and "$ref" in parts[0]:
        made["$ref"] = parts[0]["$ref"]
    if "$ref" in made:
        made["$ref"] = made["$ref"].replace("#/components/schemas/", "#/definitions/")
    if value.get("nullable") or value.get("x-kubernetes-int-or-string"):
        return {name: below for name, below in made.items() if name not in ("type", "items", "properties", "format")}
    return made


_NOT_IN_V2 = frozenset({"allOf", "oneOf", "anyOf", "not", "nullable", "default", "x-kubernetes-validations"})


def _v2_value(name: str, below: Any) -> Any:
    if name in ("properties", "patternProperties"):
        return {field: _v2_schema(schema) for field, schema in below.items()}
    return _v2_schema(below) if name in ("items", "additionalProperties") else below


def _v2_item(item: JsonObject) -> JsonObject:
    made: JsonObject = {"parameters": [_v2_parameter(one) for one in item["parameters"]]}
    for method, operation in item.items():
        if method != "parameters":
            made[method] = _v2_operation(operation)
    return made


def _v2_parameter(parameter: JsonObject) -> JsonObject:
    return {**{name: value for name, value in parameter.items() if name != "schema"}, **parameter["schema"]}


def _v2_operation(operation: JsonObject) -> JsonObject:
    made = {name: value for name, value in operation.items() if name not in ("requestBody", "responses", "parameters")}
    content = (operation.get("requestBody") or {}).get("content") or {}
    body = (
        [{"name": "body", "in": "body", "schema": _v2_schema(next(iter(content.values()))["schema"])}]
        if content
        else []
    )
    made["parameters"] = body + [_v2_parameter(one) for one in operation["parameters"]]
    made["consumes"], made["produces"] = list(content) or ["*/*"], ["application/json", "application/yaml"]
    made["responses"] = {code: _v2_response(response) for code, response in operation["responses"].items()}
    return made


def _v2_response(response: JsonObject) -> JsonObject:
    content = response.get("content")
    if not content:
        return response
    return {"description": response["description"], "schema": _v2_schema(next(iter(content.values()))["schema"])}
