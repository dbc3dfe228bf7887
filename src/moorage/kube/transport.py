"""One request to an API server: address, credentials, retries, errors.

Enters: a Request. Leaves: the decoded answer, or one exception of `errors`. It retries what the server asked to retry
(Retry-After on 429 and 5xx) and what cannot have happened twice (no connection, or a broken connection of an idempotent
request). There is no client-side rate limiter: the server's fairness decides. Bodies and credentials are never logged.
"""

from __future__ import annotations

import asyncio
import io
import json
import math
import random
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from moorage.core.backoff import Backoff, parse_retry_after
from moorage.core.meta import JsonObject

from .config import Connection
from .credentials import Credential
from .errors import ApiError, ConnectionFailed, TooManyRequests, Unauthorized, error_of

Observer = Callable[[str, int], None]
"""Called with method and status code (0: no answer) of each attempt."""

_LARGE = 512 * 1024

BROKEN = (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError, TimeoutError, ConnectionError)
"""What aiohttp raises when a connection cannot be made, breaks or falls silent."""


@dataclass(frozen=True, slots=True)
class Request:
    """One call.

    Args:
        resource: what is counted and measured, such as `secrets` or `secrets/status`.
        idempotent: doing it twice is doing it once; None decides by the method.
    """

    method: str
    path: str
    resource: str = ""
    query: Mapping[str, str] = field(default_factory=dict)
    body: JsonObject | list[Any] | None = None
    content_type: str = "application/json"
    accept: str = "application/json"
    idempotent: bool | None = None

    @property
    def repeatable(self) -> bool:
        return self.method in ("GET", "HEAD", "PUT") if self.idempotent is None else self.idempotent


_BRIEFLY = Backoff(base=0.1, cap=2.0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one call; seconds. `attempts` counts broken connections, `asked` those that the server asked for."""

    timeout: float = 60.0
    connect: float = 10.0
    attempts: int = 4
    asked: int = 10
    longest_wait: float = 60.0
    backoff: Backoff = _BRIEFLY


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to send a request: `check` raises when it ended, `left` are the seconds until others may act on theirs.

    No attempt lasts longer than `left`, so that a request that hangs is given up before another leader writes.
    """

    check: Callable[[], None] = lambda: None
    left: Callable[[], float] = lambda: math.inf


UNCLAIMED = Claim()


class Transport:
    """The connection pool to one API server."""

    def __init__(
        self,
        connection: Connection,
        *,
        user_agent: str,
        limits: Limits | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self.connection = connection
        self.limits = limits or Limits()
        self.observers: list[Observer] = []
        self._agent, self._sleep = user_agent, sleep
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[str, ssl.SSLContext] | None = None

    async def open(self) -> None:
        """Make the pool."""
        timeout = aiohttp.ClientTimeout(total=self.limits.timeout, sock_connect=self.limits.connect)
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=90)
        self._session = aiohttp.ClientSession(
            connector=connector, timeout=timeout, trust_env=False, auto_decompress=True, raise_for_status=False
        )

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            for _ in range(3):  # aborted TLS connections hand back their sockets in the next turns of the loop
                await asyncio.sleep(0)

    async def json(self, request: Request, claim: Claim = UNCLAIMED) -> Any:
        """The decoded answer; None for an empty one. Attempts and retries keep within `claim`.

        Raises:
            ApiError: the server refused.
            ConnectionFailed: it could not be reached.
        """
        text = await self._text(request, claim)
        try:
            return json.loads(text) if text else None
        except ValueError as error:
            raise ConnectionFailed(self.connection.server, "the answer is not JSON") from error

    async def _text(self, request: Request, claim: Claim) -> str:
        broken = asked = 0
        renewed = False
        while True:
            try:
                return await self._once(request, claim.left())
            except Unauthorized:
                if renewed or not self.connection.credentials.refused():
                    raise
                renewed = True
            except _Asked as wait:
                asked += 1
                if asked > self.limits.asked or wait.seconds > self.limits.longest_wait:
                    raise wait.error from None
                await self._sleep(wait.seconds)
            except BROKEN as error:
                broken += 1
                if broken >= self.limits.attempts or not _may_repeat(request, error):
                    fix = "Is the server running, and is it the one that the kubeconfig names?"
                    raise ConnectionFailed(self.connection.server, _reason(error), fix) from error
                await self._sleep(self.limits.backoff.delay(broken - 1, random.random()))  # noqa: S311
            claim.check()

    async def _once(self, request: Request, left: float) -> str:
        total = max(0.001, min(self.limits.timeout, left))
        timeout = aiohttp.ClientTimeout(total=total, sock_connect=min(total, self.limits.connect))
        async with await self.send(request, timeout) as response:
            text = await response.text()
        if response.status < 300:
            return text
        if response.status < 400:
            raise ConnectionFailed(self.connection.server, "it redirects elsewhere, as no API server does")
        error = error_of(response.status, _decoded(text))
        seconds = _asked_wait(response, error)
        raise error if seconds is None else _Asked(error, seconds)

    async def send(self, request: Request, timeout: aiohttp.ClientTimeout | None = None) -> aiohttp.ClientResponse:
        """The bare response of one attempt; the caller closes it. Watches and logs read from it."""
        if self._session is None:
            raise ConnectionFailed(self.connection.server, "the client is closed")
        credential = await self.connection.credentials.current()
        status = 0
        try:
            response = await self._session.request(
                request.method,
                self._url(request),
                data=_encoded(request.body),
                headers=self._headers(request, credential),
                allow_redirects=False,
                ssl=self._context(credential),
                server_hostname=self.connection.tls.server_name or None,
                timeout=timeout or self._session.timeout,
            )
            status = response.status
        finally:
            for observe in self.observers:
                observe(request.method, status)
        return response

    def _url(self, request: Request) -> URL:
        url = URL(self.connection.server + request.path)
        return url.with_query(request.query) if request.query else url

    def _headers(self, request: Request, credential: Credential) -> CIMultiDict[str]:
        headers = CIMultiDict(self.connection.headers)
        headers["Accept"] = request.accept
        headers["User-Agent"] = self._agent
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        if credential.authorization:
            headers["Authorization"] = credential.authorization.reveal()
        return headers

    def _context(self, credential: Credential) -> ssl.SSLContext | bool:
        if self.connection.server.startswith("http://"):
            return True
        if self._tls is None or self._tls[0] != credential.certificate:
            context = self.connection.tls.context(credential.certificate, credential.key)
            self._tls = (credential.certificate, context)
        return self._tls[1]


def _encoded(body: JsonObject | list[Any] | None) -> bytes | io.BytesIO | None:
    """The body; a large one as a stream, so that it does not block the loop while it is sent."""
    if body is None:
        return None
    data = json.dumps(body, separators=(",", ":")).encode()
    return data if len(data) < _LARGE else io.BytesIO(data)


class _Asked(Exception):
    """A signal from `_once` to `_text`; never seen outside."""

    def __init__(self, error: ApiError, seconds: float) -> None:
        super().__init__()
        self.error, self.seconds = error, seconds


def _asked_wait(response: aiohttp.ClientResponse, error: ApiError) -> float | None:
    """Seconds that the server asks us to wait before the same request; None when it does not ask."""
    if response.status != 429 and response.status < 500:
        return None
    header = parse_retry_after(response.headers.get("Retry-After"), datetime.now(UTC))
    if header is None and isinstance(error, TooManyRequests):
        return error.retry_after
    return header


def _may_repeat(request: Request, error: BaseException) -> bool:
    """A connection that was never made has sent nothing; otherwise only idempotent requests go again."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return False
    return request.repeatable or isinstance(error, aiohttp.ClientConnectorError)


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"its certificate is not trusted: {error.certificate_error}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect: {error.os_error.strerror or error.os_error}".lower()
    return str(error) or type(error).__name__


def _decoded(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
