"""String formats as kube-apiserver knows them; a format that it does not know restricts nothing.

Enters: a format name and text. Leaves: whether the text has the format. Source: recorded from kube-apiserver 1.36.3.
"""

from __future__ import annotations

import ipaddress
import re
import unicodedata
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Final
from urllib.parse import urlsplit

from moorage.core.quantity import parse_quantity

_MICRO_TIME: Final = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)"
_DATE_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|[+-](\d\d):(\d\d))", re.ASCII
)
_DURATION: Final = re.compile(r"[+-]?(?:0|(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+)", re.ASCII)
_AMOUNT: Final = re.compile(
    r"\d+\s*(?:ns|nanos?|nanoseconds?|us|µs|micros?|microseconds?|ms|millis?|milliseconds?|s|secs?|seconds?"
    r"|m|mins?|minutes?|h|hrs?|hours?|d|days?|w|wks?|weeks?)(?![a-z])"
)
_BASE64: Final = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})")
_HOST: Final = re.compile(r"[^\W_](?:-?[^\W_]{0,62})?|(?:[^\W_](?:(?:[^\W_]|-){0,61}[^\W_])?\.)+[^\W\d_]{2,63}")
_HOST_PORT: Final = re.compile(r"(?:.*@)?(?:\[[^\]]*\]|[^:]*)(?::\d*)?")
_LEADING_ZERO: Final = re.compile(r"(?<!\d)0+(\d)")
_OBJECT_ID: Final = re.compile(r"[0-9a-fA-F]{24}")
_EMAIL: Final = re.compile(r"[^@\s<>()\[\],;:\\\"]+@[^@\s<>()\[\],;:\\\"]+", re.ASCII)
_UUID: Final = {
    "uuid": r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}",
    "uuid3": r"[0-9a-f]{8}-?[0-9a-f]{4}-?3[0-9a-f]{3}-?[0-9a-f]{4}-?[0-9a-f]{12}",
    "uuid4": r"[0-9a-f]{8}-?[0-9a-f]{4}-?4[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}",
    "uuid5": r"[0-9a-f]{8}-?[0-9a-f]{4}-?5[0-9a-f]{3}-?[89ab][0-9a-f]{3}-?[0-9a-f]{12}",
}
_HEX_COLOR: Final = re.compile(r"#?(?:[0-9a-fA-F]{3}|[0-9a-fA-F]{6})")
_RGB_COLOR: Final = re.compile(r"rgb\(\s*(?:\d{1,3}%?\s*,\s*){2}\d{1,3}%?\s*\)")
_MAC: Final = re.compile(
    r"(?:[0-9a-fA-F]{2}[:-]){5}(?:(?:[0-9a-fA-F]{2}[:-]){2})?[0-9a-fA-F]{2}|(?:[0-9a-fA-F]{4}\.){2,3}[0-9a-fA-F]{4}"
)
_SSN: Final = re.compile(r"\d{3}[- ]?\d{2}[- ]?\d{4}", re.ASCII)
_ISBN: Final = re.compile(r"[\d -]{9,}[\dXx]", re.ASCII)
_CARD: Final = re.compile(r"[\d -]{13,23}", re.ASCII)
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONG_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def is_date_time(text: str) -> bool:
    """RFC 3339 date and time."""
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return False
    year, month, day, hour, minute, second = (int(found[group]) for group in range(1, 7))
    try:
        datetime(year or 1, month, day, hour, minute, min(second, 59))  # noqa: DTZ001 - only the calendar is checked
    except ValueError:
        return False
    return second < 60


def is_date(text: str) -> bool:
    """RFC 3339 full date."""
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return len(text) == 10 and text[4] == "-"


def is_byte(text: str) -> bool:
    """Base64 with padding, not empty."""
    return _BASE64.fullmatch(text) is not None


def is_duration(text: str) -> bool:
    """A Go duration, or a text that holds an amount and a unit, such as `2 days`."""
    return bool(_DURATION.fullmatch(text)) or bool(_AMOUNT.search(text.lower()))


def is_uri(text: str) -> bool:
    """What Go's ParseRequestURI takes: an absolute URI or an absolute path."""
    if not text or any(ord(char) <= 0x20 or ord(char) == 0x7F for char in text):
        return False
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return (
        text == "*" or text.startswith("/") or (bool(parts.scheme) and _HOST_PORT.fullmatch(parts.netloc) is not None)
    )


def is_hostname(text: str) -> bool:
    """One label, or labels that end in a top-level domain of letters; symbols count as letters."""
    text = "".join("a" if unicodedata.category(char)[0] == "S" else char for char in text)
    return _HOST.fullmatch(text) is not None and all(len(label) <= 63 for label in text.split("."))


def is_ipv4(text: str) -> bool:
    """A dotted address."""
    return _is_address(text) and ":" not in text


def is_ipv6(text: str) -> bool:
    """An address with colons."""
    return _is_address(text) and ":" in text


def _is_address(text: str) -> bool:
    """Leading zeros in the parts of an IPv4 address are let through, as kube-apiserver does."""
    try:
        ipaddress.ip_address(text if ":" in text else _LEADING_ZERO.sub(r"\1", text))
    except ValueError:
        return False
    return "%" not in text


def is_cidr(text: str) -> bool:
    """An address with a prefix length."""
    address, slash, length = text.partition("/")
    if not slash or not length.isdecimal() or not _is_address(address):
        return False
    return int(length) <= (128 if ":" in address else 32) and (length == "0" or not length.startswith("0"))


def _is_email(text: str) -> bool:
    found = re.fullmatch(r"[^<>]*<([^<>]+)>", text)
    return bool(_EMAIL.fullmatch(found[1] if found else text))


def _matches(form: re.Pattern[str] | str, flags: int = 0) -> Callable[[str], bool]:
    compiled = re.compile(form, flags) if isinstance(form, str) else form
    return lambda text: compiled.fullmatch(text) is not None


def _is_rgb(text: str) -> bool:
    return _RGB_COLOR.fullmatch(text) is not None and all(int(part) <= 255 for part in re.findall(r"\d+", text))


def _short_name(text: str) -> bool:
    return len(text) <= 63 and _LABEL.fullmatch(text) is not None


def _long_name(text: str) -> bool:
    return len(text) <= 253 and _LONG_NAME.fullmatch(text) is not None


QUANTITY: Final = "io.k8s.Quantity"
MICRO_TIME: Final = "io.k8s.MicroTime"
"""Names of formats that only built-in types have; no schema of a user can ask for them by accident."""


def is_quantity(text: str) -> bool:
    """An amount such as `100m` or `1Gi`."""
    try:
        parse_quantity(text)
    except ValueError:
        return False
    return True


FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "date-time": is_date_time, "datetime": is_date_time, "date": is_date, "byte": is_byte,
    "duration": is_duration, "uri": is_uri, "hostname": is_hostname, "email": _is_email,
    "ipv4": is_ipv4, "ipv6": is_ipv6, "cidr": is_cidr, "mac": _matches(_MAC),
    **{name: _matches(form, re.IGNORECASE) for name, form in _UUID.items()},
    "hexcolor": _matches(_HEX_COLOR), "rgbcolor": _is_rgb, "ssn": _matches(_SSN),
    "isbn": _matches(_ISBN), "isbn10": _matches(_ISBN), "isbn13": _matches(_ISBN), "creditcard": _matches(_CARD),
    "bsonobjectid": _matches(_OBJECT_ID),
    "k8s-short-name": _short_name, "k8s-long-name": _long_name,
    QUANTITY: is_quantity, MICRO_TIME: _matches(_MICRO_TIME),
}  # fmt: skip
"""Formats of strings by name; other names restrict nothing."""

INTEGER_RANGES: Final[Mapping[str, tuple[int, int]]] = {
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "uint32": (0, 2**32 - 1),
    "uint64": (0, 2**64 - 1),
}
"""Smallest and largest value of the integer formats."""

CHECKED_FORMATS: Final = FORMATS.keys() | INTEGER_RANGES.keys() | {"float"}
"""Formats that restrict a value."""
