"""Which addresses and ports a server that a stranger named may be reached at.

Enters: an address as it is about to be connected to, and the networks that a person allowed at the command line. Leaves: why not, or
nothing. Pure; it resolves no name. Source: seed 000, OIDCBackendSpec; spec/keystone.md 4.8 and section 7 S6; the special-purpose
registries of IANA (RFC 6890); docs/adr/0016-fetching-metadata.md. Admission asks the same table what a declared host is.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Literal, TypeAlias

Address: TypeAlias = IPv4Address | IPv6Address
Network: TypeAlias = IPv4Network | IPv6Network

_NAT64: Final = IPv6Network("64:ff9b::/96")
_LOOPBACK: Final[tuple[Network, ...]] = (IPv4Network("127.0.0.0/8"), IPv6Network("::1/128"))
"""Open to an entry of the list that lies inside it, never to a wider one that happens to contain it."""
_PRIVATE: Final[tuple[Network, ...]] = tuple(
    map(ip_network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", str(_NAT64)))
)
"""Open to an entry of the list that contains the address."""
_GLOBAL_6: Final = IPv6Network("2000::/3")
_NEVER: Final[tuple[tuple[Network, str], ...]] = tuple(
    (ip_network(network), what)
    for network, what in (
        ("0.0.0.0/8", "this host"),
        ("169.254.0.0/16", "link-local"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("198.18.0.0/15", "benchmarks"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved, and broadcast"),
        ("::/128", "unspecified"),
        ("::/96", "IPv4-compatible"),
        ("::ffff:0:0:0/96", "IPv4-translated"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_WEB: Final = (80, 443)
_NOT_WEB: Final = frozenset(
    {
        1719, 1720, 1723, 2049, 2181, 2375, 2376, 2379, 2380, 3260, 3268, 3269, 3306, 3389, 4045, 4190, 4369, 5060,
        5061, 5432, 5671, 5672, 5900, 6000, 6379, 6380, 6566, 6640, 6641, 6642, 6665, 6666, 6667, 6668, 6669, 6679,
        6697, 6789, 9042, 9092, 9160, 9300, 10080, 10250, 10255, 10256, 10257, 10259, 11211, 15672, 16379, 16509, 25672, 26257,
        26379, 27017, 27018, 27019, 61616,
    }
)  # fmt: skip
"""Databases, caches, queues, file servers, hypervisors and the inner doors of a cluster, at the ports where they are known to listen."""


class UnusableNetwork(ValueError):
    """An entry of the list of allowed networks cannot be used; the text says why and what to write."""


def parse_networks(text: str) -> tuple[Network, ...]:
    """The networks of a comma list; a blank text is none.

    Raises:
        UnusableNetwork: an entry is empty, no network, everything, or a network that is never opened.
    """
    return tuple(map(_network, text.split(","))) if text.strip() else ()


def _network(text: str) -> Network:
    entry = text.strip()
    if not entry:
        raise UnusableNetwork("an entry is empty; write networks like 10.20.0.0/16,fd00:1::/64")
    address, slash, _ = entry.partition("/")
    try:
        found = ip_network(entry, strict=False)
    except ValueError:
        raise UnusableNetwork(f"{entry} is no network; write it like 10.20.0.0/16") from None
    if not slash:
        raise UnusableNetwork(f"{entry} has no prefix length; write {found} for this one address")
    if found.prefixlen == 0:
        raise UnusableNetwork(f"{entry} is every address there is; name the provider's network")
    if ip_address(address) != found.network_address:
        raise UnusableNetwork(f"{entry} has bits behind its prefix; write {found} or {address}/{found.max_prefixlen}")
    if isinstance(found, IPv6Network) and found.subnet_of(IPv6Network("::ffff:0:0/96")):
        raise UnusableNetwork(f"{entry} is an IPv4 network in disguise; write it as one")
    if found not in _LOOPBACK and (what := _never(found)):
        raise UnusableNetwork(f"{entry} can never be fetched from ({what})")
    return found


def _never(found: Network) -> str:
    for network, what in _NEVER:
        if network.version == found.version and not _within(found, _LOOPBACK) and _within(found, (network,)):
            return what
    return ""


def _within(inner: Network, outer: Iterable[Network]) -> bool:
    return any(
        (isinstance(inner, IPv4Network) and isinstance(item, IPv4Network) and inner.subnet_of(item))
        or (isinstance(inner, IPv6Network) and isinstance(item, IPv6Network) and inner.subnet_of(item))
        for item in outer
    )


def port_refusal(port: int) -> str:
    """Why a port is refused; "" when it is not. Below 1024 only 80 and 443 are open, above it what is no known other service."""
    refused = port not in _WEB and (port < 1024 or port in _NOT_WEB)
    return f"port {port} is not one of a web server" if refused else ""


def refusal(address: str, port: int, allowed: Iterable[Network]) -> str:
    """Why a connection to this address and port is refused; "" when it is not.

    Args:
        address: as a socket takes it; an IPv6 zone is ignored.
    """
    if why := port_refusal(port):
        return why
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return "it is no IP address"
    return _refusal(parsed, tuple(allowed))


def _refusal(address: Address, allowed: tuple[Network, ...]) -> str:
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return _refusal(address.ipv4_mapped, allowed)
    holding = [item for item in allowed if address in item]
    if any(address in item for item in _LOOPBACK):
        return "" if any(_within(item, _LOOPBACK) for item in holding) else "it is a loopback address"
    for network, what in _NEVER:
        if address in network:
            return f"it is a special address ({what})"
    if any(address in item for item in _PRIVATE):
        if not holding:
            return "it is a private address that is not on the list of allowed networks"
        return _refusal(IPv4Address(int(address) & 0xFFFFFFFF), allowed) if address in _NAT64 else ""
    if isinstance(address, IPv6Address) and address not in _GLOBAL_6:
        return "it is no global address"
    return ""


# --- hosts as people write them

Internal: TypeAlias = Literal["loopback", "private", "special"]


def internal(host: str) -> tuple[Internal, str] | None:
    """What is internal about a host that is an address in any spelling that a resolver takes, and in words; None for other hosts.

    Args:
        host: as `urlsplit` gives it, without brackets; a name is only known when it can mean nothing but this machine.
    """
    if host == "localhost" or host.endswith(".localhost"):
        return "loopback", "a loopback address"
    address = _address(host)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address is None:
        return None
    if any(address in item for item in _LOOPBACK):
        return "loopback", "a loopback address"
    special = next((what for network, what in _NEVER if address in network), "")
    if special:
        return "special", f"a special address ({special})"
    return ("private", "a private address") if any(address in item for item in _PRIVATE) else None


def _address(host: str) -> Address | None:
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return _numeric(host.rstrip("."))


def _numeric(host: str) -> IPv4Address | None:
    """One to four numbers, decimal, octal or hexadecimal, the last of which fills what is left: 127.1, 0x7f000001, 2130706433."""
    parts = host.split(".")
    try:
        *first, last = (_number(part) for part in parts)
    except ValueError:
        return None
    if len(parts) > 4 or any(number > 255 for number in first) or last >= 256 ** (5 - len(parts)):
        return None
    return IPv4Address(sum(number << (24 - 8 * place) for place, number in enumerate(first)) + last)


def _number(text: str) -> int:
    if not (text.isascii() and text.isalnum()):
        raise ValueError(text)
    if text[:2].lower() == "0x":
        return int(text[2:], 16)
    return int(text, 8 if text[0] == "0" else 10)
