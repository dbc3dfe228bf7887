"""An embedded API server in the test's own loop, on a copy of data that was furnished once a process: judging a CRD costs more than a pass does.

Enters: a folder, what to write first. Leaves: a served API that holds it, and its administrator's client.
"""

from __future__ import annotations

import atexit
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import mkdtemp

from moorage.apiserver.server import Server
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig

Furnish = Callable[[Client], Awaitable[None]]
"""Writes the same whoever calls it, and returns when its kinds are served."""

_KEPT: dict[Furnish, Path] = {}


@asynccontextmanager
async def api_server(folder: Path) -> AsyncIterator[Client]:
    """A server on `<folder>/data`."""
    server = Server(folder / "data")
    await server.start()
    try:
        server.kubeconfig(folder / "kubeconfig")
        async with Client(load_kubeconfig(folder / "kubeconfig")) as client:
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
