"""An embedded API server in the test's own loop, on a copy of data that was furnished once a process: judging a CRD costs more than a pass does.

Enters: a folder, what to write first. Leaves: a served API that holds it, and its administrator's client. The client speaks plain HTTP: TLS,
which each watch begins anew, took half of the processor time of a room's test, and is proven with the server and the client themselves.
"""

from __future__ import annotations

import atexit
import secrets
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

from moorage.apiserver.auth import AUTHENTICATED, User
from moorage.apiserver.server import Server
from moorage.kube.client import Client
from moorage.kube.config import Connection
from moorage.kube.credentials import Fixed, bearer
from moorage.serving.connection import Exchange, Response, Shared
from moorage.serving.listener import Listener

Furnish = Callable[[Client], Awaitable[None]]
"""Writes the same whoever calls it, and returns when its kinds are served."""

_KEPT: dict[Furnish, Path] = {}
_ADMIN = User("moorage-admin", ("system:masters", AUTHENTICATED))
"""Whom the certificate in the server's own kubeconfig names."""


@asynccontextmanager
async def plainly(server: Server) -> AsyncIterator[Connection]:
    """A second door of a started server: without TLS, for the administrator alone."""
    password = secrets.token_urlsafe()

    async def app(exchange: Exchange) -> Response:
        if exchange.headers.pop("authorization", "") == f"Bearer {password}":
            exchange.peer = _ADMIN
        return await server.app(exchange)

    listener = Listener(Shared(app))
    port = await listener.open("127.0.0.1", 0)
    try:
        yield Connection(f"http://127.0.0.1:{port}", credentials=Fixed(bearer(password)))
    finally:
        for watcher in tuple(server.api.watchers):
            watcher.end()
        await listener.close(5.0)


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[Client]:
    """A server on `<folder>/data`."""
    server = Server(folder / "data")
    await server.start()
    try:
        server.kubeconfig(folder / "kubeconfig")
        async with plainly(server) as connection, Client(connection) as client:
            yield client
    finally:
        await server.stop()


@asynccontextmanager
async def furnished(folder: Path, furnish: Furnish) -> AsyncIterator[Client]:
    """A server that `furnish` has written to."""
    if furnish not in _KEPT:
        kept = Path(mkdtemp(prefix="furnished-"))
        atexit.register(shutil.rmtree, kept, ignore_errors=True)
        async with api_server(kept) as client:
            await furnish(client)
        _KEPT[furnish] = kept
    unneeded = shutil.ignore_patterns("store.reserve")  # room for the day on which the disk is full: taken anew
    shutil.copytree(_KEPT[furnish] / "data", folder / "data", ignore=unneeded)
    async with api_server(folder) as client:
        yield client
