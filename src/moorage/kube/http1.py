"""HTTP/1.1 towards one server: a pool of kept connections, whole answers, and answers that flow.

Enters: a head and a body as bytes. Leaves: an Answer, or a Flow of pieces. One write a request, one future an answer. It knows nothing of
Kubernetes, follows neither redirects nor proxies, and repeats nothing: who may repeat is the caller's to say. Source: RFC 9112; ADR 0014.
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import httptools

KEPT = 90.0
"""Seconds that an idle connection is kept."""
_HEAD_LIMIT = 256 * 1024
_AHEAD = 256 * 1024
"""Bytes of a Flow that are read ahead of its reader."""
_FAREWELL = 1.0
_GZIP = 31  # window bits of zlib that mean: a gzip member


class HttpError(Exception):
    """The connection did not carry an answer."""


class NotConnected(HttpError):
    """There was no connection, so nothing was sent."""


class Untrusted(NotConnected):
    """The TLS handshake failed; trying again changes nothing."""


class Broken(HttpError):
    """The connection ended, or carried nonsense; the request may have been acted upon."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole answer; header names are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none is shown as replacement characters."""
        return self.body.decode("utf-8", "replace")


class Flow:
    """An answer whose body comes piece by piece; `abort` it in the end."""

    def __init__(self, line: _Line, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers
        self._line = line
        self._pieces: list[bytes] = []
        self._size, self._ended = 0, False
        self._error: HttpError | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def more(self, silence: float | None = None) -> bytes:
        """What has come since the last call, once there is something; b"" at the end.

        Args:
            silence: seconds without a byte after which it is given up.

        Raises:
            Broken: the connection broke. TimeoutError: it fell silent.
        """
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            async with asyncio.timeout(silence):
                await self._waiter
        data, self._pieces, self._size = b"".join(self._pieces), [], 0
        self._line.resume()
        return data

    async def read(self, silence: float | None = None) -> bytes:
        """All that comes until the end. Raises as `more`."""
        pieces = []
        while piece := await self.more(silence):
            pieces.append(piece)
        return b"".join(pieces)

    def abort(self) -> None:
        """Drop the connection at once: nobody waits for a farewell that a dead peer never sends."""
        self._line.abort()

    def feed(self, data: bytes) -> None:
        """Take a piece from the line."""
        self._pieces.append(data)
        self._size += len(data)
        if self._size > _AHEAD:
            self._line.pause()
        self._wake()

    def end(self, error: HttpError | None) -> None:
        """Take the end from the line."""
        self._ended, self._error = True, error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class _Line(asyncio.Protocol):
    """One connection: it carries one request at a time."""

    def __init__(self, pool: Pool, tls: ssl.SSLContext | None) -> None:
        self.pool, self.tls = pool, tls
        self.since = 0.0
        self.open = self._paused = False
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head_size = 0
        self._body: list[bytes] = []
        self._answer: asyncio.Future[Any] | None = None
        self._flow: Flow | None = None
        self._flowing = self._headed = False

    def ask(self, request: bytes, *, flowing: bool) -> asyncio.Future[Any]:
        """Send a request; the future gives an Answer, or a Flow once its head is there."""
        self._answer = self.pool.loop.create_future()
        self._flowing = flowing
        self.transport.write(request)
        return self._answer

    def abort(self) -> None:
        self.open = False
        self.transport.abort()

    def expire(self) -> None:
        """The time of the request is over."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(TimeoutError())
            self.abort()

    def pause(self) -> None:
        if not self._paused and self.open:
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        if self._paused and self.open:
            self._paused = False
            self.transport.resume_reading()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.open = True
        self.pool.lines.add(self)

    def data_received(self, data: bytes) -> None:
        if self._answer is None and self._flow is None:
            self.abort()  # nobody asked
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._fail(Broken(f"the answer is not HTTP: {error}"))
            self.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self.open = False
        self.pool.lines.discard(self)
        if self._headed and error is None and not _has_length(self._headers):
            self.on_message_complete()  # such a body ends with its connection
        else:
            self._fail(Broken(str(error or "the server closed the connection")))

    def _fail(self, error: HttpError) -> None:
        answer, flow = self._answer, self._flow
        self._answer = self._flow = None
        if answer is not None and not answer.done():
            answer.set_exception(error)
        if flow is not None:
            flow.end(error)

    # What httptools calls.

    def on_message_begin(self) -> None:
        self._headers, self._body = {}, []
        self._head_size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if self._head_size > _HEAD_LIMIT:
            raise ValueError("its head is too large")
        self._headers[name.decode("latin-1").lower()] = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        self._headed = status >= 200
        if self._flowing and self._headed and self._answer is not None and not self._answer.done():
            self._flow = Flow(self, status, self._headers)
            self._answer.set_result(self._flow)
            self._answer = None

    def on_body(self, body: bytes) -> None:
        if self._flow is not None:
            self._flow.feed(body)
        else:
            self._body.append(body)

    def on_message_complete(self) -> None:
        if not self._headed:
            return  # 1xx: the answer is still to come
        self._headed = False
        if self._flow is not None:
            self._flow.end(None)
            self._flow = None
            return
        answer, self._answer = self._answer, None
        if answer is None or answer.done():
            return
        try:
            body = self._decoded()
        except zlib.error as error:
            answer.set_exception(Broken(f"its gzip cannot be read: {error}"))
            self.abort()
            return
        answer.set_result(Answer(self._parser.get_status_code(), self._headers, body))
        if self.open and self._parser.should_keep_alive():
            self.pool.keep(self)
        else:
            self.transport.close()

    def _decoded(self) -> bytes:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        return zlib.decompress(body, _GZIP) if body and self._headers.get("content-encoding") == "gzip" else body


def _has_length(headers: Mapping[str, str]) -> bool:
    return "content-length" in headers or "transfer-encoding" in headers


class Pool:
    """The connections to one server; as many as there are requests at once."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port
        self.loop = asyncio.get_running_loop()
        self.lines: set[_Line] = set()
        self._idle: list[_Line] = []

    async def exchange(self, request: bytes, door: Door, seconds: float | None = None) -> Answer:
        """One request, its whole answer. A cancelled call drops its connection.

        Args:
            seconds: that all of it may take.

        Raises:
            HttpError: there was none. TimeoutError: none in time.
        """
        return cast(Answer, await self._asked(request, door, seconds, flowing=False))

    async def flow(self, request: bytes, door: Door, seconds: float | None = None) -> Flow:
        """One request whose answer flows, once its head is there; arguments and errors as of `exchange`."""
        return cast(Flow, await self._asked(request, door, seconds, flowing=True))

    async def _asked(self, request: bytes, door: Door, seconds: float | None, *, flowing: bool) -> Any:
        until = None if seconds is None else self.loop.time() + seconds
        line = self._kept(door.tls) or await self._connected(door)
        answer = line.ask(request, flowing=flowing)
        timer = None if until is None else self.loop.call_at(until, line.expire)
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.cancelled():  # else the line is another's by now
                line.abort()
            elif flowing and answer.exception() is None:
                answer.result().abort()
            raise
        finally:
            if timer is not None:
                timer.cancel()

    def keep(self, line: _Line) -> None:
        """Take a connection back for the next request."""
        line.since = self.loop.time()
        self._idle.append(line)

    def _kept(self, tls: ssl.SSLContext | None) -> _Line | None:
        while self._idle:
            line = self._idle.pop()
            if line.open and not line.transport.is_closing():
                if line.tls is tls and self.loop.time() - line.since < KEPT:
                    return line
                line.transport.close()
        return None

    async def _connected(self, door: Door) -> _Line:
        """A new connection. Whoever is cancelled meanwhile ends the attempt first, for a second at most: asyncio
        forgets the socket of a TLS handshake that is cancelled before it began."""
        attempt = asyncio.ensure_future(self._connect(door))
        try:
            done, _ = await asyncio.wait({attempt}, timeout=door.seconds)
        except asyncio.CancelledError:
            await asyncio.wait({attempt}, timeout=_FAREWELL)
            _drop(attempt)
            raise
        if not done:
            _drop(attempt)
            raise TimeoutError
        return attempt.result()

    async def _connect(self, door: Door) -> _Line:
        named = (door.name or self.host) if door.tls is not None else None
        try:
            _, line = await self.loop.create_connection(
                lambda: _Line(self, door.tls), self.host, self.port, ssl=door.tls, server_hostname=named
            )
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(f"its certificate is not trusted: {error.verify_message or error}") from error
        except ssl.SSLError as error:
            raise Untrusted(f"no TLS: {error.reason or error}") from error
        except OSError as error:
            raise NotConnected(f"cannot connect: {error.strerror or error}".lower()) from error
        return line

    async def close(self) -> None:
        """Drop all connections."""
        self._idle.clear()
        for line in tuple(self.lines):
            line.abort()
        for _ in range(3):  # aborted TLS connections hand back their sockets in the next turns of the loop
            await asyncio.sleep(0)


@dataclass(frozen=True, slots=True)
class Door:
    """How a connection is made: TLS or none, the name that the certificate must have, seconds that it may take."""

    tls: ssl.SSLContext | None = None
    name: str = ""
    seconds: float = 10.0


def _drop(attempt: asyncio.Future[_Line]) -> None:
    """Give up an attempt to connect; one that was made meanwhile is closed."""
    if not attempt.done():
        attempt.cancel()
    elif not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()
