"""A TCP proxy that can fall silent, cut its connections, or refuse: the bad days of a network."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass
class TcpProxy:
    """Forwards `port` to `target`. While `silent`, it accepts and keeps connections but forwards nothing."""

    target: tuple[str, int]
    port: int = 0
    accepted: int = 0
    _all: list[asyncio.StreamWriter] = field(default_factory=list)
    _pumps: set[asyncio.Task[None]] = field(default_factory=set)
    _flowing: asyncio.Event = field(default_factory=asyncio.Event)

    def silence(self) -> None:
        """Keep all connections, forward nothing."""
        self._flowing.clear()

    def resume(self) -> None:
        """Forward again; what connections held back is lost with them (`cut`) or goes on."""
        self._flowing.set()

    def cut(self) -> None:
        """Break all connections."""
        for writer in self._all:
            writer.transport.abort()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self._all.append(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        self._all += [up_writer]
        for source, sink in ((reader, up_writer), (up_reader, writer)):
            task = asyncio.create_task(self._pump(source, sink))
            self._pumps.add(task)
            task.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self._flowing.wait()
                sink.write(data)
                await sink.drain()
        except OSError:
            pass
        finally:
            sink.close()

    async def end(self) -> None:
        self.cut()
        for task in tuple(self._pumps):
            task.cancel()
        await asyncio.gather(*self._pumps, *(writer.wait_closed() for writer in self._all), return_exceptions=True)


@asynccontextmanager
async def tcp_proxy(host: str, port: int) -> AsyncIterator[TcpProxy]:
    """A proxy in front of `host:port`; forwarding until told otherwise."""
    proxy = TcpProxy((host, port))
    proxy.resume()
    server = await asyncio.start_server(proxy.connected, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        await proxy.end()
