"""The connections to one server: made when needed, kept for a while, never shared by two requests at once.

Enters: a request as bytes, a Door. Leaves: an Answer or a Flow (line.py). It follows neither redirects nor proxies, and repeats nothing:
who may repeat is the caller's to say. Source: RFC 9112; ADR 0015.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, TypeAlias, cast

from .line import Answer, Flow, Line, NotConnected, Untrusted

KEPT = 90.0
"""Seconds that an idle connection is kept."""
_FAREWELL = 1.0
Addresses: TypeAlias = Callable[[], Awaitable[Sequence[tuple[str, int]]]]
"""Addresses and ports of a server; raises OSError when it has none."""


class Door(NamedTuple):
    """How a connection is made: TLS or none, the name that the certificate must have, seconds that it may take."""

    tls: ssl.SSLContext | None = None
    name: str = ""
    seconds: float = 10.0


class Pool:
    """The connections to one server; as many as there are requests at once.

    Args:
        addresses: of the host, asked for each new connection and tried in their order; None: the loop finds them.
        limit: bytes of a whole answer, also after decompression; None: any.
        kept: seconds that an idle connection is kept.
    """

    def __init__(
        self, host: str, port: int, *, addresses: Addresses | None = None, limit: int | None = None, kept: float = KEPT
    ) -> None:
        self.host, self.port, self.limit = host, port, limit
        self._addresses, self._seconds = addresses, kept
        self.loop = asyncio.get_running_loop()
        self.lines: set[Line] = set()
        self._idle: list[Line] = []

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

    def keep(self, line: Line) -> None:
        """Take a connection back for the next request."""
        line.since = self.loop.time()
        self._idle.append(line)

    def _kept(self, tls: ssl.SSLContext | None) -> Line | None:
        while self._idle:
            line = self._idle.pop()
            if line.open and not line.transport.is_closing():
                if line.tls is tls and self.loop.time() - line.since < self._seconds:
                    return line
                line.transport.close()
        return None

    async def _connected(self, door: Door) -> Line:
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

    async def _connect(self, door: Door) -> Line:
        refused: OSError | None = None
        try:
            for address in ((self.host, self.port),) if self._addresses is None else await self._addresses():
                try:
                    return await self._connect_to(address, door)
                except ssl.SSLError:
                    raise
                except OSError as error:
                    refused = error
            raise refused or OSError(None, "it has no address")
        except ssl.SSLCertVerificationError as error:
            raise Untrusted(f"its certificate is not trusted: {error.verify_message or error}") from error
        except ssl.SSLError as error:
            raise Untrusted(f"no TLS: {error.reason or error}") from error
        except OSError as error:
            raise NotConnected(str(error.strerror or error)) from error

    async def _connect_to(self, address: tuple[str, int], door: Door) -> Line:
        named = (door.name or self.host) if door.tls is not None else None
        _, line = await self.loop.create_connection(
            lambda: Line(self, door.tls), *address, ssl=door.tls, server_hostname=named
        )
        return line

    def forget(self) -> None:
        """Close what is idle: one of them was found to be dead, and the others may be."""
        while self._idle:
            self._idle.pop().transport.close()

    async def close(self) -> None:
        """Drop all connections."""
        self._idle.clear()
        for line in tuple(self.lines):
            line.abort()
        for _ in range(3):  # aborted TLS connections hand back their sockets in the next turns of the loop
            await asyncio.sleep(0)


def _drop(attempt: asyncio.Future[Line]) -> None:
    """Give up an attempt to connect; one that was made meanwhile is closed."""
    if not attempt.done():
        attempt.cancel()
    elif not attempt.cancelled() and attempt.exception() is None:
        attempt.result().abort()
