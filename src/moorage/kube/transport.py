"""One request to an API server: address, credentials, retries, errors.

Enters: a Request. Leaves: the decoded answer, or one exception of `errors`. It retries what the server asked to retry
(Retry-After on 429 and 5xx) and what cannot have happened twice (no connection, or a broken connection of an idempotent
request). There is no client-side rate limiter: the server's fairness decides. Bodies and credentials are never logged.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from moorage import __version__
from moorage.calling import wire
from moorage.calling.line import Answer, Flow, HttpError, NotConnected, Untrusted
from moorage.calling.pool import Door, Pool
from moorage.core.backoff import Backoff, parse_retry_after
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject

from .config import Connection
from .credentials import Credential
from .errors import ApiError, ConnectionFailed, TooManyRequests, Unauthorized, error_of

Observer = Callable[[str, int], None]
"""Called with method and status code (0: no answer) of each attempt."""

BROKEN = (HttpError, TimeoutError, ConnectionError)
"""What is raised when a connection cannot be made, breaks or falls silent."""
_PLAIN = re.compile(r"[A-Za-z0-9/._-]*")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")


class Request(NamedTuple):
    """One call. A tuple: one is made for each.

    Args:
        resource: what is counted and measured, such as `secrets` or `secrets/status`.
        idempotent: doing it twice is doing it once; None decides by the method.
    """

    method: str
    path: str
    resource: str = ""
    query: Mapping[str, str] = MappingProxyType({})
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

    def __init__(self, connection: Connection, limits: Limits | None = None) -> None:
        self.connection = connection
        self.limits = limits or Limits()
        self.observers: list[Observer] = []
        where = urlsplit(connection.server)
        self._secure, self._prefix = where.scheme != "http", where.path.rstrip("/")
        self._address = (where.hostname or "", where.port or (443 if self._secure else 80))
        host = where.netloc.rpartition("@")[2]
        self._fixed = _lines((("Host", host), ("User-Agent", f"moorage/{__version__}"), *connection.headers))
        self._pool: Pool | None = None
        self._tls: tuple[str, ssl.SSLContext] | None = None

    async def open(self) -> None:
        """Make the pool."""
        self._pool = Pool(*self._address)

    async def close(self) -> None:
        """Close all connections."""
        if self._pool is not None:
            pool, self._pool = self._pool, None
            await pool.close()

    async def json(self, request: Request, claim: Claim = UNCLAIMED) -> Any:
        """The decoded answer; None for an empty one. Attempts and retries keep within `claim`.

        Raises:
            ApiError: the server refused.
            ConnectionFailed: it could not be reached.
        """
        text = await self._text(request, claim)
        try:
            return wire.loads(text) if text else None
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
                await asyncio.sleep(wait.seconds)
            except BROKEN as error:
                broken += 1
                if broken >= self.limits.attempts or not _may_repeat(request, error):
                    fix = "Is the server running, and is it the one that the kubeconfig names?"
                    raise ConnectionFailed(self.connection.server, _reason(error), fix) from error
                await asyncio.sleep(self.limits.backoff.delay(broken - 1, random.random()))  # noqa: S311
            claim.check()

    async def _once(self, request: Request, left: float) -> str:
        total = max(0.001, min(self.limits.timeout, left))
        pool, credential = await self._ready()
        head = self._bytes(request, credential, "Accept-Encoding: gzip\r\n")
        status = 0
        try:
            answer = await pool.exchange(head, self._door(credential, min(total, self.limits.connect)), total)
            status = answer.status
        finally:
            self._observe(request.method, status)
        if status < 300:
            return answer.text
        if status < 400:
            raise ConnectionFailed(self.connection.server, "it redirects elsewhere, as no API server does")
        error = error_of(status, _decoded(answer.text))
        seconds = _asked_wait(answer, error)
        raise error if seconds is None else _Asked(error, seconds)

    async def flow(self, request: Request, silence: float | None) -> Flow:
        """The answer of one attempt as it comes, for watches and logs; the caller aborts it in the end.

        Args:
            silence: seconds until its head must be there.

        Raises:
            HttpError, TimeoutError: there was none (BROKEN).
        """
        pool, credential = await self._ready()
        status = 0
        try:
            head, door = self._bytes(request, credential), self._door(credential, self.limits.connect)
            answer = await pool.flow(head, door, silence)
            status = answer.status
        finally:
            self._observe(request.method, status)
        return answer

    async def _ready(self) -> tuple[Pool, Credential]:
        if self._pool is None:
            raise ConnectionFailed(self.connection.server, "the client is closed")
        return self._pool, await self.connection.credentials.current()

    def _observe(self, method: str, status: int) -> None:
        for observe in self.observers:
            observe(method, status)

    def _bytes(self, request: Request, credential: Credential, more: str = "") -> bytes:
        """The request as it goes over the wire."""
        path = self._prefix + request.path
        if not _PLAIN.fullmatch(path):
            path = quote(path, safe="/%:@!$&'()*+,;=~")
        query = _query(tuple(request.query.items())) if request.query else ""
        lines = f"Accept: {request.accept}\r\n{more}"
        if credential.authorization:
            lines += _lines((("Authorization", credential.authorization.reveal()),))
        body = b""
        if request.body is not None:
            body = wire.dumps(request.body)
            lines += f"Content-Type: {request.content_type}\r\n"
        if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
            lines += f"Content-Length: {len(body)}\r\n"
        return f"{request.method} {path}{query} HTTP/1.1\r\n{self._fixed}{lines}\r\n".encode() + body

    def _door(self, credential: Credential, seconds: float) -> Door:
        return Door(self._context(credential), self.connection.tls.server_name, seconds)

    def _context(self, credential: Credential) -> ssl.SSLContext | None:
        if not self._secure:
            return None
        if self._tls is None or self._tls[0] != credential.certificate:
            context = self.connection.tls.context(credential.certificate, credential.key)
            self._tls = (credential.certificate, context)
        return self._tls[1]


def _lines(headers: Iterable[tuple[str, str]]) -> str:
    """Header lines.

    Raises:
        InputError: a value holds what would begin another line.
    """
    for name, value in headers:
        if _CONTROL.search(value):
            raise InputError(name, "holds a line end or another control character", "Mend the kubeconfig")
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


@lru_cache(maxsize=64)
def _query(parameters: tuple[tuple[str, str], ...]) -> str:
    """A query as it is written; nearly all of ours are the same few."""
    return f"?{urlencode(parameters)}"


class _Asked(Exception):
    """A signal from `_once` to `_text`; never seen outside."""

    def __init__(self, error: ApiError, seconds: float) -> None:
        super().__init__()
        self.error, self.seconds = error, seconds


def _asked_wait(answer: Answer, error: ApiError) -> float | None:
    """Seconds that the server asks us to wait before the same request; None when it does not ask."""
    if answer.status != 429 and answer.status < 500:
        return None
    header = parse_retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
    if header is None and isinstance(error, TooManyRequests):
        return error.retry_after
    return header


def _may_repeat(request: Request, error: BaseException) -> bool:
    """A connection that was never made has sent nothing; otherwise only idempotent requests go again."""
    if isinstance(error, Untrusted):
        return False
    return request.repeatable or isinstance(error, NotConnected)


def _reason(error: BaseException) -> str:
    return "no answer in time" if isinstance(error, TimeoutError) else str(error) or type(error).__name__


def _decoded(text: str) -> Any:
    try:
        return wire.loads(text)
    except ValueError:
        return text
