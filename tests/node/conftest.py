"""A real API server, a real node, real sandboxes; everything in a folder of the test."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.real.furnished import plainly

from moorage.apiserver import Server
from moorage.core.backoff import Backoff
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube.client import Client
from moorage.kube.errors import NotFound
from moorage.kube.resources import PODS
from moorage.node import Node, NodeOptions

PYTHON = "/usr/bin/python3"
QUICK = NodeOptions(restart_backoff=Backoff(base=0.05, cap=0.2, jitter=0.0), job_backoff=0.05)


@dataclass
class Machine:
    """One-machine mode without the controllers of our own kinds."""

    data: Path
    client: Client
    options: NodeOptions = QUICK
    node: Node | None = None
    _stop: asyncio.Event | None = None
    _task: asyncio.Task[None] | None = None

    async def start(self, *, leave_pods: bool = False) -> None:
        """Starts a node on this data folder."""
        self.node, self._stop = Node(self.client, self.data, self.options), asyncio.Event()
        self._task = asyncio.create_task(self.node.run(self._stop, leave_pods=leave_pods))

    async def stop(self) -> None:
        """Stops the node, as `moorage up` does."""
        if self._task is not None and self._stop is not None:
            self._stop.set()
            await self._task
        self._task = None

    async def until(self, resource: ResourceType, name: str, holds: Callable[[JsonObject], object]) -> JsonObject:
        """The object as soon as `holds` does; the test's own timeout is the limit."""
        key = Key("default", name)
        listing = await self.client.list(resource, "default")
        for item in listing.items:
            if item["metadata"]["name"] == name and holds(item):
                return item
        since = listing.resource_version
        async for event in self.client.watch(resource, "default", since=since):
            found = event.object
            if event.type in ("ADDED", "MODIFIED") and found["metadata"]["name"] == key.name and holds(found):
                return found
        raise AssertionError("the watch ended")

    async def gone(self, resource: ResourceType, name: str) -> None:
        """Returns when there is no such object any more."""
        await eventually(lambda: self._absent(resource, name))

    async def _absent(self, resource: ResourceType, name: str) -> bool:
        try:
            await self.client.get(resource, Key("default", name))
        except NotFound:
            return True
        return False

    async def pods(self, app: str = "") -> list[JsonObject]:
        listing = await self.client.list(PODS, "default", labels=f"app={app}" if app else "")
        return list(listing.items)

    def log(self, pod: str, container: str = "main", attempt: int = 0) -> list[str]:
        """The texts of a log's lines."""
        path = self.data / "logs" / "default" / pod / container / f"{attempt}.log"
        return [line.split(" ", 3)[3] for line in path.read_text().splitlines()] if path.exists() else []


async def eventually(holds: Callable[[], Awaitable[bool]]) -> None:
    """Waits for a condition that nobody announces; the test's own timeout is the limit."""
    while not await holds():  # noqa: ASYNC110 - nobody announces it
        await asyncio.sleep(0.02)


def pod(name: str, *command: str, **spec: object) -> JsonObject:
    """A pod of one container `main` on the host image."""
    container: JsonObject = {"name": "main", "image": "moorage/host", "command": list(command)}
    container |= spec.pop("container", {})  # type: ignore[arg-type,call-overload]
    full = {"containers": [container], "nodeName": "local", "terminationGracePeriodSeconds": 5, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}, "spec": full}


def phase(wanted: str) -> Callable[[JsonObject], bool]:
    """Whether a pod is in this phase."""
    return lambda found: bool((found.get("status") or {}).get("phase") == wanted)


def is_ready(found: JsonObject) -> bool:
    """Whether a pod's Ready condition is True."""
    conditions = (found.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


@contextlib.asynccontextmanager
async def api_server(data: Path) -> AsyncIterator[Client]:
    """An embedded API server and an administrator's client."""
    server = Server(data)
    await server.start()
    try:
        server.kubeconfig(data / "kubeconfig")
        async with plainly(server) as connection, Client(connection) as client:
            yield client
    finally:
        await server.stop()


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    """A machine whose node runs."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    async with api_server(data) as client:
        found = Machine(data, client)
        await found.start()
        try:
            yield found
        finally:
            await found.stop()
