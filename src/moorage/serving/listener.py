"""A listening socket: connections to an application, and an end that lets running requests finish.

Enters: what its connections share, and a TLS context or none. Leaves: a port, and connections (connection.py) that are looked after.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from contextlib import suppress

from .connection import Connection, Shared

_BACKLOG = 1024
_CHECK_EVERY = 5.0


class Listener:
    """A listening socket and its connections."""

    def __init__(self, shared: Shared, context: ssl.SSLContext | None = None) -> None:
        self._shared, self._context = shared, context
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen on an address; the port that was got."""
        loop = asyncio.get_running_loop()
        return self._began(await loop.create_server(self._connection, host, port, ssl=self._context, backlog=_BACKLOG))

    async def listen(self, bound: socket.socket) -> int:
        """Listen on a socket that has its address; its port."""
        loop = asyncio.get_running_loop()
        return self._began(await loop.create_server(self._connection, sock=bound, ssl=self._context, backlog=_BACKLOG))

    def _connection(self) -> Connection:
        return Connection(self._shared)

    def _began(self, server: asyncio.Server) -> int:
        self._server = server
        self._timer = asyncio.get_running_loop().call_later(_CHECK_EVERY, self._check)
        found: int = server.sockets[0].getsockname()[1]
        return found

    def _check(self) -> None:
        loop = asyncio.get_running_loop()
        for connection in list(self._shared.connections):
            connection.check(loop.time())
        self._timer = loop.call_later(_CHECK_EVERY, self._check)

    async def close(self, grace: float) -> None:
        """Stop listening, let running requests end for `grace` seconds, then cut."""
        if self._server is not None:
            self._server.close()
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._shared.connections):
            connection.finish()
        tasks = self._shared.tasks
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while tasks:
                    await asyncio.wait(list(tasks))
        for task in list(tasks):
            task.cancel()
        for connection in list(self._shared.connections):
            connection.transport.abort()
        self._server = None
