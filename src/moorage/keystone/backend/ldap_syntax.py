"""Values of `[ldap]` that no directory can work with, or that take a protection away.

Enters: an option's name and value. Leaves: what is wrong with it, or nothing. Pure. The seed does not refuse these, so they are warnings
(and errors of `moorage lint --strict`); ldap3's own parsers would add 150 ms to each lint, and refuse blanks that servers take.
Source: RFC 4512 1.4 (names), RFC 4514 (DNs), RFC 4515 (filters); how Keystone puts its filters together: `(&(name=x)<filter>(objectClass=y))`.
"""

from __future__ import annotations

import re
from typing import Final

_WORD: Final = r"(?:[A-Za-z][A-Za-z0-9_-]*|\d+(?:\.\d+)+)"
_NAME: Final = re.compile(rf"{_WORD}(?:;[A-Za-z0-9-]+)*")
_RDN: Final = rf'\s*{_WORD}\s*=(?:\\.|"[^"]*"|[^\\",;+])*'
_DN: Final = re.compile(rf"{_RDN}(?:[,;+]{_RDN})*", re.DOTALL)
_STRICT_VALUE: Final = (
    r'(?:#(?:[0-9A-Fa-f]{2})+|"(?:[^"\\]|\\(?:[0-9A-Fa-f]{2}|[ #+,;<=>"\\]))*"'
    r'|(?!#)(?:[^"\\+,;<>]|\\(?:[0-9A-Fa-f]{2}|[ #+,;<=>"\\]))*)'
)
_STRICT_RDN: Final = rf"\s*(?:[A-Za-z][A-Za-z0-9-]*|\d+(?:\.\d+)*)(?:;[A-Za-z0-9-]*)*\s*=\s*({_STRICT_VALUE})\s*"
_STRICT_RDNS: Final = re.compile(_STRICT_RDN, re.DOTALL | re.ASCII)
_STRICT_DN: Final = re.compile(rf"{_STRICT_RDN}(?:[,;+]{_STRICT_RDN})*", re.DOTALL | re.ASCII)
_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_NAMES: Final = ("_attribute", "_objectclass")
_VERIFIED: Final = ("demand", "hard")


def doubt(option: str, value: str) -> str:
    """Why this value will not do what it should, with the way out; "" when it may."""
    if option == "suffix" or option.endswith("_tree_dn"):
        return "" if _DN.fullmatch(value) else "is no DN: write one such as ou=people,dc=example,dc=org"
    if option.endswith("_filter"):
        return _filter_doubt(value)
    if option.endswith(_NAMES):
        return (
            "" if _NAME.fullmatch(value) else "is no name of an attribute or object class, such as uid or inetOrgPerson"
        )
    if option == "tls_req_cert" and value.lower() not in _VERIFIED:
        return "lets anybody stand in for the directory and read passwords, and is not served beside a directory that is proven: leave it out, and name the authority in spec.ldap.tls"
    if option == "debug_level" and value.strip() not in ("", "0"):
        return "writes what goes over the connection, passwords too, into Keystone's log: leave it out once you have seen enough"
    return ""


def is_dn(value: str) -> bool:
    """Whether OpenLDAP's `ldap_str2dn` takes it, as python-ldap calls it: names, values and escapes to the letter, and UTF-8 once they are undone."""
    try:
        return _STRICT_DN.fullmatch(value) is not None and all(map(_is_text, _STRICT_RDNS.findall(value)))
    except UnicodeDecodeError:
        return False


def _is_text(written: str) -> bool:
    """Raises UnicodeDecodeError when it is none, as python-ldap does."""
    if written.startswith("#"):
        bytes.fromhex(written[1:]).decode()
    else:
        _ESCAPE.sub(_undone, written.encode()).decode()
    return True


def _undone(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode()) if len(escape[1]) == 2 else escape[1]


def _filter_doubt(value: str) -> str:
    depth = 0
    for char in value:
        if char == ")":
            depth -= 1
        if depth < 0 or (depth == 0 and char not in ")(" and not char.isspace()):
            break
        if char == "(":
            depth += 1
    else:
        if depth == 0:
            return ""
    return "is no filter in parentheses that match, so every search fails: write it like (objectClass=person), and parentheses of values as \\28 and \\29"
