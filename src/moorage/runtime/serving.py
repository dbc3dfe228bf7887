"""One HTTP listener inside our own event loop.

Enters: an ASGI app and an address. Leaves: a running server with its port. It installs no signal handlers, writes no access
log, and binds before it starts, so that a taken port is an error and not an exit.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Generator
from typing import Any

import uvicorn

from moorage.core.errors import EnvironmentError_, InputError


def parse_bind(bind: str) -> tuple[str, int]:
    """Host and port of `0.0.0.0:8080`, `[::]:8080` or `:8080`.

    Raises:
        InputError: it is no address.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65535:
        raise InputError(bind, "not an address", "Write it like 127.0.0.1:8080")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104  what an empty host means


class Listener:
    """A listener; `port` is known after `start`."""

    def __init__(self, app: Any, bind: str, *, tls: ssl.SSLContext | None = None) -> None:
        self.host, self.port = parse_bind(bind)
        self._server = _Server(_config(app, tls))
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Bind and serve.

        Raises:
            EnvironmentError_: the address cannot be bound.
        """
        sock = self._bind()
        self.port = sock.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve([sock]), name=f"listener-{self.port}")
        await self._server.up.wait()

    def _bind(self) -> socket.socket:
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.bind((self.host, self.port))
        except OSError as error:
            sock.close()
            raise EnvironmentError_(f"{self.host}:{self.port}", f"cannot listen: {error.strerror}") from error
        return sock

    async def stop(self) -> None:
        """Answer what is under way, then close."""
        if self._task is not None:
            self._server.should_exit = True
            await self._task
            self._task = None


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals belong to the command line."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


def _config(app: Any, tls: ssl.SSLContext | None) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=90,
        timeout_graceful_shutdown=5,
        ssl_context_factory=None if tls is None else lambda _config, _default: tls,
    )
