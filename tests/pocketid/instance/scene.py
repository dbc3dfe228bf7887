"""An API server with a PocketIDInstance to deploy, and a hand that plays the kubelet: the pod is a fake Pocket-ID at the Service's name.

Enters: a client of a server, embedded or real, and a folder. Leaves: a Scene. No sleeps: whoever writes waits until the cache holds the answer.
The pod does what the real server does with its variables: it takes the API key, and with another encryption key it would not read its data.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult
from tests.crashpoints import Fence, cached_world, passes
from tests.fakes.pocketid import Fake, serving
from tests.keystone.service.machine import established, until
from tests.real.furnished import furnished

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.core.outcome import Outcome
from moorage.kube.client import Client
from moorage.kube.errors import AlreadyExists, NotFound
from moorage.kube.resources import CRDS, DEPLOYMENTS, NAMESPACES, PVCS, SECRETS, SERVICES, STATEFUL_SETS
from moorage.node.network.addresses import SERVICES as BLOCKS
from moorage.node.network.addresses import claim
from moorage.pocketid.instance.room import ROOM
from moorage.pocketid.instance.types import KIND, PORT
from moorage.runtime.projection import rolled_out
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk
from moorage.runtime.world import World

NAME = "id"
KEY = "a-key-of-more-than-sixteen"
IMAGE = "pocket-id:v2.14.0"
SPEC: JsonObject = {"encryptionKey": {"value": KEY}, "image": IMAGE, "appUrl": "https://id.example.org"}


class ToFake(AbstractResolver):
    """Every name is the pod."""

    def __init__(self, address: str) -> None:
        self.address = address

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        return [ResolveResult(hostname=host, host=self.address, port=port, family=socket.AF_INET, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is held."""


@dataclass
class Scene:
    """One namespace, one instance, one pod.

    `encrypted_with`: the key that the pod was first started with. `operator`: as whom the room acts; None: as the administrator.
    """

    client: Client
    fake: Fake
    address: str
    namespace: str
    told: list[Event] = field(default_factory=list)
    encrypted_with: str = ""
    starts: int = 0
    pods_run: bool = True
    operator: Client | None = None
    _env: JsonObject = field(default_factory=dict)

    @property
    def key(self) -> Key:
        return Key(self.namespace, NAME)

    @contextlib.asynccontextmanager
    async def world(self, fence: Fence | None = None) -> AsyncIterator[World]:
        """What a process that just started sees."""
        guard = fence or Fence()
        async with cached_world(self.operator or self.client, [ROOM], guard, resolver=ToFake(self.address)) as world:
            yield world

    async def drive(self, fence: Fence | None = None) -> Outcome:
        """Passes of a fresh process and the kubelet's work in turn, until neither changes anything."""
        async with self.world(fence) as world:
            for _ in range(12):
                outcome = await passes(ROOM, world, self.key, told=self.told)
                if not await self.kubelet(world):
                    return outcome
        raise AssertionError("no end")

    async def attempt(self) -> Outcome:
        """One pass of a fresh process: a write that is refused is tried again by the next."""
        async with self.world() as world:
            return await Walk(ROOM, world, lambda _ref, event: self.told.append(event))(self.key)

    async def writes(self) -> int:
        """Writes of a fresh process on a world that stands."""
        fence = Fence()
        await self.drive(fence)
        return fence.writes

    # --- the kubelet's part

    async def kubelet(self, world: World) -> bool:
        """The pod runs the newest template, with the variables of its Secrets; whether anything was left to do."""
        moved = await self._bind(world)
        for rt in (DEPLOYMENTS, STATEFUL_SETS):
            for item in await self._all(rt):
                if self.pods_run and not rolled_out(item):
                    await self._start(item)
                    await self._ran(world, rt, item)
                    moved = True
        return moved

    async def _bind(self, world: World) -> bool:
        """Claims get their volume, as a provisioner and the controller see to it."""
        unbound = [item for item in await self._all(PVCS) if (item.get("status") or {}).get("phase") != "Bound"]
        for item in unbound:
            key = Key(self.namespace, item["metadata"]["name"])
            await self.client.patch(PVCS, key, {"spec": {"volumeName": f"volume-of-{key.name}"}})
            answer = await self.client.patch(PVCS, key, {"status": {"phase": "Bound"}}, subresource="status")
            version = int(answer["metadata"]["resourceVersion"])
            await until(world, PVCS, lambda key=key, version=version: _version(world.cache.get(PVCS, key)) >= version)
        return bool(unbound)

    async def _all(self, rt: ResourceType) -> list[JsonObject]:
        try:
            return list((await self.client.list(rt, self.namespace)).items)
        except NotFound:
            return []

    async def _start(self, workload: JsonObject) -> None:
        self.starts += 1
        (container,) = workload["spec"]["template"]["spec"]["containers"]
        self._env = {item["name"]: await self._value(item) for item in container["env"]}
        self.encrypted_with = self.encrypted_with or self._env["ENCRYPTION_KEY"]
        assert self._env["ENCRYPTION_KEY"] == self.encrypted_with, "the server could not read its data"
        self.fake.api_key = self._env["STATIC_API_KEY"]
        if found := re.search(r":v?(\d+\.\d+\.\d+)$", container["image"]):
            self.fake.upgrade(found[1])

    async def _value(self, item: JsonObject) -> str:
        if "value" in item:
            return str(item["value"]).replace("$(POD_IP)", self.address).replace("$$", "$")
        ref = (item["valueFrom"]).get("secretKeyRef")
        if ref is None:
            return self.address
        return (await self.secret_data(ref["name"]))[ref["key"]]

    async def _ran(self, world: World, rt: ResourceType, workload: JsonObject) -> None:
        names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        status = {"observedGeneration": workload["metadata"]["generation"], **dict.fromkeys(names, 1)}
        answer = await self.client.patch(rt, self.key, {"status": status}, subresource="status")
        if world.cache.holds(rt):
            version = int(answer["metadata"]["resourceVersion"])
            await until(world, rt, lambda: _version(world.cache.get(rt, self.key)) >= version)

    @property
    def env(self) -> JsonObject:
        """Variables of the pod that started last."""
        return self._env

    # --- a person's part

    async def make(self, **spec: Any) -> JsonObject:
        """Create the instance; fields over the smallest one, None takes one away."""
        wanted = {name: value for name, value in {**SPEC, **spec}.items() if value is not None}
        meta = {"name": NAME, "namespace": self.namespace}
        body = {"apiVersion": KIND.resource.api_version, "kind": KIND.kind, "metadata": meta, "spec": wanted}
        return await self.client.create(KIND.resource, body)

    async def edit(self, **spec: Any) -> None:
        """Change fields of the spec; None takes one away."""
        await self.client.patch(KIND.resource, self.key, {"spec": spec})

    async def annotate(self, **annotations: str) -> None:
        """Annotations below the group's name."""
        named = {f"pocketid.internal/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.client.patch(KIND.resource, self.key, {"metadata": {"annotations": named}})

    async def secret(self, name: str, /, **data: str) -> None:
        """Create or replace a Secret of a person; `_` in a key is a dot."""
        encoded = {key.replace("_", "."): base64.b64encode(value.encode()).decode() for key, value in data.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": self.namespace}}
        try:
            await self.client.create(SECRETS, {**body, "data": encoded})
        except AlreadyExists:
            await self.client.patch(SECRETS, Key(self.namespace, name), {"data": encoded})

    async def delete(self) -> None:
        """The instance goes; its children follow it, as garbage collection has them."""
        uid = (await self.stored())["metadata"]["uid"]
        await self.client.delete(KIND.resource, self.key)
        async with self.world() as world:
            await passes(ROOM, world, self.key, told=self.told)
        for rt in (SECRETS, PVCS, SERVICES, DEPLOYMENTS):
            async with asyncio.timeout(60):
                while [item for item in await self._all(rt) if _follows(item, uid)]:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)

    # --- what is there

    async def get(self, rt: ResourceType, name: str) -> JsonObject | None:
        """An object of the namespace, None when there is none."""
        try:
            return await self.client.get(rt, Key(self.namespace, name))
        except NotFound:
            return None

    async def stored(self) -> JsonObject:
        """The instance as the server has it."""
        return await self.client.get(KIND.resource, self.key)

    async def status(self) -> JsonObject:
        """Its status."""
        return (await self.stored()).get("status") or {}

    async def ready(self) -> tuple[str, str]:
        """`Status/Reason` and message of Ready."""
        (said,) = (await self.status())["conditions"]
        return f"{said['status']}/{said['reason']}", said["message"]

    async def secret_data(self, name: str) -> dict[str, str]:
        """What a Secret holds; {} when there is none."""
        found = await self.get(SECRETS, name)
        return {key: base64.b64decode(text).decode() for key, text in ((found or {}).get("data") or {}).items()}

    async def workload(self, rt: ResourceType = DEPLOYMENTS) -> JsonObject:
        """The workload."""
        return await self.client.get(rt, self.key)

    async def names(self) -> dict[str, list[str]]:
        """Children by kind."""
        return {
            rt.kind: sorted(item["metadata"]["name"] for item in await self._all(rt))
            for rt in (SECRETS, PVCS, SERVICES, DEPLOYMENTS)
        }


def _follows(item: JsonObject, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in item["metadata"].get("ownerReferences") or ())


def _version(obj: JsonObject | None) -> int:
    return int(obj["metadata"]["resourceVersion"]) if obj else 0


@contextlib.asynccontextmanager
async def scene(
    client: Client, folder: Path, namespace: str = "pocket-id", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Scene]:
    """A namespace on a server that has our CRD, and a pod to be started; it speaks TLS when it is given a context."""
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    addresses = claim(BLOCKS, folder / "addresses")
    try:
        address, fake = str(addresses.block[1]), Fake()
        async with serving(fake, PORT, address, tls):
            yield Scene(client, fake, address, namespace)
    finally:
        addresses.close()


@contextlib.asynccontextmanager
async def embedded(folder: Path) -> AsyncIterator[Client]:
    """An embedded API server with our CRD."""
    async with furnished(folder, _furnish) as client:
        yield client


async def _furnish(client: Client) -> None:
    await client.create(CRDS, KIND.crd())
    await established(client, KIND)
