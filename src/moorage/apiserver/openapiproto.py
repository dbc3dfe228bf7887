"""The OpenAPI v2 document in protobuf, the only form in which kubectl fetches it (to check `kind: List` manifests).

Enters: the Swagger document. Leaves: the definitions as bytes of openapi.v2.Document; paths are left out, kubectl reads them
from v3. Source: the field numbers of gnostic's openapiv2.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from moorage.core.meta import JsonObject

ASKED = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The answer names no `@`: clients could not read it."""
_TEXTS = {"$ref": 1, "format": 2, "description": 4}


def encode_document(document: JsonObject) -> bytes:
    """The bytes of a document."""
    info = _text(1, document["info"]["title"]) + _text(2, document["info"]["version"])
    definitions = b"".join(_named(1, name, _schema(schema)) for name, schema in document["definitions"].items())
    return _text(1, "2.0") + _bytes(2, info) + _bytes(8, b"") + _bytes(9, definitions)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _bytes(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def _text(number: int, text: str) -> bytes:
    return _bytes(number, text.encode())


def _named(number: int, name: str, value: bytes) -> bytes:
    return _bytes(number, _text(1, name) + _bytes(2, value))


def _schema(schema: Mapping[str, Any]) -> bytes:
    out = b"".join(_text(number, schema[name]) for name, number in _TEXTS.items() if name in schema)
    out += b"".join(_text(19, name) for name in schema.get("required") or ())
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        out += _bytes(21, _bytes(1, _schema(extra)))
    elif isinstance(extra, bool):
        out += _bytes(21, _varint(2 << 3) + _varint(int(extra)))
    if "type" in schema:
        out += _bytes(22, _text(1, schema["type"]))
    if "items" in schema:
        out += _bytes(23, _bytes(1, _schema(schema["items"])))
    if "properties" in schema:
        rows = b"".join(_named(1, name, _schema(item)) for name, item in schema["properties"].items())
        out += _bytes(25, rows)
    for name, value in schema.items():
        if name.startswith("x-"):
            out += _named(31, name, _text(2, json.dumps(value)))
    return out
