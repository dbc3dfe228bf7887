"""The listening socket: TLS connections to the application, and an end that lets running requests finish.

Enters: an application and a TLS context. Leaves: a port, and connections (connection.py) that are looked after.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress

from moorage.apiserver.connection import Application, Connection, Shared

_CONNECTIONS = 2000
_CHECK_EVERY = 5.0


class Listener:
    """A listening socket and its connections."""

    def __init__(self, app: Application, context: ssl.SSLContext) -> None:
        self._shared = Shared(app, _CONNECTIONS)
        self._context = context
        self._server: asyncio.Server | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen; the port that was got."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: Connection(self._shared), host, port, ssl=self._context, backlog=1024
        )
        self._timer = loop.call_later(_CHECK_EVERY, self._check)
        found: int = self._server.sockets[0].getsockname()[1]
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
