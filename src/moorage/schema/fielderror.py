"""Errors about one field, worded as kube-apiserver words them.

Enters: a field path, a kind of complaint, the offending value. Leaves: one frozen value with its message and its wire
cause. It must not know schemas. Source: apimachinery `field.Error`, recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Set
from decimal import Decimal
from enum import Enum
from typing import Any, Final, NamedTuple

from moorage.core.meta import JsonObject


class ErrorType(Enum):
    """Kind of complaint: the value is the wire reason, `text` is how it reads."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    NOT_SUPPORTED = "FieldValueNotSupported"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"

    @property
    def text(self) -> str:
        return _TEXT[self]


_TEXT: Final = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.TYPE_INVALID: "Invalid value",
    ErrorType.INTERNAL: "Internal error",
}
_BARE: Final = frozenset(
    {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL},
)


class _NoValue(Enum):
    NO_VALUE = "no value"


NO_VALUE: Final = _NoValue.NO_VALUE
"""Stands for "the message shows no value"; None is the JSON null."""

NO_PATH: Final = "<nil>"
"""How Kubernetes prints the path of a complaint about the object as a whole."""


class Verbatim(str):
    """A value that messages show as it is, without quotes."""

    __slots__ = ()


def format_value(value: Any) -> str:
    """The value as a message shows it: quoted text, plain numbers and booleans, JSON for the rest."""
    if isinstance(value, Verbatim):
        return str(value)
    if isinstance(value, str):
        return _quote(value)
    if isinstance(value, float) and not isinstance(value, bool):
        return _float(value)
    return go_json(value, sort_keys=True)


def go_json(value: Any, *, sort_keys: bool = False) -> str:
    """JSON as Go's encoder writes it: compact, with `<`, `>`, `&` and the line separators escaped."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, sort_keys=sort_keys)
    return text.translate(_HTML)


def _float(value: float) -> str:
    """As Go's `%v`: the shortest digits, an exponent of two digits below 1e-4 and from 1e21 (1e6 when not whole)."""
    text = repr(value)
    exponent = math.floor(math.log10(abs(value))) if value and math.isfinite(value) else 0
    if -5 < exponent < 21:
        whole = value.is_integer()
        return str(int(value)) if whole and exponent < 6 else _scientific(text) if exponent >= 6 else text
    return _scientific(text)


def _scientific(text: str) -> str:
    sign, digits, exponent = Decimal(text).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    power = len(digits) - 1 + int(exponent)
    body = f"{shown[0]}.{shown[1:]}" if len(shown) > 1 else shown
    return f"{'-' if sign else ''}{body}e{'+' if power >= 0 else '-'}{abs(power):02d}"


INDEX: Final = re.compile(r"\[\d+\]")
_HTML: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>&\u2028\u2029"}
_ESCAPES: Final = {
    '"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v",
}  # fmt: skip


def _quote(text: str) -> str:
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(char) or _escape(char) for char in text) + '"'


def _escape(char: str) -> str:
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


class FieldError(NamedTuple):
    """One complaint about one field.

    Args:
        path: dotted path, as in `spec.groups[0].name`; "" is the object as a whole.
        type: kind of complaint.
        detail: the sentence after the value; may be empty.
        value: the offending value, or NO_VALUE.
    """

    path: str
    type: ErrorType
    detail: str = ""
    value: Any = NO_VALUE

    @property
    def body(self) -> str:
        """The message without its path."""
        head = self.type.text
        if self.type not in _BARE and self.value is not NO_VALUE:
            head = f"{head}: {format_value(self.value)}"
        return f"{head}: {self.detail}" if self.detail else head

    @property
    def message(self) -> str:
        """The whole message, such as `spec.a: Invalid value: "x": detail`."""
        return f"{self.path or NO_PATH}: {self.body}"

    @property
    def place(self) -> str:
        """The path without the places in lists."""
        return INDEX.sub("[]", self.path)

    @property
    def identity(self) -> tuple[str, str, str]:
        """What makes complaints about two forms of an object the same, wherever in a list they stand."""
        return self.place, self.type.value, self.body

    def cause(self) -> JsonObject:
        """The entry of `details.causes` of an APIStatus."""
        return {"reason": self.type.value, "message": self.body, "field": self.path or NO_PATH}


def required(path: str, detail: str = "") -> FieldError:
    """A value is missing."""
    return FieldError(path, ErrorType.REQUIRED, detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """A value breaks a rule."""
    return FieldError(path, ErrorType.INVALID, detail, value)


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    """A value has another JSON type than its schema says."""
    return FieldError(path, ErrorType.TYPE_INVALID, detail, value)


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    """A value stands twice where it may stand once."""
    return FieldError(path, ErrorType.DUPLICATE, detail, value)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """A referenced thing does not exist."""
    return FieldError(path, ErrorType.NOT_FOUND, detail, value)


def forbidden(path: str, detail: str) -> FieldError:
    """The field may not be set, or not be changed, here."""
    return FieldError(path, ErrorType.FORBIDDEN, detail)


def internal(path: str, detail: str) -> FieldError:
    """The check itself failed."""
    return FieldError(path, ErrorType.INTERNAL, detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value is none of the supported ones, which are shown in the given order (a set: sorted)."""
    ordered = sorted(supported) if isinstance(supported, Set) else supported
    listed = ", ".join(_quote(item) for item in ordered)
    return FieldError(path, ErrorType.NOT_SUPPORTED, f"supported values: {listed}" if listed else "", value)


def too_long(path: str, value: Any, limit: int) -> FieldError:
    """A text has more than `limit` bytes; a negative limit is unknown."""
    detail = f"may not be more than {limit} byte{'' if limit == 1 else 's'}" if limit >= 0 else "value is too long"
    return FieldError(path, ErrorType.TOO_LONG, detail, value)


def too_many(path: str, actual: int, limit: int) -> FieldError:
    """A list or map has more than `limit` entries."""
    detail = f"must have at most {limit} item{'' if limit == 1 else 's'}" if limit >= 0 else "has too many items"
    return FieldError(path, ErrorType.TOO_MANY, detail, actual if actual >= 0 else f"must have at most {limit} items")
