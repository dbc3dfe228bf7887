"""Requests to the APIs that we administer (Keystone), over kept connections of our own client.

Enters: the address of a server, a Call. Leaves: an Answer, or an error of `calling.line`. A call that may write asks the fence first. It follows
no redirect and no proxy of the environment, keeps no cookie, and asks once more only what cannot harm: a request of an idempotent method
whose kept connection the server had closed. Documents of servers that strangers name are fetched by `guard`, not here. Source: ADR 0015.
"""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver
from aiohttp.helpers import is_ip_address

from moorage.calling.line import Answer, Stale
from moorage.calling.pool import Door, Pool

from .resolver import SystemResolver

ANSWER_LIMIT: Final = 8 * 1024 * 1024
"""Bytes of an answer at most, also after decompression."""
_KEPT: Final = 15.0
_AT_ONCE: Final = 8
"""Requests to one server that are under way together: whoever else is served there must not wait behind all that we would like to know."""
_CONNECT: Final = 5.0
_KNOWN: Final = 5.0
"""Seconds that the addresses of a name are believed."""
_READING: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_REPEATABLE: Final = _READING | {"PUT", "DELETE"}
_LINE: Final = re.compile(r"[!-~]+")
_VALUE: Final = re.compile(r"[\t -~]*")


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Args:
        target: path and query behind the server's address, percent-encoded.
        body: JSON, or None.
        asking: a POST that changes nothing a person would miss, such as a login: the fence lets it pass.
    """

    method: str
    target: str
    headers: Sequence[tuple[str, str]] = field(default=(), repr=False)
    body: bytes | None = field(default=None, repr=False)
    asking: bool = False


class Server:
    """One server by its address, such as `http://keystone.default.svc:5000/v3`; `seconds` are what a call may take."""

    def __init__(self, calls: Calls, url: str, tls: ssl.SSLContext | None) -> None:
        where = urlsplit(url)
        self.host, secure = where.hostname or "", where.scheme == "https"
        self.port = where.port or (443 if secure else 80)
        self._calls, self._prefix = calls, where.path.rstrip("/")
        self._head = f" HTTP/1.1\r\nHost: {where.netloc.rpartition('@')[2]}\r\nAccept: application/json\r\nUser-Agent: moorage\r\n"
        self._door = Door((tls or calls.roots()) if secure else None, seconds=_CONNECT)
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._pool = Pool(self.host, self.port, addresses=self._addresses, limit=ANSWER_LIMIT, kept=_KEPT)

    async def ask(self, call: Call, seconds: float) -> Answer:
        """Send it, in its turn: the seconds begin then.

        Raises:
            HttpError: there was no answer. TimeoutError: none in time. ValueError: it holds what no request line or header carries.
        """
        request = self._bytes(call)
        async with self._places:
            try:
                return await self._once(call, request, seconds)
            except Stale:
                if call.method not in _REPEATABLE:
                    raise
                self._pool.forget()
                return await self._once(call, request, seconds)

    async def _once(self, call: Call, request: bytes, seconds: float) -> Answer:
        if call.method not in _READING and not call.asking:
            self._calls.check()
        return await self._pool.exchange(request, self._door, seconds)

    def _bytes(self, call: Call) -> bytes:
        target = self._prefix + call.target
        if not _LINE.fullmatch(target):
            raise ValueError("the path is not percent-encoded")
        lines = ""
        for name, value in call.headers:
            if not _VALUE.fullmatch(value):
                raise ValueError(f"header {name} holds a line end or another character that no header carries")
            lines += f"{name}: {value}\r\n"
        if call.body is not None:
            lines += f"Content-Type: application/json\r\nContent-Length: {len(call.body)}\r\n"
        elif call.method in ("POST", "PUT", "PATCH"):
            lines += "Content-Length: 0\r\n"
        return f"{call.method} {target}{self._head}{lines}\r\n".encode() + (call.body or b"")

    async def _addresses(self) -> Sequence[tuple[str, int]]:
        return await self._calls.addresses(self.host, self.port)

    async def close(self) -> None:
        """Drop its connections."""
        await self._pool.close()


class Calls:
    """All servers of a process.

    Args:
        resolver: how names become addresses; None asks the system.
        fence: asked before each call that may write; it raises to refuse (leadership lost).
    """

    def __init__(self, *, resolver: AbstractResolver | None = None, fence: Callable[[], None] | None = None) -> None:
        self._resolver = resolver or SystemResolver()
        self.check: Callable[[], None] = fence or (lambda: None)
        self._servers: dict[tuple[str, ssl.SSLContext | None], Server] = {}
        self._known: dict[tuple[str, int], tuple[float, Sequence[tuple[str, int]]]] = {}
        self._roots: ssl.SSLContext | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    def server(self, url: str, tls: ssl.SSLContext | None = None) -> Server:
        """The server at an address; `tls`: whom to trust, None means the system's roots."""
        found = self._servers.get((url, tls))
        if found is None:
            found = self._servers[url, tls] = Server(self, url, tls)
        return found

    async def addresses(self, host: str, port: int) -> Sequence[tuple[str, int]]:
        """What a name means now, or meant a moment ago.

        Raises:
            OSError: nobody knows it.
        """
        if is_ip_address(host):
            return ((host, port),)
        now = asyncio.get_running_loop().time()
        until, known = self._known.get((host, port), (0.0, ()))
        if until <= now:
            found = await self._resolver.resolve(host, port, socket.AF_UNSPEC)
            known = tuple(dict.fromkeys((item["host"], item["port"]) for item in found))
            self._known[host, port] = (now + _KNOWN, known)
        return known

    def roots(self) -> ssl.SSLContext:
        """The system's."""
        if self._roots is None:
            self._roots = ssl.create_default_context()
        return self._roots

    async def close(self) -> None:
        """Drop all connections."""
        while self._servers:
            _, found = self._servers.popitem()
            await found.close()
