"""The embedded API server with the Widget CRD, in the test's own loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from moorage.apiserver.server import Server
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import AlreadyExists, NotFound
from moorage.kube.resources import CONFIG_MAPS, CORE_EVENTS, CRDS, LEASES, SECRETS
from moorage.kube.watch import Patience
from moorage.runtime import logs

from .widget import KIND


@pytest.fixture(autouse=True)
def logging() -> Iterator[None]:
    """As the process logs: without rich tracebacks, which take seconds each."""
    logs.configure(json=True)
    yield
    structlog.reset_defaults()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Server]:
    """A fresh embedded API server."""
    made = await _start(tmp_path)
    yield made
    await made.stop()


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    """The administrator's client; the Widget kind is installed.

    The server is the embedded one, or the one of MOORAGE_TEST_KUBECONFIG, such as a real kube-apiserver for tests only.
    """
    given = os.environ.get("MOORAGE_TEST_KUBECONFIG")
    if given is None:
        server: Server = await _start(tmp_path)
        server.kubeconfig(tmp_path / "kubeconfig")
    try:
        path = given or str(tmp_path / "kubeconfig")
        async with Client(load_kubeconfig(path), patience=Patience(silence=30)) as made:
            with contextlib.suppress(AlreadyExists):
                await made.create(CRDS, KIND.crd())
            await until(lambda: served(made))
            if given:
                await _clean(made)
            made.calls.clear()
            yield made
    finally:
        if given is None:
            await server.stop()


async def _start(folder: Path) -> Server:
    server = Server(folder / "data")
    await server.start()
    return server


async def _clean(client: Client) -> None:
    for rt in (KIND.resource, CONFIG_MAPS, SECRETS, LEASES, CORE_EVENTS):
        for obj in (await client.list(rt, "default")).items:
            if obj["metadata"].get("finalizers"):
                await client.patch(rt, key_of(obj), {"metadata": {"finalizers": None}})
            with contextlib.suppress(NotFound):
                await client.delete(rt, key_of(obj))


async def served(client: Client) -> bool:
    """Whether Widgets are served by now."""
    try:
        await client.list(KIND.resource)
    except NotFound:
        return False
    return True


async def until(check: Callable[[], Any], *, seconds: float = 30.0) -> Any:
    """Wait until `check` answers something true; the answer. A bound against hanging, not a measure."""
    async with asyncio.timeout(seconds):
        while True:
            found = check()
            if isinstance(found, Awaitable):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.01)


async def find(client: Client, rt: ResourceType, name: str, namespace: str = "default") -> JsonObject | None:
    """The object, or None."""
    try:
        return await client.get(rt, Key(namespace, name))
    except NotFound:
        return None
