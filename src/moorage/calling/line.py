"""One HTTP/1.1 connection to a server: it carries one request at a time, whose answer comes whole or flows.

Enters: a head and a body as bytes. Leaves: an Answer, or a Flow of pieces, or one error of the tree below. One write a request, one future
an answer. It knows neither what is asked nor who may ask it again. Source: RFC 9112; ADR 0015.

HttpError
├── NotConnected     there was no connection, so nothing was sent
│   └── Untrusted    the TLS handshake failed
└── Broken           the connection ended, or carried nonsense
    ├── Stale        a kept connection ended before the answer began
    └── TooLarge     the answer is larger than it may be
"""

from __future__ import annotations

import asyncio
import ssl
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import httptools

if TYPE_CHECKING:
    from .pool import Pool

_HEAD_LIMIT = 256 * 1024
_AHEAD = 256 * 1024
"""Bytes of a Flow that are read ahead of its reader."""
_GZIP = 31  # window bits of zlib that mean: a gzip member


class HttpError(Exception):
    """The connection did not carry an answer."""


class NotConnected(HttpError):
    """There was no connection, so nothing was sent; `why` is what the network said."""

    def __init__(self, why: str) -> None:
        self.why = why
        super().__init__(f"cannot connect: {why.lower()}")


class Untrusted(NotConnected):
    """The TLS handshake failed; trying again changes nothing."""

    def __init__(self, why: str) -> None:
        self.why = why
        HttpError.__init__(self, why)


class Broken(HttpError):
    """The connection ended, or carried nonsense; the request may have been acted upon."""


class Stale(Broken):
    """A kept connection ended before a byte of the answer came: most likely the server had closed it already."""


class TooLarge(Broken):
    """The answer is larger than it may be; `status` is what it began with."""

    def __init__(self, limit: int, status: int) -> None:
        self.status = status
        super().__init__(f"the answer is larger than {limit} bytes")


class Answer(NamedTuple):
    """A whole answer, a tuple, as one is made for each request; header names are in lower case, the last value of a repeated one counts, and cookies stand a line each."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as UTF-8; what is none is shown as replacement characters."""
        return self.body.decode("utf-8", "replace")


class Flow:
    """An answer whose body comes piece by piece; `abort` it in the end."""

    def __init__(self, line: Line, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, headers
        self._line = line
        self._pieces: list[bytes] = []
        self._size, self._ended = 0, False
        self._error: HttpError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._until = 0.0
        self._timer: asyncio.TimerHandle | None = None

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
            self._waiter = self._line.pool.loop.create_future()
            if silence is not None:
                self._bound(silence)
            await self._waiter
        data, self._pieces, self._size = b"".join(self._pieces), [], 0
        self._line.resume()
        return data

    def _bound(self, silence: float) -> None:
        """Wait no longer than that. One timer serves many pieces: it looks again when something has come meanwhile."""
        loop = self._line.pool.loop
        self._until = loop.time() + silence
        if self._timer is None or self._timer.when() > self._until:
            self._cancel()
            self._timer = loop.call_at(self._until, self._silent)

    def _silent(self) -> None:
        self._timer = None
        if self._waiter is None or self._waiter.done():
            return
        loop = self._line.pool.loop
        if loop.time() < self._until:
            self._timer = loop.call_at(self._until, self._silent)
        else:
            self._waiter.set_exception(TimeoutError())

    def _cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def read(self, silence: float | None = None) -> bytes:
        """All that comes until the end. Raises as `more`."""
        pieces = []
        while piece := await self.more(silence):
            pieces.append(piece)
        return b"".join(pieces)

    def abort(self) -> None:
        """Drop the connection at once: nobody waits for a farewell that a dead peer never sends."""
        self._cancel()
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


class Line(asyncio.Protocol):
    """One connection; `since` is when it carried its last whole answer, 0 before the first."""

    def __init__(self, pool: Pool, tls: ssl.SSLContext | None) -> None:
        self.pool, self.tls = pool, tls
        self.since = 0.0
        self.open = self._paused = self._began = False
        self._parser = httptools.HttpResponseParser(self)
        self._headers: dict[str, str] = {}
        self._head_size = self._body_size = 0
        self._body: list[bytes] = []
        self._answer: asyncio.Future[Any] | None = None
        self._flow: Flow | None = None
        self._flowing = self._headed = False

    def ask(self, request: bytes, *, flowing: bool) -> asyncio.Future[Any]:
        """Send a request; the future gives an Answer, or a Flow once its head is there."""
        self._answer = self.pool.loop.create_future()
        self._flowing, self._began = flowing, False
        self.transport.write(request)
        return self._answer

    def abort(self) -> None:
        """Drop the connection; what was asked is not answered any more."""
        self.open = False
        self.transport.abort()

    def expire(self) -> None:
        """The time of the request is over."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(TimeoutError())
            self.abort()

    def pause(self) -> None:
        """Read no more for now."""
        if not self._paused and self.open:
            self._paused = True
            self.transport.pause_reading()

    def resume(self) -> None:
        """Read on."""
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
            kind = Stale if self.since and not self._began else Broken
            self._fail(kind(str(error or "the server closed the connection")))

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
        self._head_size = self._body_size = 0
        self._began = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_size += len(name) + len(value)
        if self._head_size > _HEAD_LIMIT:
            raise ValueError("its head is too large")
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == "set-cookie" and key in self._headers:
            text = f"{self._headers[key]}\n{text}"
        self._headers[key] = text

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
            return
        self._body_size += len(body)
        limit = self.pool.limit
        if limit is None or self._body_size <= limit:
            self._body.append(body)
        else:
            self._fail(TooLarge(limit, self._parser.get_status_code()))
            self.abort()

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
        except (zlib.error, TooLarge) as error:
            answer.set_exception(error if isinstance(error, TooLarge) else Broken(f"its gzip cannot be read: {error}"))
            self.abort()
            return
        answer.set_result(Answer(self._parser.get_status_code(), self._headers, body))
        if self.open and self._parser.should_keep_alive():
            self.pool.keep(self)
        else:
            self.transport.close()

    def _decoded(self) -> bytes:
        body = self._body[0] if len(self._body) == 1 else b"".join(self._body)
        if not body or self._headers.get("content-encoding") != "gzip":
            return body
        limit = self.pool.limit
        if limit is None:
            return zlib.decompress(body, _GZIP)
        inflate = zlib.decompressobj(_GZIP)
        found = inflate.decompress(body, limit + 1)
        if len(found) > limit:
            raise TooLarge(limit, self._parser.get_status_code())
        if not inflate.eof:
            raise zlib.error("it ends too early")
        return found


def _has_length(headers: Mapping[str, str]) -> bool:
    return "content-length" in headers or "transfer-encoding" in headers
