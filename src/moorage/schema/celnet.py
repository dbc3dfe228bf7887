"""CEL functions of Kubernetes' own types: URL, Quantity, IP, CIDR, Semver.

Enters: text and tagged maps. Leaves: plain values and tagged maps (`$type`); equal things give equal maps.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qs, urlsplit

from moorage.core.quantity import parse_quantity

from .formats import is_uri

Tagged: TypeAlias = dict[str, Any]
_SEMVER: Final = re.compile(
    r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)


def _url(text: str) -> Tagged:
    if not is_uri(text):
        problem = "invalid URI for request" if text else "empty url"
        raise ValueError(f'URL parse error during conversion from string: parse "{text}": {problem}')
    return {"$type": "URL", "text": text}


def _url_part(read: Callable[[Any], Any]) -> Callable[[Tagged], Any]:
    return lambda value: read(urlsplit(_of(value, "URL")["text"]))


def _hostname(parts: Any) -> str:
    host = parts.netloc.rpartition("@")[2]
    if host.startswith("["):
        return str(host[1:].partition("]")[0])
    return str(host.partition(":")[0])


def _of(value: Tagged, *names: str) -> Tagged:
    if value.get("$type") not in names:
        raise ValueError("no such overload")
    return value


def _quantity(text: str) -> Tagged:
    number = parse_quantity(text)
    return {"$type": "Quantity", "number": format(number.normalize(), "f")}


def _number(value: Tagged) -> Decimal:
    return Decimal(_of(value, "Quantity")["number"])


def _is_integer(value: Tagged) -> bool:
    number = _number(value)
    return number == number.to_integral_value() and -(2**63) <= number < 2**63


def _as_integer(value: Tagged) -> int:
    if not _is_integer(value):
        raise ValueError("cannot convert value to integer")
    return int(_number(value))


def _order(value: Tagged) -> Any:
    if value.get("$type") == "Quantity":
        return _number(value)
    return _precedence(_of(value, "Semver"))


def _compare(one: Tagged, other: Tagged) -> int:
    left, right = _order(one), _order(other)
    return int(left > right) - int(left < right)


def _plus(one: Tagged, other: Any, sign: int) -> Tagged:
    right = Decimal(other) if isinstance(other, int) else _number(other)
    return {"$type": "Quantity", "number": format((_number(one) + sign * right).normalize(), "f")}


def _ip(text: str) -> Tagged:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        problem = f'ParseAddr("{text}"): unable to parse IP'
        raise ValueError(f'IP Address "{text}" parse error during conversion from string: {problem}') from None
    mapped = getattr(address, "ipv4_mapped", None)
    if mapped is not None:
        raise ValueError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    if "%" in text:
        raise ValueError(f'IP address "{text}" with zone value is not allowed')
    return {"$type": "IP", "text": str(address)}


def _address(value: Tagged) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    return ipaddress.ip_address(_of(value, "IP")["text"])


def _cidr(text: str) -> Tagged:
    interface = ipaddress.ip_interface(text)
    if "/" not in text or not text.rpartition("/")[2].isdecimal():
        raise ValueError("network address parse error during conversion from string: no '/'")
    return {"$type": "CIDR", "text": str(interface)}


def _network(value: Any) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    text = value if isinstance(value, str) else _of(value, "CIDR")["text"]
    return ipaddress.ip_interface(text).network


def _contains_ip(value: Tagged, other: Any) -> bool:
    address = ipaddress.ip_address(other) if isinstance(other, str) else _address(other)
    return address in _network(value)


def _contains_cidr(value: Tagged, other: Any) -> bool:
    outer, inner = _network(value), _network(other)
    return outer.version == inner.version and inner.subnet_of(outer)  # type: ignore[arg-type]


def _prefix_length(value: Tagged) -> int:
    return _network(value).prefixlen


def _semver(text: str) -> Tagged:
    found = _SEMVER.fullmatch(text)
    if found is None:
        raise ValueError("No Major.Minor.Patch elements found")
    return {"$type": "Semver", "parts": [int(found[1]), int(found[2]), int(found[3])], "pre": found[4] or ""}


def _precedence(value: Tagged) -> Any:
    pre = [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in value["pre"].split(".") if part]
    return value["parts"], not pre, pre


def _holds(make: Callable[[str], Tagged]) -> Callable[[str], bool]:
    def run(text: str) -> bool:
        try:
            make(text)
        except ValueError:
            return False
        return True

    return run


ROWS: Final = (
    ("string_to_url", "url", False, ("string",), "map", _url),
    ("is_url", "isURL", False, ("string",), "bool", is_uri),
    ("url_get_scheme", "getScheme", True, ("map",), "string", _url_part(lambda parts: parts.scheme)),
    ("url_get_host", "getHost", True, ("map",), "string", _url_part(lambda parts: parts.netloc.rpartition("@")[2])),
    ("url_get_hostname", "getHostname", True, ("map",), "string", _url_part(_hostname)),
    ("url_get_port", "getPort", True, ("map",), "string", _url_part(lambda parts: str(parts.port or ""))),
    ("url_get_escaped_path", "getEscapedPath", True, ("map",), "string", _url_part(lambda parts: parts.path)),
    ("url_get_query", "getQuery", True, ("map",), "map", _url_part(lambda parts: parse_qs(parts.query, True))),
    ("string_to_quantity", "quantity", False, ("string",), "map", _quantity),
    ("is_quantity", "isQuantity", False, ("string",), "bool", _holds(_quantity)),
    ("quantity_sign", "sign", True, ("map",), "int", lambda value: _compare(value, _quantity("0"))),
    ("quantity_is_integer", "isInteger", True, ("map",), "bool", _is_integer),
    ("quantity_as_integer", "asInteger", True, ("map",), "int", _as_integer),
    ("quantity_as_float", "asApproximateFloat", True, ("map",), "double", lambda value: float(_number(value))),
    ("quantity_add", "add", True, ("map", "map"), "map", lambda one, other: _plus(one, other, 1)),
    ("quantity_add_int", "add", True, ("map", "int"), "map", lambda one, other: _plus(one, other, 1)),
    ("quantity_sub", "sub", True, ("map", "map"), "map", lambda one, other: _plus(one, other, -1)),
    ("quantity_sub_int", "sub", True, ("map", "int"), "map", lambda one, other: _plus(one, other, -1)),
    ("order_less", "isLessThan", True, ("map", "map"), "bool", lambda one, other: _compare(one, other) < 0),
    ("order_greater", "isGreaterThan", True, ("map", "map"), "bool", lambda one, other: _compare(one, other) > 0),
    ("order_compare", "compareTo", True, ("map", "map"), "int", _compare),
    ("string_to_ip", "ip", False, ("string",), "map", _ip),
    ("is_ip", "isIP", False, ("string",), "bool", _holds(_ip)),
    ("ip_is_canonical", "ip.isCanonical", False, ("string",), "bool", lambda text: _ip(text)["text"] == text),
    ("ip_family", "family", True, ("map",), "int", lambda value: _address(value).version),
    ("ip_unspecified", "isUnspecified", True, ("map",), "bool", lambda value: _address(value).is_unspecified),
    ("ip_loopback", "isLoopback", True, ("map",), "bool", lambda value: _address(value).is_loopback),
    ("ip_link_multi", "isLinkLocalMulticast", True, ("map",), "bool", lambda value: _link_multicast(_address(value))),
    ("ip_link_uni", "isLinkLocalUnicast", True, ("map",), "bool", lambda value: _address(value).is_link_local),
    ("ip_global", "isGlobalUnicast", True, ("map",), "bool", lambda value: _global_unicast(_address(value))),
    ("string_to_cidr", "cidr", False, ("string",), "map", _cidr),
    ("is_cidr", "isCIDR", False, ("string",), "bool", _holds(_cidr)),
    ("cidr_contains_ip", "containsIP", True, ("map", "map"), "bool", _contains_ip),
    ("cidr_contains_ip_text", "containsIP", True, ("map", "string"), "bool", _contains_ip),
    ("cidr_contains_cidr", "containsCIDR", True, ("map", "map"), "bool", _contains_cidr),
    ("cidr_contains_cidr_text", "containsCIDR", True, ("map", "string"), "bool", _contains_cidr),
    ("cidr_prefix_length", "prefixLength", True, ("map",), "int", _prefix_length),
    ("string_to_semver", "semver", False, ("string",), "map", _semver),
    ("is_semver", "isSemver", False, ("string",), "bool", _holds(_semver)),
    ("semver_major", "major", True, ("map",), "int", lambda value: _of(value, "Semver")["parts"][0]),
    ("semver_minor", "minor", True, ("map",), "int", lambda value: _of(value, "Semver")["parts"][1]),
    ("semver_patch", "patch", True, ("map",), "int", lambda value: _of(value, "Semver")["parts"][2]),
)
"""Rows for `cellibrary.functions`."""


def _link_multicast(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    blocks = ("224.0.0.0/24", "ff02::/16")
    return any(address in ipaddress.ip_network(block) for block in blocks)


def _global_unicast(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not (special or str(address) == "255.255.255.255")
