"""A namespace on the embedded API server with a PocketIDInstance that a fake Pocket-ID stands behind.

Enters: a folder. Leaves: a Scene. What the instance's room would say is written by hand, so that these tests see one room alone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crashpoints import cached_world, passes
from tests.fakes.pocketid import API_KEY, Fake, serving
from tests.real.furnished import furnished

from moorage.core.meta import JsonObject, Key
from moorage.core.outcome import Done, Outcome
from moorage.kube.client import Client
from moorage.kube.errors import AlreadyExists, NotFound
from moorage.kube.resources import CRDS, NAMESPACES, SECRETS
from moorage.pocketid import KINDS
from moorage.pocketid.references import READY
from moorage.runtime.room import Event, Room
from moorage.runtime.walk import Walk
from moorage.runtime.world import World
from moorage.schema.kind import Kind

NAMESPACE = "pocket-id"
HOME = "identity"
"""Where the instance lives that admits the objects of NAMESPACE, in `elsewhere`."""
_KINDS: dict[str, Kind[Any]] = {kind.kind.removeprefix("PocketID"): kind for kind in KINDS}


@dataclass
class Scene:
    """One API server, one fake Pocket-ID; `room` is the one that is looked at."""

    client: Client
    fake: Fake
    room: Room[Any, Any]
    url: str = ""

    @contextlib.asynccontextmanager
    async def world(self, fence: Any = None) -> AsyncIterator[World]:
        """What a process that just started sees."""
        async with cached_world(self.client, [self.room], fence or (lambda: None)) as world:
            yield world

    async def settle(self, name: str, told: list[Event] | None = None) -> Outcome:
        """What a process that just started makes of an object of the room's kind."""
        async with self.world() as world:
            return await passes(self.room, world, Key(NAMESPACE, name), told=told)

    async def once(self, name: str) -> Outcome:
        """One pass of a process that just started."""
        async with self.world() as world:
            return await Walk(self.room, world)(Key(NAMESPACE, name))

    async def second_pass(self, walk: Walk[Any, Any], name: str) -> list[str]:
        """What a pass that finds everything as it is to be asks Pocket-ID; it writes nothing to Kubernetes."""
        self.fake.journal.clear()
        self.client.calls.clear()
        assert isinstance(await walk(Key(NAMESPACE, name)), Done)
        assert [call for call in self.client.calls if call[0] not in ("GET", "WATCH")] == []
        return self.fake.journal.lines()

    # --- a person's part

    async def make(self, kind: str, name: str, /, **spec: Any) -> JsonObject:
        """Apply an object of a kind such as UserGroup."""
        rt = _KINDS[kind].resource
        meta = {"name": name, "namespace": NAMESPACE}
        body = {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": meta, "spec": spec}
        return await self.client.create(rt, body)

    async def edit(self, kind: str, name: str, /, **spec: Any) -> None:
        """Change fields of a spec; lists are replaced, None takes a field out."""
        await self.client.patch(_KINDS[kind].resource, Key(NAMESPACE, name), {"spec": spec})

    async def annotate(self, kind: str, name: str, **annotations: str) -> None:
        """Annotations below the group's name."""
        named = {f"pocketid.internal/{key.replace('_', '-')}": value for key, value in annotations.items()}
        patch = {"metadata": {"annotations": named}}
        await self.client.patch(_KINDS[kind].resource, Key(NAMESPACE, name), patch)

    async def says(self, kind: str, name: str, /, **status: Any) -> None:
        """Status of an object, as its own room would write it."""
        rt = _KINDS[kind].resource
        await self.client.patch(rt, Key(NAMESPACE, name), {"status": status}, subresource="status")

    async def stored(self, kind: str, name: str) -> JsonObject | None:
        """The object as the server has it, None when it is gone."""
        try:
            return await self.client.get(_KINDS[kind].resource, Key(NAMESPACE, name))
        except NotFound:
            return None

    async def delete(self, kind: str, name: str) -> None:
        """Ask for its deletion."""
        await self.client.delete(_KINDS[kind].resource, Key(NAMESPACE, name))

    async def secret(self, name: str, /, **data: str) -> None:
        """Create or replace a Secret."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        try:
            await self.client.create(SECRETS, {**body, "data": encoded})
        except AlreadyExists:
            await self.client.patch(SECRETS, Key(NAMESPACE, name), {"data": encoded})

    async def secret_data(self, name: str) -> dict[str, str]:
        """What a Secret holds."""
        found = await self.client.get(SECRETS, Key(NAMESPACE, name))
        return {key: base64.b64decode(value).decode() for key, value in (found.get("data") or {}).items()}

    # --- the instance's part

    async def instance(self, name: str = "main", url: str = "", **labels: str) -> None:
        """An instance at the fake, Ready."""
        rt = _KINDS["Instance"].resource
        meta = {"name": name, "namespace": NAMESPACE, "labels": labels}
        spec = {"external": {"url": url or self.url, "apiKeySecretRef": {"name": "api-key", "key": "token"}}}
        await self.client.create(rt, {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": meta, "spec": spec})
        await self.ready(name, url=url)

    async def ready(self, name: str = "main", *, up: bool = True, url: str = "") -> None:
        """Say that the instance can be used, or cannot, at the scene's server or another one."""
        await self.says("Instance", name, version=self.fake.version, url=url or self.url, conditions=condition(up))


def condition(up: bool = True, reason: str = "Ready") -> list[JsonObject]:
    """Conditions with one that says Ready."""
    said = {"type": READY, "status": "True" if up else "False", "reason": reason, "message": "said by the test"}
    return [{**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}]


def ready(obj: JsonObject | None) -> str:
    """`Status/Reason` of Ready."""
    found = [item for item in ((obj or {}).get("status") or {}).get("conditions") or () if item["type"] == READY]
    return f"{found[0]['status']}/{found[0]['reason']}" if found else ""


def message(obj: JsonObject | None) -> str:
    """The message of Ready."""
    found = [item for item in ((obj or {}).get("status") or {}).get("conditions") or () if item["type"] == READY]
    return str(found[0]["message"]) if found else ""


@contextlib.asynccontextmanager
async def scene(folder: Path, room: Room[Any, Any]) -> AsyncIterator[Scene]:
    """A fresh scene: namespace, CRDs, the API key, an instance that is Ready."""
    fake = Fake()
    async with furnished(folder, _furnish) as client, serving(fake) as url:
        made = Scene(client, fake, room, url)
        await made.secret("api-key", token=API_KEY)
        await made.instance()
        yield made


@contextlib.asynccontextmanager
async def elsewhere(folder: Path, room: Room[Any, Any]) -> AsyncIterator[Scene]:
    """A scene whose instance lives in a namespace of its own and admits that of the objects."""
    async with scene(folder, room) as made:
        instance = _KINDS["Instance"].resource
        await made.client.delete(instance, Key(NAMESPACE, "main"))
        await made.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
        meta = {"name": "api-key", "namespace": HOME}
        key = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"token": API_KEY}}
        await made.client.create(SECRETS, key)
        external = {"url": made.url, "apiKeySecretRef": {"name": "api-key", "key": "token"}}
        spec = {"external": external, "allowedNamespaces": [NAMESPACE]}
        body = {
            "apiVersion": instance.api_version,
            "kind": instance.kind,
            "metadata": {"name": "main", "namespace": HOME},
        }
        await made.client.create(instance, {**body, "spec": spec})
        status = {"version": made.fake.version, "url": made.url, "conditions": condition()}
        await made.client.patch(instance, Key(HOME, "main"), {"status": status}, subresource="status")
        yield made


async def _furnish(client: Client) -> None:
    for kind in KINDS:
        await client.create(CRDS, kind.crd())
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    async with asyncio.timeout(30):
        for kind in KINDS:
            await _served(client, kind)


async def _served(client: Client, kind: Kind[Any]) -> None:
    """CRDs are served a moment after they are made."""
    while True:
        try:
            await client.list(kind.resource)
            return
        except NotFound:
            await asyncio.sleep(0.01)
