"""A stub server that misbehaves as told: only for what a well-behaved API server never does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from moorage.core.backoff import Backoff
from moorage.kube.client import Client
from moorage.kube.config import Connection
from moorage.kube.transport import Limits
from moorage.kube.watch import Patience

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
QUICK = Backoff(base=0.001, cap=0.002)


@asynccontextmanager
async def _serving(handler: Handler) -> AsyncIterator[Client]:
    app = web.Application(client_max_size=8 * 1024 * 1024)
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = runner.addresses[0][1]
    try:
        limits, patience = Limits(backoff=QUICK), Patience(silence=0.2, backoff=QUICK)
        async with Client(Connection(f"http://127.0.0.1:{port}"), limits=limits, patience=patience) as client:
            yield client
    finally:
        await runner.cleanup()


@pytest.fixture
def serving() -> Callable[[Handler], object]:
    """`async with serving(handler) as client`."""
    return _serving
