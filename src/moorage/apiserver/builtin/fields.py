"""The small rules that many kinds share, each giving complaints about one field.

Enters: a path and a value. Leaves: FieldErrors in kube-apiserver's words. Must not know kinds.
"""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.core.quantity import parse_quantity
from moorage.core.selectors import from_wire
from moorage.schema import ErrorType, FieldError, duplicate, forbidden, invalid, not_found, required

Errors: TypeAlias = Iterator[FieldError]

_PERCENT = re.compile(r"[0-9]+%")
_PORT_NAME = re.compile(r"[-a-z0-9]*")
PROTOCOLS = ("SCTP", "TCP", "UDP")
IMMUTABLE = "field is immutable"


def non_negative(path: str, value: Any) -> Errors:
    """A number that may be absent and must not be below zero."""
    if isinstance(value, int) and value < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def non_negatives(obj: Mapping[str, Any], path: str, *fields: str) -> Errors:
    """The same for several fields of one object."""
    for name in fields:
        yield from non_negative(f"{path}.{name}", obj.get(name))


def one_of(path: str, value: Any, *supported: str) -> Errors:
    """A value that is one of these, listed in this order."""
    if value not in supported:
        listed = ", ".join(json.dumps(item) for item in supported)
        yield FieldError(path, ErrorType.NOT_SUPPORTED, f"supported values: {listed}", value)


def complaints(path: str, value: str, found: Iterable[str]) -> Errors:
    """An `Invalid value` for each complaint about a text."""
    for text in found:
        yield invalid(path, value, text)


def named(path: str, value: Any) -> Errors:
    """A required text that is not restricted further."""
    if not value:
        yield required(path)


def own_label(path: str, name: str, taken: set[str]) -> Errors:
    """A required RFC 1123 label that nothing else of the list has; `taken` collects them."""
    if not name:
        yield required(path)
    elif wrong := names.dns1123_label(name):
        yield from complaints(path, name, wrong)
    elif name in taken:
        yield duplicate(path, name)
    taken.add(name)


def port(path: str, value: Any) -> Errors:
    """A port number."""
    if not isinstance(value, int) or not 1 <= value <= 65535:
        yield invalid(path, value, "must be between 1 and 65535, inclusive")


def port_name(path: str, value: str) -> Errors:
    """The IANA form of a port's name."""
    if len(value) > 15:
        yield invalid(path, value, "must be no more than 15 characters")
    if not _PORT_NAME.fullmatch(value):
        yield invalid(path, value, "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not re.search("[a-z]", value):
        yield invalid(path, value, "must contain at least one letter (a-z)")
    if "--" in value:
        yield invalid(path, value, "must not contain consecutive hyphens")
    if value.startswith("-") or value.endswith("-"):
        yield invalid(path, value, "must not begin or end with a hyphen")


def port_or_name(path: str, value: Any) -> Errors:
    """A port number or a port's name."""
    yield from port_name(path, value) if isinstance(value, str) else port(path, value)


def labels(path: str, values: Mapping[str, str] | None) -> Errors:
    """Keys and values of labels."""
    for key, value in (values or {}).items():
        yield from complaints(path, key, names.qualified_name(key))
        yield from complaints(path, value, names.label_value(value))


def annotation_keys(path: str, values: Mapping[str, str] | None) -> Errors:
    """Keys of annotations."""
    for key in values or {}:
        yield from complaints(path, key, names.qualified_name(key.lower()))


def selector(path: str, value: Mapping[str, Any] | None) -> Errors:
    """A metav1.LabelSelector."""
    found = value or {}
    yield from labels(f"{path}.matchLabels", found.get("matchLabels"))
    for index, item in enumerate(found.get("matchExpressions") or ()):
        yield from _expression(f"{path}.matchExpressions[{index}]", item)


def _expression(path: str, item: Mapping[str, Any]) -> Errors:
    values = item.get("values") or ()
    match item.get("operator"):
        case "In" | "NotIn":
            if not values:
                yield required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
        case "Exists" | "DoesNotExist":
            if values:
                yield forbidden(f"{path}.values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'")
        case other:
            yield invalid(f"{path}.operator", other, "not a valid selector operator")
    key = item.get("key") or ""
    yield from complaints(f"{path}.key", key, names.qualified_name(key))
    for index, text in enumerate(values):
        yield from complaints(f"{path}.values[{index}]", text, names.label_value(text))


def percent_or_number(path: str, value: Any) -> Errors:
    """A count, or a share such as `25%`."""
    if isinstance(value, int):
        yield from non_negative(path, value)
    elif not _PERCENT.fullmatch(value):
        text = "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', "
        yield invalid(path, value, text + "regex used for validation is '[0-9]+%')")


def at_most_all(path: str, value: Any) -> Errors:
    """A share of at most 100%."""
    if isinstance(value, str) and _PERCENT.fullmatch(value) and int(value[:-1]) > 100:
        yield invalid(path, value, "must not be greater than 100%")


def ip_address(path: str, value: str) -> Errors:
    """An IPv4 or IPv6 address."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        yield invalid(path, value, "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")


def network(value: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """The network of a CIDR, or None."""
    try:
        return ipaddress.ip_network(value, strict=False) if "/" in str(value) else None
    except ValueError:
        return None


def quantity(path: str, value: Any, *, positive: bool = False) -> Errors:
    """An amount that is not negative, or greater than zero."""
    try:
        number = parse_quantity(value)
    except ValueError as error:
        yield invalid(path, value, str(error))
        return
    if positive and number <= 0:
        yield invalid(path, value, "must be greater than zero")
    elif number < 0:
        yield invalid(path, value, "must be greater than or equal to 0")


def unchanged(path: str, value: Any, old: Any) -> Errors:
    """A field that no update may change."""
    if value != old:
        yield invalid(path, value, IMMUTABLE)


def known(path: str, value: str, all_known: Iterable[str]) -> Errors:
    """A name of something that stands elsewhere in the object."""
    if value not in all_known:
        yield not_found(path, value)


def selects(value: JsonObject | None, found: Mapping[str, str] | None) -> bool:
    """Whether a selector matches labels; an invalid selector matches nothing."""
    try:
        return from_wire(value).matches(found)
    except (ValueError, KeyError):
        return False


def only_first(path: str, kinds: Sequence[str], what: str, check: Callable[[str, str], Errors]) -> Errors:
    """Of several kinds the first is checked, by its place and name; the others are one too many."""
    for index, kind in enumerate(kinds):
        if index:
            yield forbidden(f"{path}.{kind}", f"may not specify more than 1 {what}")
        else:
            yield from check(f"{path}.{kind}", kind)
