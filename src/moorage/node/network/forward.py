"""Forwards TCP connections from one address and port to whichever backend is chosen for each.

Enters: a listening address and a function that picks backends. Leaves: bytes, both ways, half-closes included. It must not
look into the bytes, nor know Services or pods. A connection stays with its backend; a change of backends concerns new ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import cast

Backend = tuple[str, int]
Choose = Callable[[str], Sequence[Backend]]
"""Backends for a client address, best first; a later one is tried when an earlier one refuses."""

_CONNECT_TIMEOUT = 5.0


class Forwarder:
    """One listening socket."""

    def __init__(self, choose: Choose) -> None:
        self._choose = choose
        self._server: asyncio.Server | None = None
        self._links: set[_Client] = set()

    @property
    def listening(self) -> bool:
        return self._server is not None

    async def listen(self, host: str, port: int) -> None:
        """Starts to accept connections.

        Raises:
            OSError: the address is taken, or the port needs a privilege.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Client(self._choose, self._links), host, port, backlog=512)

    async def stop_listening(self) -> None:
        """Accepts no more; connections that stand go on."""
        if self._server is not None:
            server, self._server = self._server, None
            server.close()

    async def close(self) -> None:
        """Accepts no more and ends all connections."""
        await self.stop_listening()
        for link in list(self._links):
            link.abort()


class _Side(asyncio.Protocol):
    """One end of a link; what it receives goes to the other end."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.other: _Side | None = None
        self.ended = False
        """It sends nothing any more."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.write(data)

    def eof_received(self) -> bool:
        """A side may end before the other; when both have, nobody else closes what is still open."""
        self.ended = True
        other = self.other
        if other is not None and other.transport is not None and other.transport.can_write_eof():
            other.transport.write_eof()
        return other is None or not other.ended

    def connection_lost(self, exc: Exception | None) -> None:
        other, self.other = self.other, None
        if other is not None and other.transport is not None:
            other.transport.abort() if exc else other.transport.close()

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        other = self.other
        if other is not None and other.transport is not None and not other.transport.is_closing():
            other.transport.resume_reading()


class _Client(_Side):
    """The accepted end: connects to a backend, then lets the bytes flow."""

    def __init__(self, choose: Choose, links: set[_Client]) -> None:
        super().__init__()
        self._choose, self._links = choose, links
        self._task: asyncio.Task[None] | None = None
        self._early: list[bytes] = []
        self._early_end = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()
        self._links.add(self)
        self._task = asyncio.get_running_loop().create_task(self._connect(self.transport))

    def data_received(self, data: bytes) -> None:
        """uvloop starts to read after `connection_made`, whatever was paused there: what comes early is kept."""
        if self.other is None and self.transport is not None:
            self._early.append(data)
            self.transport.pause_reading()
        else:
            super().data_received(data)

    def eof_received(self) -> bool:
        self._early_end = self.other is None
        return super().eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._links.discard(self)
        if self._task is not None:
            self._task.cancel()
        super().connection_lost(exc)

    def abort(self) -> None:
        if self.transport is not None:
            self.transport.abort()

    async def _connect(self, mine: asyncio.Transport) -> None:
        peer = mine.get_extra_info("peername") or ("",)
        backend = await self._first(self._choose(str(peer[0])))
        if backend is None or mine.is_closing():
            mine.abort()
            return
        self.other, backend.other = backend, self
        for data in self._early:
            super().data_received(data)
        self._early.clear()
        if self._early_end:
            super().eof_received()
        mine.resume_reading()

    async def _first(self, backends: Sequence[Backend]) -> _Side | None:
        loop = asyncio.get_running_loop()
        for host, port in backends:
            side = _Side()
            try:
                async with asyncio.timeout(_CONNECT_TIMEOUT):
                    await loop.create_connection(lambda side=side: side, host, port)  # type: ignore[misc]
            except (OSError, TimeoutError):
                continue
            if side.transport is not None and not side.transport.is_closing():
                return side
        return None
