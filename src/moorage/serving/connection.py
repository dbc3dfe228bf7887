"""One HTTP/1.1 connection: bytes to exchanges, answers to bytes, one write an answer.

Enters: what a client sends, split by httptools. Leaves: each request to the application, in order, once it is whole (or is known
to be too large or too late); its answer in one piece, or in chunks as fast as the client reads. It knows nothing of Kubernetes, and of
a client's certificate only what `identify` makes of it. Source: RFC 9112; ADR 0008.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Literal, cast

import httptools
import structlog

BODY_LIMIT = 3 * 1024 * 1024
"""Bytes of a body at most; what is beyond is read and dropped."""
BODY_SECONDS = 60.0
"""How long a request may take to arrive."""
IDLE_SECONDS = 120.0
"""How long a connection may wait for its next request."""
_HEAD_LIMIT = 64 * 1024
_REQUEST_LINE = re.compile(rb"[A-Z]+ /")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_TEXT = "text/plain; charset=utf-8"
log = structlog.get_logger(__name__)


@dataclass(slots=True, eq=False)
class Exchange:
    """One request as it came.

    Attributes:
        path, query: still percent-encoded, without the question mark.
        headers: by lower-case name; the last value of a repeated one, but all of Accept.
        groups: the values of Impersonate-Group, which may repeat.
        fault: why the body is not whole: over the limit, or not there in BODY_SECONDS.
        peer: what `identify` made of the client's certificate.
    """

    peer: Any
    address: str
    method: str = ""
    path: str = ""
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    body: bytes = b""
    fault: Literal["", "large", "late"] = ""
    chunked: bool = True
    keep_alive: bool = True


@dataclass(slots=True)
class Response:
    """An answer: whole (`body`) or streamed (`stream`)."""

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: list[tuple[str, str]] = field(default_factory=list)
    stream: AsyncIterator[bytes] | None = None


Application = Callable[[Exchange], Awaitable[Response]]


@dataclass(slots=True, eq=False)
class Shared:
    """What the connections of one listener share.

    Args:
        most: connections at once.
        limit: bytes of a body.
        identify: who a client is by its verified certificate, as `ssl.SSLSocket.getpeercert` gives it; asked once a connection.
        no_such_method: text and media type of the answer to a method that HTTP does not know.
    """

    app: Application
    most: int = 2000
    limit: int = BODY_LIMIT
    identify: Callable[[Mapping[str, Any] | None], Any] = lambda _certificate: None
    no_such_method: tuple[str, str] = ("Method Not Allowed", _TEXT)
    connections: set[Connection] = field(default_factory=set)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)


class Connection(asyncio.Protocol):
    """One client. Requests that it sends ahead wait their turn, and it is not read further meanwhile."""

    def __init__(self, shared: Shared) -> None:
        self._shared, self._loop = shared, asyncio.get_running_loop()
        self._waiting: deque[Exchange] = deque()
        self._parts: list[bytes] = []
        self._task: asyncio.Task[None] | None = None
        self._url, self._size = b"", 0
        self.receiving = self._dispatched = self._streaming = self._paused = False
        self._lost = self._last = False  # the client is gone; no request is taken after those that came
        self._writable: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self._parser = httptools.HttpRequestParser(self)
        tls, address = transport.get_extra_info("ssl_object"), transport.get_extra_info("peername")
        self._peer = self._shared.identify(tls.getpeercert()) if tls is not None else None
        self._address = address[0] if address else ""
        self._full = len(self._shared.connections) >= self._shared.most
        self._since = self._loop.time()
        self._shared.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self._shared.connections.discard(self)
        self._lost = self._last = True
        self._waiting.clear()
        self.resume_writing()
        if self._streaming and self._task is not None:
            self._task.cancel()

    def data_received(self, data: bytes) -> None:
        if self._last:
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._last = True
        except httptools.HttpParserError as error:
            if isinstance(error, httptools.HttpParserInvalidMethodError) and _REQUEST_LINE.match(data):
                self._refuse(405, *self._shared.no_such_method)
            else:
                self._refuse(400, "Invalid HTTP request received.")
        if self.receiving and not self._exchange.method:
            self._size += len(data)
            if self._size > _HEAD_LIMIT:
                self._refuse(431, "Request Header Fields Too Large")

    # What httptools calls.

    def on_message_begin(self) -> None:
        self._exchange = Exchange(self._peer, self._address)
        self._url, self._size = b"", 0
        self.receiving, self._dispatched = True, False
        self._since = self._loop.time()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        exchange = self._exchange
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        if key == "impersonate-group":
            exchange.groups = (*exchange.groups, text)
        elif key == "accept" and key in exchange.headers:
            exchange.headers[key] += "," + text
        elif key in exchange.headers and key.startswith("impersonate-extra-"):
            exchange.headers[key] += "\n" + text
        else:
            exchange.headers[key] = text

    def on_headers_complete(self) -> None:
        exchange = self._exchange
        self._read_url(exchange)
        exchange.method = self._parser.get_method().decode("latin-1")
        exchange.chunked = self._parser.get_http_version() != "1.0"
        exchange.keep_alive = exchange.chunked and self._parser.should_keep_alive()
        self._size = 0
        told = exchange.headers.get("content-length", "")
        if told.isdecimal() and int(told) > self._shared.limit:
            self._dispatch("large")
        elif exchange.headers.get("expect", "").lower() == "100-continue" and not self._task:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _read_url(self, exchange: Exchange) -> None:
        url = self._url
        if not url.startswith(b"/") or b"#" in url:  # the absolute form
            parsed = httptools.parse_url(url)
            exchange.path, exchange.query = (
                (parsed.path or b"").decode("latin-1"),
                (parsed.query or b"").decode("latin-1"),
            )
        else:
            exchange.path, _, exchange.query = url.decode("latin-1").partition("?")

    def on_body(self, body: bytes) -> None:
        if self._dispatched:
            return
        self._size += len(body)
        self._parts.append(body)
        if self._size > self._shared.limit:
            self._dispatch("large")

    def on_message_complete(self) -> None:
        self.receiving = False
        if not self._dispatched:
            self._dispatch("")

    # Requests, one after the other.

    def _dispatch(self, fault: Literal["", "large", "late"]) -> None:
        exchange, parts = self._exchange, self._parts
        self._dispatched = True
        if self._last:
            return
        exchange.fault = fault
        exchange.body = b"" if fault else parts[0] if len(parts) == 1 else b"".join(parts)
        self._parts = []
        self._waiting.append(exchange)
        if self._task is None:
            self._task = self._loop.create_task(self._answer_all())
            self._shared.tasks.add(self._task)
            self._task.add_done_callback(self._shared.tasks.discard)
        elif not self._paused:
            self._paused = True
            self.transport.pause_reading()

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                await self._answer(self._waiting.popleft())
            self._since = self._loop.time()
        except Exception as error:  # noqa: BLE001 - whatever went wrong, this client gets no half answer
            log.error("connection_failed", error=repr(error))
            self.transport.abort()
        finally:
            self._task = None
            if self._paused and not self.transport.is_closing():
                self._paused = False
                self.transport.resume_reading()

    async def _answer(self, exchange: Exchange) -> None:
        if self._full:
            self._refuse(503, "Service Unavailable")
            return
        answer = await self._shared.app(exchange)
        closing = self._ends_with(exchange)
        if answer.stream is not None:
            await self._stream(exchange, answer, closing)
        elif not self.transport.is_closing():
            head = _head(answer.status, answer.content_type, closing)
            more = _extra(answer.headers) if answer.headers else b""
            body = b"" if exchange.method == "HEAD" else answer.body
            self.transport.write(b"%b%bcontent-length: %d\r\n\r\n%b" % (head, more, len(answer.body), body))
        if closing or self._ends_with(exchange):
            self._waiting.clear()
            self.transport.close()

    def _ends_with(self, exchange: Exchange) -> bool:
        return not exchange.keep_alive or (self._last and not self._waiting)

    async def _stream(self, exchange: Exchange, answer: Response, closing: bool) -> None:
        """Pass a stream on until it ends or the client goes; a client of HTTP/1.0 sees its end by the connection's."""
        stream = cast(Any, answer.stream)
        coding = b"transfer-encoding: chunked\r\n" if exchange.chunked else b""
        self.transport.write(
            _head(answer.status, answer.content_type, closing) + _extra(answer.headers) + coding + b"\r\n"
        )
        self._streaming = not self._lost
        try:
            if self._streaming and exchange.method != "HEAD":
                await self._pump(stream, exchange.chunked)
        finally:
            self._streaming = False
            with suppress(AttributeError):
                await stream.aclose()

    async def _pump(self, stream: Any, chunked: bool) -> None:
        try:
            async for piece in stream:
                if piece:
                    self.transport.write(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
                if self._writable is not None:
                    await self._writable
        except Exception as error:  # noqa: BLE001 - the answer has begun; all that is left is to end it
            log.error("stream_failed", error=repr(error))
        if chunked:
            self.transport.write(b"0\r\n\r\n")

    def pause_writing(self) -> None:
        self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    # Ends.

    def _refuse(self, status: int, why: str, content_type: str = _TEXT) -> None:
        """Say why nothing more is read, unless an answer is under way."""
        if self._task is None or self._full:
            head = _head(status, content_type, True)
            self.transport.write(b"%bcontent-length: %d\r\n\r\n%b" % (head, len(why), why.encode()))
            self.transport.close()
        self._last = True

    def finish(self) -> None:
        """Close as soon as no answer is under way."""
        self._last = True
        if self._task is None:
            self.transport.close()

    def check(self, now: float) -> None:
        """Give up a client that has been idle, or sending, for too long."""
        if self._task is not None or now - self._since <= (BODY_SECONDS if self.receiving else IDLE_SECONDS):
            return
        if not self.receiving or self._dispatched or not self._exchange.method:
            self.transport.close()
        else:
            self._exchange.keep_alive = False
            self._dispatch("late")


@lru_cache(maxsize=256)
def _head(status: int, content_type: str, closing: bool) -> bytes:
    """Status line and the headers that every answer has."""
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = ""
    end = "connection: close\r\n" if closing else ""
    text = f"HTTP/1.1 {status} {phrase}\r\ncontent-type: {content_type}\r\ncache-control: no-cache, private\r\n{end}"
    return text.encode("latin-1")


def _extra(headers: list[tuple[str, str]]) -> bytes:
    """Further headers; control characters in values become blanks."""
    lines = [f"{name.lower()}: {_CONTROL.sub(' ', value)}\r\n" for name, value in headers]
    return "".join(lines).encode("utf-8", "replace")
