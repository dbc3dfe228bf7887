"""One request over TLS, the path exactly as it is given, the connection ended with the answer.

Enters: method, URL, headers, body. Leaves: status, headers, body. In a thread, so that its socket is closed when it returns: an event loop leaves TLS
connections behind that the other side ends first.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import ssl
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

LIMIT = 60
_POOL = ThreadPoolExecutor(48, "wire")
"""More threads than asyncio's own few: who watches must not stand in the way of who signs in."""


@dataclass(frozen=True)
class Answer:
    """What came back; status 0 when nobody answered."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def json(self) -> Any:
        """The decoded body; an empty object when it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key.lower() == name.lower()), "")


def ask(trust: ssl.SSLContext, method: str, url: str, headers: Mapping[str, str], body: bytes | None = None) -> Answer:
    """Ask once, in the caller's own thread."""
    scheme, _, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    connection = (
        http.client.HTTPSConnection(authority, context=trust, timeout=LIMIT)
        if scheme == "https"
        else http.client.HTTPConnection(authority, timeout=LIMIT)
    )
    try:
        connection.putrequest(method, (slash + path) or "/", skip_accept_encoding=True)
        for name, value in {"Connection": "close", **headers}.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        found = connection.getresponse()
        return Answer(found.status, tuple(found.getheaders()), found.read())
    finally:
        connection.close()


async def exchange(
    trust: ssl.SSLContext,
    method: str,
    url: str,
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Answer:
    """Ask once; OSError and http.client's errors when nobody answers."""
    return await asyncio.get_running_loop().run_in_executor(_POOL, ask, trust, method, url, headers or {}, body)
