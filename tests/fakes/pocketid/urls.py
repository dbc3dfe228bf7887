"""Which URLs the server stores, and which redirect_uri a stored pattern accepts.

Enters: texts. Leaves: yes or no. Source: spec/pocketid.md 4.2; records 02 (launchURL), 04 (callback URLs), 24 (matching).
"""

from __future__ import annotations

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*|\*):(.*)", re.DOTALL)
_PORT = re.compile(r"(?:\*|\d{0,5})")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.*]+\]|[^\s\[\]:()]*)")
BAD_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORTS = {"https": "443", "http": "80"}


def is_url(text: str) -> bool:
    """A scheme, and something behind it."""
    found = _SCHEME.fullmatch(text)
    if found is None or found[1] == "*" or any(ord(char) < 32 for char in text):
        return False
    rest = found[2]
    if not rest.startswith("//"):
        return bool(rest.strip("/"))
    return bool(re.split(r"[/?#]", rest[2:], maxsplit=1)[0]) or "#" in rest


def is_callback(text: str) -> bool:
    """A callback URL or a pattern of them."""
    if text == "*":
        return True
    found = _SCHEME.fullmatch(text)
    if found is None or any(ord(char) < 32 for char in text) or not _well_formed(text):
        return False
    scheme, rest = found[1].lower(), found[2]
    if not rest.startswith("/"):
        return scheme == "urn" and bool(rest)
    if not rest.startswith("//"):
        return True
    authority = re.split(r"[/?#]", rest[2:], maxsplit=1)[0].rpartition("@")[2]
    host = _HOST.match(authority)
    port = authority[host.end() :] if host else "!"
    return not port or (
        port[0] == ":" and bool(_PORT.fullmatch(port[1:])) and (port[1:] in ("", "*") or int(port[1:]) < 65536)
    )


def _well_formed(text: str) -> bool:
    return text.count("(") == text.count(")") and not BAD_PERCENT.search(text)


def is_loopback(url: str) -> bool:
    """A URL of this machine."""
    return _parts(url)[1] in _LOOPBACK


def accepts(pattern: str, url: str) -> bool:
    """Whether a stored pattern accepts a redirect_uri."""
    if pattern == "*":
        return True
    wanted, given = _parts(pattern), _parts(url)
    scheme, host, port, path, query = wanted
    if not _glob(scheme, given[0], ".*") or not _glob(host, given[1], ".*"):
        return False
    if port != "*" and not (host in _LOOPBACK and not port) and _port(given[0], port) != _port(given[0], given[2]):
        return False
    return _path(path, given[3]) and (query == given[4] if "*" not in query else _glob(query, given[4], ".*"))


def _parts(text: str) -> tuple[str, str, str, str, str]:
    """Scheme, host, port, path, query; the first two in lower case."""
    scheme, _, rest = text.partition(":")
    rest, _, query = rest.partition("#")[0].partition("?")
    if not rest.startswith("//"):
        return scheme.lower(), "", "", rest, query
    authority, slash, path = rest[2:].partition("/")
    host, _, port = authority.rpartition(":") if re.search(r":(\d*|\*)$", authority) else (authority, "", "")
    return scheme.lower(), host.lower(), port, slash + path, query


def _port(scheme: str, port: str) -> str:
    return port or _DEFAULT_PORTS.get(scheme, "")


def _glob(pattern: str, text: str, star: str) -> bool:
    return re.fullmatch(star.join(map(re.escape, pattern.split("*"))), text) is not None


def _path(pattern: str, text: str) -> bool:
    pieces = re.split(r"(\*\*|\*)", pattern)
    shape = "".join({"**": ".+", "*": "[^/]+"}.get(piece) or re.escape(piece) for piece in pieces)
    return re.fullmatch(shape, text) is not None
