"""The HTTP/1.1 side: uvicorn's httptools protocol on our own TLS listener, with the client certificate's user.

Touches uvicorn internals (pinned version): `HttpToolsProtocol.connection_made` and its per-connection `app_state`.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import suppress
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from moorage.apiserver.auth import certificate_user

_KEEP_ALIVE = 120
_CONNECTIONS = 2000


class PeerProtocol(HttpToolsProtocol):
    """Puts the user of the verified client certificate into `scope["state"]["peer"]`."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        connection = transport.get_extra_info("ssl_object")
        self.app_state = {"peer": certificate_user(connection.getpeercert()) if connection is not None else None}
        super().connection_made(transport)  # type: ignore[arg-type]


class Listener:
    """A listening socket and its connections."""

    def __init__(self, app: Any, context: ssl.SSLContext) -> None:
        self._config = Config(
            app,
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            http=PeerProtocol,
            ws="none",
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=_KEEP_ALIVE,
            limit_concurrency=_CONNECTIONS,
            h11_max_incomplete_event_size=64 * 1024,
        )
        self._config.load()
        self._state = ServerState()
        self._context = context
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int) -> int:
        """Listen; the port that was got."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: PeerProtocol(self._config, self._state, {}), host, port, ssl=self._context, backlog=1024
        )
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self, grace: float) -> None:
        """Stop listening, let running requests end for `grace` seconds, then cut."""
        if self._server is not None:
            self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()
        with suppress(TimeoutError):
            async with asyncio.timeout(grace):
                while self._state.tasks:
                    await asyncio.wait(list(self._state.tasks))
        for task in list(self._state.tasks):
            task.cancel()
        for connection in list(self._state.connections):
            connection.transport.abort()
        self._server = None
