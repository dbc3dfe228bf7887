"""What is wrong with the address of a server that a person declared.

Enters: a URL as written. Leaves: one reason, or nothing. Pure; whether anybody answers there is not its question. Source: RFC 3986; what
browsers make of a backslash: WHATWG URL, 4.4.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import urlsplit

from .unseen import has_unseen

_WHOLE: Final = ("http://", "https://")
_JOINERS: Final = "\u200c\u200d"
"""Part of words, and of no address."""
_USER: Final = re.compile(r"//[^/?#]*@")


def without_user(url: str) -> str:
    """A URL for people: without user information, which may hold a password."""
    return _USER.sub("//", url, count=1)


def url_fault(url: str) -> str:
    """Why nobody can be sent to this http or https URL, or should not be; "" when they can."""
    if not url.startswith(_WHOLE):
        return "must start with http:// or https://"
    if has_unseen(url) or any(char.isspace() or char in _JOINERS for char in url):
        return "must not hold a blank or a control character: percent-encode what belongs to the address"
    if "\\" in url:
        return "must not hold a backslash: browsers read it as a slash"
    if "#" in url:
        return "must not have a fragment (#): it is never sent to a server"
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "must name a host, and a port from 1 to 65535 if any"
    if "@" in parts.netloc:
        return "must not hold a user or a password: everybody who may read this object would know it"
    if port == 0 or parts.netloc.endswith(":"):
        return "must have a port from 1 to 65535, or none and no colon"
    return "" if all(host.removesuffix(".").split(".")) else "must name a host, such as https://idp.example.org/"
