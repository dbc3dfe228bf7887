"""Where a built-in object does not fit its Go struct, in the words of Go's JSON decoder. Pure.

Asked only when the schema engine has found a wrong type: the first misfit in schema order is told.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, Final

from moorage.apiserver.codec import go_type
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity

_BASE64 = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\n\r")
_SCALARS = {"string": str, "boolean": bool}
_GO_NAMES = {"boolean": "bool", "number": "float64"}


def first_mismatch(
    schema: JsonObject, definitions: Mapping[str, JsonObject], obj: JsonObject, *, restored: bool = False
) -> str:
    """The complaint about the first field that does not fit; empty when Go would take the object.

    Args:
        restored: in the words of the converter that strategic merges go through.
    """
    kind = (schema.get("x-kubernetes-group-version-kind") or [{"kind": obj.get("kind", "")}])[0]["kind"]
    return (_Restore if restored else _Walk)(definitions).visit(schema, obj, kind, "")


_HALF: Final = {"int32": 2**31, "int64": 2**63}


def is_integer(value: Any, form: str = "int64") -> bool:
    """Whether a number from JSON is an integer that Go's type of this name holds."""
    half = _HALF.get(form, 2**63)
    return isinstance(value, int) and not isinstance(value, bool) and -half <= value < half


def go_print(value: Any) -> str:
    """A value as Go's `%v` prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{name}:{go_print(value[name])}' for name in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_print, value))}]"
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)


class _Walk:
    def __init__(self, definitions: Mapping[str, JsonObject]) -> None:
        self._definitions = definitions

    def _resolve(self, schema: JsonObject) -> tuple[JsonObject, str]:
        """The schema behind references, and its short name."""
        name = ""
        while True:
            inner = schema["allOf"][0] if len(schema.get("allOf") or ()) == 1 else schema
            if "$ref" not in inner:
                return inner, name
            full = inner["$ref"].rpartition("/")[2]
            package, _, short = full.rpartition(".")
            name = f"{package.rpartition('.')[2]}.{short}"
            schema = self._definitions[full]

    def visit(self, schema: JsonObject, value: Any, struct: str, path: str) -> str:
        """The first complaint at or below a value."""
        schema, name = self._resolve(schema)
        if value is None or schema.get("x-kubernetes-preserve-unknown-fields"):
            return ""
        special = {"Quantity": _quantity, "Time": _time, "MicroTime": _micro_time}.get(name.rpartition(".")[2])
        if special is not None:
            return special(value)
        kind = schema.get("type")
        if kind == "object":
            return self._object(schema, value, struct, path, name)
        if kind == "array":
            return self._array(schema, value, struct, path)
        return self._scalar(schema, value, struct, path)

    def _object(self, schema: JsonObject, value: Any, struct: str, path: str, name: str) -> str:
        if not isinstance(value, dict):
            return self._wrong(value, struct, path, name or self._go_name(schema))
        inner = name.rpartition(".")[2] or struct
        for key, item in value.items():
            known = (schema.get("properties") or {}).get(key)
            below = schema.get("additionalProperties")
            if known is not None:
                found = self.visit(known, item, inner, f"{path}.{key}" if path else key)
            else:
                found = self.visit(below, item, struct, path) if isinstance(below, dict) else ""
            if found:
                return found
        return ""

    def _array(self, schema: JsonObject, value: Any, struct: str, path: str) -> str:
        if not isinstance(value, list):
            return self._wrong(value, struct, path, self._go_name(schema))
        found = (self.visit(schema["items"], item, struct, path) for item in value)
        return next((why for why in found if why), "")

    def _scalar(self, schema: JsonObject, value: Any, struct: str, path: str) -> str:
        kind, form = schema.get("type"), schema.get("format")
        if form == "int-or-string" or kind is None:
            return ""
        if kind == "string" and form == "byte" and isinstance(value, str):
            return _bytes(value)
        if kind in ("integer", "number"):
            fits = isinstance(value, int | float) and not isinstance(value, bool)
            if fits and kind == "integer" and not is_integer(value, str(form)):
                return f"json: cannot unmarshal number {value} into Go struct field {struct}.{path} of type {form}"
            return "" if fits else self._wrong(value, struct, path, self._go_name(schema))
        return "" if isinstance(value, _SCALARS[kind]) else self._wrong(value, struct, path, self._go_name(schema))

    def _go_name(self, schema: JsonObject) -> str:
        schema, name = self._resolve(schema)
        if name:
            return name
        kind = schema.get("type", "")
        if kind == "array":
            return f"[]{self._go_name(schema['items'])}"
        if kind == "object":
            return (
                f"map[string]{self._go_name(schema['additionalProperties'])}"
                if "additionalProperties" in schema
                else "struct"
            )
        if kind == "integer":
            return str(schema.get("format", "int64"))
        return "[]uint8" if schema.get("format") == "byte" else str(_GO_NAMES.get(kind, kind))

    def _wrong(self, value: Any, struct: str, path: str, want: str) -> str:
        return f"json: cannot unmarshal {go_type(value)} into Go struct field {struct}.{path} of type {want}"


class _Restore(_Walk):
    def _wrong(self, value: Any, struct: str, path: str, want: str) -> str:  # noqa: ARG002 - the base's signature
        given = {bool: "bool", int: "int64", float: "float64", str: "string", list: "slice", dict: "map"}[type(value)]
        if want.startswith("[]"):
            return f"cannot restore slice from {given}"
        if want.startswith("map["):
            return f"cannot restore map from {given}"
        if want == "struct" or "." in want:
            return f"cannot restore struct from: {given}"
        return f"unrecognized type: {want}"


def _bytes(text: str) -> str:
    at = next((at for at, sign in enumerate(text) if sign not in _BASE64), -1)
    if at >= 0:
        return f"illegal base64 data at input byte {at}"
    try:
        base64.b64decode(text, validate=False)
    except binascii.Error:
        return f"illegal base64 data at input byte {len(text) - len(text) % 4}"
    return ""


def _quantity(value: Any) -> str:
    try:
        parse_quantity(value if isinstance(value, str | int | float) else "")
    except ValueError as error:
        return str(error)
    return ""


def _time(value: Any) -> str:
    if not isinstance(value, str):
        return f"json: cannot unmarshal {go_type(value)} into Go value of type string"
    from datetime import datetime

    try:
        datetime.fromisoformat(value)
    except ValueError:
        return f'parsing time "{value}" as "2006-01-02T15:04:05Z07:00": cannot parse "{value}" as "2006"'
    return ""


_MICRO, _SECONDS = "2006-01-02T15:04:05.000000Z07:00", re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")


def _micro_time(value: Any) -> str:
    if not isinstance(value, str):
        return _time(value)
    head = _SECONDS.match(value)
    if head is None:
        return f'parsing time "{value}" as "{_MICRO}": cannot parse "{value}" as "2006"'
    if not re.match(r"\.\d{6}", value[head.end() :]):
        return f'parsing time "{value}" as "{_MICRO}": cannot parse "{value[head.end() :]}" as ".000000"'
    return _time(value)
