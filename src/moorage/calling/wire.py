"""JSON as it goes over the wire to other servers, quickly.

Enters: plain values, or bytes. Leaves: bytes, or plain values; what the quick library cannot say exactly, `json` says as before: lone
surrogates, NaN, integers of more than 64 bits that we send, keys that are no text. An integer of more than 64 bits that comes reads as
a float, as API servers themselves read it. Source: RFC 8259; ADR 0002.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

import orjson

_NULL: Final = re.compile(rb"null(?<=[:,\[]null)")
"""A `null` that is a value, or looks like one inside a text."""
_STRICT: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def loads(data: bytes | str) -> Any:
    """The value.

    Raises:
        ValueError: it is not JSON.
    """
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)


def dumps(value: Any, default: Callable[[Any], Any] | None = None) -> bytes:
    """The value without blanks.

    Args:
        default: makes JSON of what is none; None: that is an error.

    Raises:
        TypeError: it holds what is no JSON.
    """
    try:
        data = orjson.dumps(value, default, _STRICT)
    except orjson.JSONEncodeError:
        return _slowly(value, default)
    may_be_none = b"null" in data and (data == b"null" or _NULL.search(data) is not None)
    return _slowly(value, default) if may_be_none else data  # a NaN reads `null` there, which deletes in a merge patch


def _slowly(value: Any, default: Callable[[Any], Any] | None) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=default).encode()
