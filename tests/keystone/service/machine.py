"""An embedded API server with a Keystone in it, a hand that plays the node, and a stub of the Identity API.

No sleeps: whoever writes waits until the cache of the world holds the answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.crashpoints import Fence, cached_world, passes
from tests.keystone.service import given
from tests.real.furnished import furnished

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.room import room
from moorage.keystone.service.seen import DEPLOYMENT, JOB, OWNED, SECRET, SERVICE
from moorage.keystone.service.types import KIND
from moorage.kube.client import Client
from moorage.kube.errors import NotFound
from moorage.kube.resources import CRDS, NAMESPACES
from moorage.net.sessions import Sessions
from moorage.runtime.projection import rolled_out
from moorage.runtime.room import Event
from moorage.runtime.world import World
from moorage.schema.kind import Kind

BORN = "2026-11-29T11:00:00Z"


class ToStub(AbstractResolver):
    """Every name is the stub."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        found: ResolveResult = {
            "hostname": host, "host": "127.0.0.1", "port": self.port, "family": socket.AF_INET,
            "proto": 0, "flags": socket.AI_NUMERICHOST,
        }  # fmt: skip
        return [found]

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class StubApi:
    """GET /v3 of an Identity API; `status` is what it answers. A path that contains `drops` is not answered at all."""

    status: int = 200
    asked: int = 0
    port: int = 0
    drops: str = ""
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.router.add_get("/v3", self._answer)
        app.router.add_get("/v3/{rest:.*}", self._nothing)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def _answer(self, _: web.Request) -> web.Response:
        self.asked += 1
        return web.Response(status=self.status)

    async def _nothing(self, request: web.Request) -> web.Response:
        """The answer about what nobody has, as Keystone gives it, or none."""
        if self.drops and self.drops in request.path:
            assert request.transport is not None
            request.transport.abort()
        return web.Response(status=404)

    async def stop(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()


@dataclass
class Machine:
    """One namespace of a served API: the client of the test, the stub, the events that were told."""

    client: Client
    stub: StubApi
    namespace: str
    told: list[Event] = field(default_factory=list)
    jobs_fail: bool = False
    later: timedelta = timedelta()
    pods_ready: bool = True

    @property
    def key(self) -> Key:
        return Key(self.namespace, "keystone")

    async def keystone(self) -> JsonObject:
        return await self.client.get(KIND.resource, self.key)

    async def conditions(self) -> dict[str, tuple[str, str]]:
        """Status and reason by type."""
        found = (await self.keystone()).get("status", {}).get("conditions", ())
        return {item["type"]: (item["status"], item["reason"]) for item in found}

    async def put(self, rt: ResourceType, obj: JsonObject) -> JsonObject:
        """Create an object in the namespace, with the status that it carries."""
        meta = {**obj["metadata"], "namespace": self.namespace}
        meta.pop("uid", None)
        meta.pop("resourceVersion", None)
        whole = {**obj, "metadata": meta}
        made = await self.client.create(rt, whole)
        if "status" in obj:
            return await self.client.patch(
                rt, Key(self.namespace, meta["name"]), {"status": obj["status"]}, subresource="status"
            )
        return made

    async def drive(self, fence: Fence | None = None) -> None:
        """Passes and the node's work in turn, until neither changes anything. A fresh process: empty memory."""
        guard = fence or Fence()
        ours = room()
        async with cached_world(self.client, [ours], guard) as world:
            await world.http.close()
            world.http = Sessions(resolver=ToStub(self.stub.port))
            world.clock = lambda: datetime.now(UTC) + self.later
            try:
                for _ in range(30):
                    await passes(ours, world, self.key, told=self.told)
                    if not await self.node(world):
                        return
            finally:
                await world.http.close()
        raise AssertionError("no end")

    async def node(self, world: World) -> bool:
        """Jobs end, pods of Deployments become ready; whether anything was left to do."""
        moved = False
        for job in (await self.client.list(JOB, self.namespace)).items:
            if job["metadata"].get("deletionTimestamp"):
                await self._finish_deletion(world, JOB, job)
                moved = True
            elif not (job.get("status") or {}).get("conditions"):
                await self._status(world, JOB, job, _ended(failed=self.jobs_fail))
                moved = True
        for rt in (DEPLOYMENT, SERVICE):
            for item in (await self.client.list(rt, self.namespace)).items:
                if item["metadata"].get("deletionTimestamp"):
                    await self._finish_deletion(world, rt, item)
                    moved = True
        for item in (await self.client.list(DEPLOYMENT, self.namespace)).items:
            if self.pods_ready and not rolled_out(item):
                await self._status(world, DEPLOYMENT, item, _running(item))
                moved = True
        return moved

    async def _finish_deletion(self, world: World, rt: ResourceType, obj: JsonObject) -> None:
        key = Key(self.namespace, obj["metadata"]["name"])
        with contextlib.suppress(NotFound):
            await self.client.patch(rt, key, {"metadata": {"finalizers": None}})
        uid = obj["metadata"]["uid"]
        await until(world, rt, lambda: (world.cache.get(rt, key) or {}).get("metadata", {}).get("uid") != uid)

    async def _status(self, world: World, rt: ResourceType, obj: JsonObject, status: JsonObject) -> None:
        key = Key(self.namespace, obj["metadata"]["name"])
        answer = await self.client.patch(rt, key, {"status": status}, subresource="status")
        version = int(answer["metadata"]["resourceVersion"])
        await until(world, rt, lambda: _version(world.cache.get(rt, key)) >= version)

    async def state(self) -> JsonObject:
        """What a person can see: conditions, children by name, what the Deployment mounts, key counts. Not what is random."""
        found: JsonObject = {"conditions": await self.conditions()}
        for rt in OWNED:
            items = (await self.client.list(rt, self.namespace)).items
            found[rt.kind] = sorted(item["metadata"]["name"] for item in items)
        deployment = await self.client.get(DEPLOYMENT, self.key)
        found["volumes"] = deployment["spec"]["template"]["spec"]["volumes"]
        for name in ("fernet", "credential"):
            secret = await self.client.get(SECRET, Key(self.namespace, f"keystone-{name}-keys"))
            found[name] = sorted(secret["data"])
        return found


def _version(obj: JsonObject | None) -> int:
    return int(obj["metadata"]["resourceVersion"]) if obj else 0


def _ended(*, failed: bool) -> JsonObject:
    """The status of a Job that ended, as kube-apiserver admits it."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    common = {"status": "True", "lastTransitionTime": now, "lastProbeTime": now, "reason": "x", "message": "x"}
    if failed:
        kinds = ("FailureTarget", "Failed")
        return {"startTime": BORN, "failed": 1, "conditions": [{**common, "type": kind} for kind in kinds]}
    kinds = ("SuccessCriteriaMet", "Complete")
    conditions = [{**common, "type": kind} for kind in kinds]
    return {"startTime": BORN, "completionTime": BORN, "succeeded": 1, "conditions": conditions}


def _running(deployment: JsonObject) -> JsonObject:
    count = deployment["spec"]["replicas"]
    names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    return {"observedGeneration": deployment["metadata"]["generation"], **dict.fromkeys(names, count)}


async def until(world: World, rt: ResourceType, holds: Any) -> None:
    """Wait until the cache of a type satisfies `holds`, woken by its changes."""
    changed = asyncio.Event()
    end = world.cache.reflector(rt).subscribe(lambda _old, _new: changed.set())
    try:
        while not holds():
            changed.clear()
            await asyncio.wait_for(changed.wait(), 30)
    finally:
        end()


@contextlib.asynccontextmanager
async def served(folder: Path) -> AsyncIterator[Client]:
    """A served API with our CRDs, and a client of its administrator."""
    async with furnished(folder, _furnish) as client:
        yield client


async def _furnish(client: Client) -> None:
    for kind in (KIND, BACKEND):
        await client.create(CRDS, kind.crd())
        await established(client, kind)


@contextlib.asynccontextmanager
async def machine(
    client: Client, namespace: str, *, finalizers: Sequence[str] = (), spec: JsonObject | None = None
) -> AsyncIterator[Machine]:
    """A namespace with the Secrets that people bring and a Keystone in it; `spec` is laid over the smallest one."""
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    async with _at(client, namespace) as found:
        for item in given.BROUGHT:
            await found.put(SECRET, given.secret(item["name"], item["data"]))
        wire = KIND.to_wire(given.keystone(spec))
        wire["metadata"] = {"name": "keystone", "finalizers": list(finalizers)}
        await found.put(KIND.resource, wire)
        yield found


@contextlib.asynccontextmanager
async def _at(client: Client, namespace: str) -> AsyncIterator[Machine]:
    """What stands in a namespace, with a stub of its own."""
    stub = StubApi()
    await stub.start()
    try:
        yield Machine(client, stub, namespace)
    finally:
        await stub.stop()


def again(
    folder: Path, made: Callable[[Client], AbstractAsyncContextManager[Machine]]
) -> Callable[[], AbstractAsyncContextManager[Machine]]:
    """How to have what `made` makes as often as wanted: it is made once, and each time is a server of its own on a copy of the data."""
    count, names = itertools.count(), []

    async def furnish(client: Client) -> None:
        await _furnish(client)
        async with made(client) as first:
            names.append(first.namespace)

    @contextlib.asynccontextmanager
    async def copied() -> AsyncIterator[Machine]:
        async with furnished(folder / str(next(count)), furnish) as client, _at(client, names[0]) as found:
            yield found

    return copied


async def established(client: Client, kind: Kind[Any]) -> None:
    """Wait until a CRD is served, woken by its changes."""
    name = kind.resource.group_resource
    stored = await client.get(CRDS, Key("", name))
    if _is_established(stored):
        return
    since = stored["metadata"]["resourceVersion"]
    async for event in client.watch(CRDS, since=since, fields=f"metadata.name={name}"):
        if _is_established(event.object):
            return


def _is_established(crd: JsonObject) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)
