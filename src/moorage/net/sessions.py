"""One aiohttp session for each purpose, and the lean calls beside them, all resolving names the same way.

Enters: a purpose such as `keystone-health`, and optionally a TLS context. Leaves: a session that lives as long as the process. It
sends nothing by itself, follows no proxy of the environment, and shares no cookie between servers.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from types import SimpleNamespace, TracebackType
from typing import Self

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.helpers import is_ip_address

from moorage.core.addresses import Network

from .calls import Calls
from .guard import Guard

TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=5.0)
_READING = frozenset({"GET", "HEAD", "OPTIONS"})


def session(
    *,
    resolver: AbstractResolver | None = None,
    tls: ssl.SSLContext | None = None,
    timeout: aiohttp.ClientTimeout = TIMEOUT,
    fence: Callable[[], None] | None = None,
) -> aiohttp.ClientSession:
    """A session of its own.

    Args:
        resolver: how names become addresses; None asks the system.
        tls: whom to trust; None means the system's roots.
        fence: asked before each request that may write; it raises to refuse (leadership lost).
    """
    connector = aiohttp.TCPConnector(limit=0, limit_per_host=32, resolver=resolver, ssl=tls or True, ttl_dns_cache=5)
    return aiohttp.ClientSession(
        connector=connector,
        timeout=timeout,
        cookie_jar=aiohttp.DummyCookieJar(),
        trust_env=False,
        trace_configs=[_fencing(fence)] if fence else [],
    )


def _fencing(fence: Callable[[], None]) -> aiohttp.TraceConfig:
    async def before(_: aiohttp.ClientSession, __: SimpleNamespace, start: aiohttp.TraceRequestStartParams) -> None:
        if start.method not in _READING:
            fence()

    tracing = aiohttp.TraceConfig()
    tracing.on_request_start.append(before)
    return tracing


class Sessions:
    """Sessions by purpose, made when first asked for. `calls`: of the APIs that we administer, by the same rules.

    async with Sessions(resolver=...) as http:
        await http.get("keystone-health").get(...)
    """

    def __init__(
        self,
        *,
        resolver: AbstractResolver | None = None,
        fence: Callable[[], None] | None = None,
        allowed: tuple[Network, ...] = (),
    ) -> None:
        self._resolver, self._fence = resolver, fence
        self._guard = Guard(allowed, resolver)
        self.calls = Calls(resolver=resolver, fence=fence)
        self._sessions: dict[tuple[str, ssl.SSLContext | None], aiohttp.ClientSession] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self.close()

    def get(self, purpose: str, *, tls: ssl.SSLContext | None = None) -> aiohttp.ClientSession:
        """The session of this purpose and TLS context."""
        found = self._sessions.get((purpose, tls))
        if found is None or found.closed:
            found = self._sessions[purpose, tls] = session(resolver=self._resolver, tls=tls, fence=self._fence)
        return found

    async def fetch(self, url: str, *, limit: int, roots: bytes | None = None) -> bytes:
        """A document from a server that a stranger named, as `Guard.fetch` gets it: `allowed` are the networks that are open to it.

        Raises:
            FetchFailed, UnusableRoots: as there.
        """
        return await self._guard.fetch(url, limit=limit, roots=roots)

    async def address(self, host: str) -> str:
        """The address that a name has for our sessions; "" when the system resolves it, it is an address itself, or nobody knows it."""
        if self._resolver is None or not host or is_ip_address(host):
            return ""
        try:
            return str((await self._resolver.resolve(host))[0]["host"])
        except (OSError, IndexError):
            return ""

    async def close(self) -> None:
        """Close all connections."""
        while self._sessions:
            _, found = self._sessions.popitem()
            await found.close()
        await self.calls.close()
