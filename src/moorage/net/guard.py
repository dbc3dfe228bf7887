"""Fetches a document from a server that the author of a resource named, without becoming that author's arm.

Enters: a URL, whom to trust, which networks are open. Leaves: the bytes, or FetchFailed: one sentence for whatever went wrong, so that
nobody learns from it what stands at an address; the operator's log has the detail. Each address is checked when its socket is made, on
every connection, after the name was resolved: what a name meant a moment ago does not count. Redirects are not followed. No proxy of
the environment, no cookie, no credential, nothing kept open. Source: spec/keystone.md 4.8; section 7 S6.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import aiohttp
import structlog
from aiohttp.abc import AbstractResolver
from aiohttp.typedefs import LooseHeaders
from yarl import URL

from moorage.core.addresses import Network, port_refusal, refusal
from moorage.core.urls import without_user

from .resolver import SystemResolver

TIME: Final = 10.0
"""Seconds for everything: name, connection, TLS, answer."""
_CHUNK: Final = 16384
_LOGGED: Final = 512
"""Characters of a reason in the log, which may hold what a stranger sent."""
_HEADERS: Final[LooseHeaders] = {"Accept-Encoding": "identity", "Accept": "*/*", "User-Agent": "moorage"}
_log = structlog.get_logger("moorage.fetch")


class FetchFailed(Exception):
    """`fetching <url> failed`, and nothing else."""

    def __init__(self, url: str) -> None:
        super().__init__(f"fetching {url} failed")


class UnusableRoots(ValueError):
    """A CA bundle holds no certificate that can be read."""


class _Refused(Exception):
    """Why an answer is not taken; for the log alone."""


@dataclass(frozen=True, slots=True)
class Guard:
    """One fetch at a time and nothing shared between them.

    Args:
        allowed: networks that are open besides the public ones.
        resolver: how names become addresses; None asks the system.
        time: seconds for one fetch.
    """

    allowed: tuple[Network, ...] = ()
    resolver: AbstractResolver | None = None
    time: float = TIME

    async def fetch(self, url: str, *, limit: int, roots: bytes | None = None) -> bytes:
        """The body of a GET.

        Args:
            limit: bytes at most, also after decompression.
            roots: PEM certificates, the only ones that are trusted then; None: the system's.

        Raises:
            FetchFailed: no answer of 2xx within the time and the limit, or an address that is not open.
            UnusableRoots: `roots` cannot be read.
        """
        trusted = trust(roots) if roots is not None else None
        try:
            async with asyncio.timeout(self.time):
                return await self._get(_target(url), trusted, limit)
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError, zlib.error, _Refused) as error:
            _log.warning("fetch failed", url=without_user(url), why=_why(error))
            raise FetchFailed(without_user(url)) from None

    async def _get(self, url: URL, trusted: ssl.SSLContext | None, limit: int) -> bytes:
        connector = aiohttp.TCPConnector(
            resolver=self.resolver or SystemResolver(),
            ssl=trusted or True,
            use_dns_cache=False,
            force_close=True,
            socket_factory=self._socket,
        )
        async with (
            aiohttp.ClientSession(
                connector=connector,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                auto_decompress=False,
                timeout=aiohttp.ClientTimeout(total=self.time),
                headers=_HEADERS,
            ) as session,
            session.get(url, allow_redirects=False) as response,
        ):
            if not 200 <= response.status < 300:
                raise _Refused(f"it answered {response.status}")
            return await _body(response, limit)

    def _socket(self, info: aiohttp.AddrInfoType) -> socket.socket:
        """The socket for one candidate address, which is what is connected to next."""
        family, kind, protocol, _, address = info
        if family not in (socket.AF_INET, socket.AF_INET6):
            raise PermissionError(f"address family {family} is not open")
        if why := refusal(str(address[0]), int(address[1]), self.allowed):
            raise PermissionError(f"{address[0]} is not open: {why}")
        return socket.socket(family, kind, protocol)


def trust(roots: bytes) -> ssl.SSLContext:
    """A client context that trusts these certificates only, in the way the sidecar's curl does.

    Raises:
        UnusableRoots: they cannot be read.
    """
    try:
        context = ssl.SSLContext(
            ssl.PROTOCOL_TLS_CLIENT
        )  # unlike create_default_context it never falls back to the system's roots
        context.load_verify_locations(cadata=roots.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise UnusableRoots("no certificate can be read") from error
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def unusable(url: str) -> str:
    """Why a URL can never be fetched, as far as the URL itself tells; "" when nothing is wrong with it."""
    try:
        target = URL(url)
        port = target.port
    except ValueError:
        return "is no URL"
    if target.scheme not in ("http", "https") or not target.host or port is None:
        return "is no http or https URL"
    if target.user is not None or target.password is not None:
        return "must not hold user information"
    return port_refusal(port)


def _target(url: str) -> URL:
    if why := unusable(url):
        raise _Refused(f"the URL {why}")
    return URL(url)


async def _body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """At most `limit` bytes; a server that compresses unasked is followed that far, too."""
    coding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if coding not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise _Refused("its content coding is not known")
    inflate = zlib.decompressobj(wbits=47) if coding not in ("identity", "") else None
    found = bytearray()
    async for chunk in response.content.iter_chunked(_CHUNK):
        found += inflate.decompress(chunk, limit + 1 - len(found)) if inflate else chunk
        if len(found) > limit:
            raise _Refused(f"it has more than {limit} bytes")
    if inflate and not inflate.eof:
        raise _Refused("its compressed body ends too early")
    return bytes(found)


def _why(error: BaseException) -> str:
    """All that is known, also of each address that was tried."""
    text = "; ".join(dict.fromkeys(filter(None, _parts(error)))) or type(error).__name__
    return " ".join(text.split())[:_LOGGED]


def _parts(error: BaseException) -> Iterable[str]:
    if isinstance(error, BaseExceptionGroup):
        for item in error.exceptions:
            yield from _parts(item)
        return
    yield str(error)
    if error.__cause__ is not None:
        yield from _parts(error.__cause__)
