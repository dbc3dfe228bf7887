"""Bodies in, media types out.

Enters: header texts and body bytes (JSON or YAML). Leaves: plain objects with the duplicate keys that were found, and
the form that a client accepts. It must not know kinds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from moorage.apiserver import protobuf
from moorage.apiserver.errors import bad_request, no_such_form, not_acceptable, unsupported_media_type
from moorage.apiserver.hub import encode
from moorage.core.meta import JsonObject

MEDIA_TYPES = ("application/json", "application/yaml", "application/vnd.kubernetes.protobuf")
READABLE = ("application/json", "application/yaml")


class Duplicates:
    """Remembers which parsed dictionaries repeated a key, so that paths can be named afterwards; YAML names lines (`told`)."""

    def __init__(self) -> None:
        self.found: dict[int, list[str]] = {}
        self.told: list[str] = []

    def hook(self, pairs: list[tuple[str, Any]]) -> JsonObject:
        """For `json.loads(object_pairs_hook=...)`: the last value of a repeated key counts."""
        made = dict(pairs)
        if len(made) != len(pairs):
            names = [name for name, _ in pairs]
            self.found[id(made)] = [name for name in made if names.count(name) > 1]
        return made

    def problems(self, value: Any) -> list[str]:
        """A sentence for each repeated key of a whole document."""
        return [*self.told, *(f'duplicate field "{path}"' for path in self.paths(value))]

    def paths(self, value: Any, path: str = "") -> list[str]:
        """Dotted paths of the repeated keys below `value`."""
        if not self.found:
            return []
        if isinstance(value, list):
            return [found for at, item in enumerate(value) for found in self.paths(item, f"{path}[{at}]")]
        if not isinstance(value, dict):
            return []
        prefix = f"{path}." if path else ""
        here = [f"{prefix}{name}" for name in self.found.get(id(value), ())]
        return here + [found for name, item in value.items() for found in self.paths(item, prefix + name)]


def _refuse_constant(text: str) -> None:
    raise ValueError(f"invalid character {text[0]!r} looking for beginning of value")


def _number(text: str) -> float | int:
    """A number with a fraction or exponent; whole ones are kept as Go prints them, without the point."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


_SURROGATE = re.compile(r"\\(?:\\|u[dD][89abAB]..\\u[dD][c-fC-F]..|u[dD][89a-fA-F]..)")


def _paired(found: re.Match[str]) -> str:
    """Halves of characters that stand alone become U+FFFD, as Go decodes them."""
    return "\\ufffd" if len(found[0]) == 6 else found[0]


def parse_json(body: bytes, seen: Duplicates | None = None) -> Any:
    """JSON of a body.

    Raises:
        ValueError: no JSON.
    """
    try:
        text = body.decode("utf-8-sig")
        if "\\ud" in text or "\\uD" in text:
            text = _SURROGATE.sub(_paired, text)
        hook = seen.hook if seen else None
        return json.loads(text, object_pairs_hook=hook, parse_constant=_refuse_constant, parse_float=_number)
    except RecursionError as error:
        raise ValueError("exceeded max depth") from error


def decode(body: bytes, content_type: str, what: str, *, binary: bool = True) -> tuple[JsonObject, list[str]]:
    """The object of a body and a sentence for each repeated key.

    Args:
        what: the kind that is expected, for messages.
        binary: whether protobuf is read; custom resources have none.

    Raises:
        StatusError: 415 for a media type that is not read, 400 for a body that is no object.
    """
    media = content_type.partition(";")[0].strip().lower() or "application/json"
    if media not in MEDIA_TYPES or (media == protobuf.MEDIA_TYPE and not binary):
        raise unsupported_media_type(MEDIA_TYPES if binary else READABLE)
    seen = Duplicates()
    try:
        found = _PARSERS[media](body, seen)
    except ValueError as error:
        raise bad_request(_unrecognized(what, _go_words(error), body)) from error
    if found is None:
        found = {}
    if binary and isinstance(found, dict) and str(found.get("apiVersion", "")).count("/") > 1:
        why = f"unexpected GroupVersion string: {found['apiVersion']}"
        raise bad_request(_unrecognized(what, why, body))
    if not isinstance(found, dict):
        why = f"couldn't get version/kind; json parse error: json: cannot unmarshal {go_type(found)} into Go value of type "
        raise bad_request(_unrecognized(what, why + _TYPE_META, body))
    return found, seen.problems(found)


_TYPE_META = r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
_SHOWN = 30


def _unrecognized(what: str, why: str, body: bytes) -> str:
    cut = body[:_SHOWN]
    shown = "<empty>" if not body else cut.decode("utf-8", "replace") if body[:1] == b"{" else cut.hex()
    return f"the object provided is unrecognized (must be of type {what}): {why} ({shown}{' ...' if len(body) > _SHOWN else ''})"


def _go_words(error: ValueError) -> str:
    """A parse error as Go's decoders word it."""
    if not isinstance(error, json.JSONDecodeError):
        return (
            f"couldn't get version/kind; json parse error: {error}"
            if isinstance(error, UnicodeDecodeError)
            else str(error)
        )
    return f"couldn't get version/kind; json parse error: {go_json_error(error)}"


def go_json_error(error: ValueError) -> str:
    """A JSON error as Go words it: where the text ends too early, or by the character that does not fit."""
    if not isinstance(error, json.JSONDecodeError):
        return str(error)
    rest = error.doc[error.pos :].lstrip()
    if not rest or error.msg.startswith("Unterminated string"):
        return "unexpected end of JSON input"
    where = "looking for beginning of value"
    if "property name" in error.msg:
        where = "looking for beginning of object key string"
    elif "delimiter" in error.msg:
        where = "after object key:value pair" if "," in error.msg else "after object key"
    elif "Extra data" in error.msg:
        where = "after top-level value"
    sign = rest[0] if rest[0].isprintable() else f"\\u{ord(rest[0]):04x}"
    return f"invalid character '{sign}' {where}"


def go_type(value: Any) -> str:
    """How Go's JSON decoder names the type of a value."""
    names = {bool: "bool", int: "number", float: "number", str: "string", list: "array", dict: "object"}
    return names.get(type(value), "null")


def _parse_yaml(body: bytes, seen: Duplicates) -> Any:
    from moorage.core import yamljson
    from moorage.core.yamltext import Unreadable, load

    if (sent := yamljson.plain(body)) is not None:  # most who apply are programs, whose YAML is JSON
        return sent
    try:
        return load(body, seen.told)
    except Unreadable as error:
        line = f"line {error.line}: " if error.line else ""
        raise ValueError(f"yaml: {line}{error.why}") from error


def _parse_protobuf(body: bytes, _: Duplicates) -> Any:
    return protobuf.decode(body)


_PARSERS = {"application/json": parse_json, "application/yaml": _parse_yaml, protobuf.MEDIA_TYPE: _parse_protobuf}


@dataclass(frozen=True, slots=True)
class Form:
    """The form in which a client wants objects; `listed`: PartialObjectMetadataList, which only fits a list."""

    shape: Literal["object", "table", "partial"] = "object"
    version: str = "v1"
    media: str = "application/json"
    pretty: bool = False
    listed: bool = False

    def encode(self, value: JsonObject) -> bytes:
        """The body of an answer in this form."""
        if self.media == "application/yaml":
            import yaml

            dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
            return yaml.dump(value, Dumper=dumper, sort_keys=True, allow_unicode=True).encode()
        if self.pretty:
            return json.dumps(value, indent=2, ensure_ascii=False).encode()
        return encode(value)


_JSON = Form()
_SHAPES: dict[str, Literal["table", "partial"]] = {
    "Table": "table",
    "PartialObjectMetadata": "partial",
    "PartialObjectMetadataList": "partial",
}


def negotiate(headers: Mapping[str, str], query: Mapping[str, str]) -> Form:
    """The first acceptable form of the Accept header.

    Raises:
        StatusError: 406, nothing that is asked for can be given.
    """
    accept = headers.get("accept", "")
    if accept in ("", "*/*", "application/json") and "pretty" not in query:
        return _JSON
    pretty, readable = query.get("pretty", "") in ("true", "1"), False
    for clause in (accept or "*/*").split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        media = {"*/*": READABLE[0], "application/*": READABLE[0], "text/yaml": ""}.get(media, media)
        if media not in READABLE:
            continue
        readable = True
        asked = dict(part.split("=", 1) for part in parameters if "=" in part)
        if "as" not in asked:
            return Form("object", "v1", media, pretty)
        known = _SHAPES.get(asked["as"])
        if known and asked.get("g") == "meta.k8s.io" and asked.get("v") in ("v1", "v1beta1"):
            return Form(known, asked["v"], media, pretty, asked["as"].endswith("List"))
    raise no_such_form(MEDIA_TYPES) if readable else not_acceptable(MEDIA_TYPES)


def quoted_warnings(warnings: Sequence[str]) -> list[tuple[str, str]]:
    """Warning headers (RFC 7234) of the given texts, each once."""
    found = []
    for text in dict.fromkeys(warnings):
        clean = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
        found.append(("Warning", f'299 - "{clean}"'))
    return found
