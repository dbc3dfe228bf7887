"""Protobuf bodies of built-in kinds, as kubectl and client-go send them; answers are JSON, which both accept.

Enters: an envelope (`k8s\\0` + runtime.Unknown). Leaves: the plain object. Field numbers are data/protobuf.json.
Source: Protocol Buffers encoding; API concepts, "Kubernetes Protobuf encoding".
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

from moorage.core import protowire
from moorage.core.meta import JsonObject

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"
_PACKAGES = {
    "v1": "core", "apps/v1": "apps", "batch/v1": "batch", "coordination.k8s.io/v1": "coordination",
    "events.k8s.io/v1": "events", "policy/v1": "policy", "networking.k8s.io/v1": "networking",
    "rbac.authorization.k8s.io/v1": "rbac", "admissionregistration.k8s.io/v1": "admissionregistration",
    "authentication.k8s.io/v1": "authentication", "authorization.k8s.io/v1": "authorization",
    "autoscaling/v1": "autoscaling", "meta.k8s.io/v1": "meta",
}  # fmt: skip
_DEEPEST = 100
Fields = dict[str, tuple[str, str, int]]


@cache
def _messages() -> dict[str, Fields]:
    found: dict[str, Fields] = json.loads((files("moorage.apiserver") / "data/protobuf.json").read_bytes())
    return found


def decode(body: bytes) -> JsonObject:
    """The object of a protobuf body.

    Raises:
        ValueError: no Kubernetes protobuf, or of a kind that has none.
    """
    if not body.startswith(_MAGIC):
        raise ValueError("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    version = kind = ""
    raw = b""
    for number, value in protowire.fields(body[len(_MAGIC) :]):
        if number == 1 and isinstance(value, bytes):
            for inner, text in protowire.fields(value):
                if inner == 1 and isinstance(text, bytes):
                    version = text.decode()
                elif inner == 2 and isinstance(text, bytes):
                    kind = text.decode()
        elif number == 2 and isinstance(value, bytes):
            raw = value
    package = "meta" if kind == "DeleteOptions" else _PACKAGES.get(version, "")
    name = f"{package}.{kind}"
    if name not in _messages():
        raise ValueError(f'no kind "{kind}" is registered for version "{version}"')
    return {"apiVersion": version, "kind": kind, **_message(name, raw, 0)}


def _message(name: str, data: bytes, depth: int) -> JsonObject:
    if depth > _DEEPEST:
        raise ValueError("exceeded max depth")
    known = _messages()[name]
    made: JsonObject = {}
    for number, raw in protowire.fields(data):
        row = known.get(str(number))
        if row is None:
            continue
        json_name, kind, keep = row
        if kind[0] == "[":
            made.setdefault(json_name, []).append(_value(kind[1:], raw, depth))
        elif kind[0] == "{":
            key, value = _pair(kind[1:], raw, depth)
            made.setdefault(json_name, {})[key] = value
        else:
            value = _value(kind, raw, depth)
            if json_name == "":
                made.update(value)
            elif value is not None and (keep or value not in ("", 0, False)):
                made[json_name] = value
    return made


def _pair(kind: str, data: int | bytes, depth: int) -> tuple[str, Any]:
    key: str = ""
    value: Any = {"s": "", "i": 0, "b": False, "B": ""}.get(kind)
    for number, raw in protowire.fields(_bytes(data)):
        if number == 1:
            key = _bytes(raw).decode()
        elif number == 2:
            value = _value(kind, raw, depth)
    return key, value


def _bytes(raw: int | bytes) -> bytes:
    if isinstance(raw, int):
        raise ValueError("proto: wrong wireType for a field of bytes")
    return raw


def _value(kind: str, raw: int | bytes, depth: int) -> Any:
    if kind == "i" or kind == "b":
        if not isinstance(raw, int):
            raise ValueError("proto: wrong wireType for a number")
        return bool(raw) if kind == "b" else _signed(raw)
    data = _bytes(raw)
    if kind == "s":
        return data.decode()
    if kind == "B":
        return base64.b64encode(data).decode()
    if kind.startswith("m:"):
        return _message(kind[2:], data, depth + 1)
    return _special(kind, data)


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


def _special(kind: str, data: bytes) -> Any:
    parts = dict(protowire.fields(data))
    if kind in ("time", "microtime"):
        return _time(parts, kind) if parts else None
    if kind == "intorstring":
        text = parts.get(3, b"")
        return _bytes(text).decode() if parts.get(1, 0) else _signed(int(parts.get(2, 0) or 0))
    if kind == "items":
        return [_bytes(value).decode() for number, value in protowire.fields(data) if number == 1]
    if kind == "duration":
        return f"{_signed(int(parts.get(1, 0) or 0)) / 1e9:g}s"
    text = _bytes(parts.get(1, b""))
    return text.decode() if kind == "quantity" else json.loads(text or b"null")


def _time(parts: dict[int, int | bytes], kind: str) -> str:
    seconds, nanos = (_signed(int(parts.get(number, 0) or 0)) for number in (1, 2))
    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    text = when.strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{nanos // 1000:06d}Z" if kind == "microtime" else f"{text}Z"
