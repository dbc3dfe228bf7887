"""A namespace on the embedded API server, a fake Pocket-ID over real HTTP, an instance that attaches it.

Enters: a folder. Leaves: a Scene. The rooms of the instance and of clients are walked; groups and APIs are made by hand, so that these tests
see the client's controller alone.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from tests.crashpoints import Fence, cached_world, passes
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Api, Group, Permission
from tests.fakes.pocketid.probes import machine_token
from tests.real.furnished import furnished

from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.outcome import Outcome
from moorage.kube.client import Client
from moorage.kube.errors import AlreadyExists, NotFound
from moorage.kube.resources import CRDS, NAMESPACES, SECRETS
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.instance.room import ROOM as INSTANCE_ROOM
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.pocketid.usergroup.types import KIND as USER_GROUP
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk
from moorage.runtime.world import World

NAMESPACE = "apps"
KEY = Key(NAMESPACE, "wiki")
INSTANCE_KEY = Key(NAMESPACE, "pocketid")
SECRET = "wiki-oidc-credentials"
KINDS = (INSTANCE, USER_GROUP, API, KIND)
CALLBACK = "https://wiki.example.org/cb"


@dataclass
class Scene:
    """One API server, one fake Pocket-ID."""

    client: Client
    fake: Fake
    url: str
    told: list[Event] = field(default_factory=list)
    ahead: timedelta = timedelta(0)
    spares: frozenset[str] = frozenset()
    """Secrets that stay valid although nothing declares it, since nobody can tell them from the stored one (seed 004, Client Secret)."""

    # --- time

    def now(self) -> datetime:
        """The time of the operator; the server's goes with it."""
        return datetime.now(UTC) + self.ahead

    def later(self, **span: float) -> None:
        """Let time pass, for the operator and for the server; takes what timedelta takes."""
        passed = timedelta(**span)
        self.ahead += passed
        self.fake.clock.offset += passed.total_seconds()

    def travel(self, to: str) -> None:
        """Go to a moment in UTC, such as 2027-03-28T00:59:59."""
        self.later(seconds=(datetime.fromisoformat(to).replace(tzinfo=UTC) - self.now()).total_seconds())

    # --- the operator's part

    @contextlib.asynccontextmanager
    async def world(self, fence: Any = None) -> AsyncIterator[World]:
        """What a process that just started sees."""
        async with cached_world(self.client, [INSTANCE_ROOM, ROOM], fence or (lambda: None)) as world:
            world.clock = self.now
            yield world

    async def settle(self, key: Key = KEY) -> Outcome:
        """What a process that just started makes of the client."""
        async with self.world() as world:
            return await passes(ROOM, world, key, told=self.told)

    async def once(self, key: Key = KEY) -> Outcome:
        """One pass of a process that just started."""
        async with self.world() as world:
            return await Walk(ROOM, world, lambda _ref, event: self.told.append(event))(key)

    async def dies(self, fence: Fence, key: Key = KEY) -> None:
        """A process that just started works on the client until nothing is left to do, or dies where the fence says."""
        if not await self.is_there(key):
            return

        async def life() -> None:
            async with self.world(fence) as world:
                await fresh(self, world)
                await passes(ROOM, world, key, told=self.told)

        lives, dies = asyncio.ensure_future(life()), asyncio.ensure_future(fence.killed.wait())
        await asyncio.wait({lives, dies}, return_when=asyncio.FIRST_COMPLETED)
        for task in (lives, dies):
            task.cancel()
        await asyncio.gather(lives, dies, return_exceptions=True)

    async def attach(self, key: Key = INSTANCE_KEY) -> Outcome:
        """What a process that just started makes of the instance."""
        async with self.world() as world:
            return await passes(INSTANCE_ROOM, world, key)

    # --- a person's part

    async def make(self, called: str = KEY.name, **spec: Any) -> JsonObject:
        """Apply a client."""
        return await self.client.create(KIND.resource, resource(KIND, called, {"callbackUrls": [CALLBACK], **spec}))

    async def edit(self, called: str = KEY.name, **spec: Any) -> None:
        """Change fields of the spec; lists are replaced, None takes a field away."""
        await self.client.patch(KIND.resource, Key(NAMESPACE, called), {"spec": spec})

    async def annotate(self, **notes: str) -> None:
        """Annotations below pocketid.internal."""
        found = {f"pocketid.internal/{name.replace('_', '-')}": text for name, text in notes.items()}
        await self.client.patch(KIND.resource, KEY, {"metadata": {"annotations": found}})

    async def secret(self, name: str, **data: str) -> JsonObject:
        """Create or replace a Secret of a person."""
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
        try:
            return await self.client.create(SECRETS, {**body, "data": encoded})
        except AlreadyExists:
            return await self.client.patch(SECRETS, Key(NAMESPACE, name), {"data": encoded})

    async def instance(self, name: str = INSTANCE_KEY.name, url: str = "", **spec: Any) -> None:
        """Apply an instance for the fake."""
        ref = {"name": "pocketid-key", "key": "token"}
        wanted = {"external": {"url": url or self.url, "apiKeySecretRef": ref}, **spec}
        await self.client.create(INSTANCE.resource, resource(INSTANCE, name, wanted))

    async def group(self, name: str, *, clients: tuple[str, ...] = (), made: bool = True, ready: bool = True) -> str:
        """A PocketIDUserGroup as its controller leaves it; the id at the server."""
        listed = [{"name": item} for item in clients]
        await self.client.create(
            USER_GROUP.resource, resource(USER_GROUP, name, {"allowedOIDCClients": listed} if listed else {})
        )
        if not made:
            return ""
        id = self.server_group(name)
        await self.says(USER_GROUP, name, {"groupID": id}, ready=ready)
        return id

    def server_group(self, name: str) -> str:
        """A group at the server, made by hand."""
        found = Group(name, name, self.fake.clock.now())
        self.fake.store.groups[found.id] = found
        return found.id

    async def api(self, name: str, audience: str, *permissions: str, ready: bool = True) -> str:
        """A PocketIDAPI as its controller leaves it; the id at the server."""
        made = Api(name, audience, self.fake.clock.now(), [Permission(key, key, "") for key in permissions])
        self.fake.store.apis[made.id] = made
        await self.client.create(API.resource, resource(API, name, {"resource": audience}))
        listed = [{"id": item.id, "key": item.key, "name": item.name} for item in made.permissions]
        await self.says(API, name, {"apiID": made.id, "resource": audience, "permissions": listed}, ready=ready)
        return made.id

    async def says(self, kind: Any, name: str, status: JsonObject, *, ready: bool) -> None:
        """What the controller of another kind writes."""
        whole = {**status, "conditions": [condition(ready)]}
        await self.client.patch(kind.resource, Key(NAMESPACE, name), {"status": whole}, subresource="status")

    # --- what is there

    async def is_there(self, key: Key) -> bool:
        """Whether the client is at the API server, in any namespace."""
        return any(key_of(item) == key for item in (await self.client.list(KIND.resource)).items)

    async def stored(self, name: str = KEY.name) -> JsonObject | None:
        """The client as the API server has it, None when it is gone."""
        try:
            return await self.client.get(KIND.resource, Key(NAMESPACE, name))
        except NotFound:
            return None

    async def status(self, name: str = KEY.name) -> JsonObject:
        """Its status."""
        found = await self.stored(name)
        return (found or {}).get("status") or {}

    async def ready(self, name: str = KEY.name) -> tuple[str, str]:
        """`Status/Reason` and message of Ready."""
        (said,) = (await self.status(name)).get("conditions") or [{"status": "", "reason": "", "message": ""}]
        return f"{said['status']}/{said['reason']}", said["message"]

    async def credentials(self, name: str = SECRET) -> dict[str, str]:
        """The data of a credentials Secret; {} when there is none."""
        try:
            found = await self.client.get(SECRETS, Key(NAMESPACE, name))
        except NotFound:
            return {}
        return {key: base64.b64decode(text).decode() for key, text in (found.get("data") or {}).items()}

    async def annotations(self, name: str = SECRET) -> dict[str, str]:
        """Annotations of a Secret."""
        found = await self.client.get(SECRETS, Key(NAMESPACE, name))
        return found["metadata"].get("annotations") or {}

    def server(self, id: str | None = None) -> Any:
        """The client at the server: the only one, unless an id is given."""
        if id is not None:
            return self.fake.store.clients[id]
        (only,) = self.fake.store.clients.values()
        return only

    async def login(self, id: str, secret: str) -> int:
        """The HTTP status that the token endpoint gives to client_credentials."""
        return await self.token(id, secret)

    async def token(self, id: str, secret: str, **form: str) -> int:
        """The same with `resource` and `scope`."""
        async with aiohttp.ClientSession() as http:
            return (await machine_token(http, self.url, id, secret, **form)).status

    async def renewed(self) -> tuple[str, str]:
        """A client that got another secret because a person asked for one: what was stored before, and now; both work, within the overlap."""
        await self.make(clientSecretOverlap="1h")
        await self.settle()
        first = await self.proven()
        await self.annotate(regenerate_client_secret="true")
        await self.settle()
        return first, await self.proven()

    async def proven(self, name: str = SECRET) -> str:
        """The stored secret, once the token endpoint has taken it."""
        found = await self.credentials(name)
        assert await self.login(found["client_id"], found["client_secret"]) == 200
        return found["client_secret"]

    def writes(self) -> list[str]:
        """`METHOD path` of every write at the server, without its prefix."""
        return [f"{item.method} {item.path.removeprefix('/api/')}" for item in self.fake.journal.writes()]


def resource(kind: Any, name: str, spec: JsonObject) -> JsonObject:
    """An object of one of our kinds."""
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": kind.resource.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


@contextlib.asynccontextmanager
async def scene(folder: Path, fake: Fake | None = None) -> AsyncIterator[Scene]:
    """A fresh scene whose instance is Ready."""
    found = fake or Fake()
    async with furnished(folder, _furnish) as client, serving(found) as url:
        made = Scene(client, found, url)
        await made.secret("pocketid-key", token=found.api_key)
        await made.instance()
        await made.attach()
        found.journal.clear()
        yield made


async def _furnish(client: Client) -> None:
    for kind in KINDS:
        await client.create(CRDS, kind.crd())
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    await client.create(NAMESPACES, body)
    await _until_served(client)


async def _until_served(client: Client) -> None:
    """CRDs are served a moment after they are made."""
    async with asyncio.timeout(30):
        for kind in KINDS:
            while True:
                try:
                    await client.list(kind.resource)
                    break
                except NotFound:
                    await asyncio.sleep(0.01)


def condition(ready: bool = True) -> JsonObject:
    """Ready, as the controller of another kind says it."""
    said = {"type": "Ready", "status": "True" if ready else "False", "reason": "x", "message": ""}
    return {**said, "lastTransitionTime": "2026-01-01T00:00:00Z"}


async def until(check: Callable[[], Any]) -> None:
    """Wait for the cache; a bound against hanging, not a measure."""
    async with asyncio.timeout(30):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def fresh(here: Scene, world: World) -> None:
    """Wait until the cache holds what the server holds."""
    for rt in (*(kind.resource for kind in KINDS), SECRETS):
        listing = await here.client.list(rt)
        wanted = {(i["metadata"]["name"], i["metadata"]["resourceVersion"]) for i in listing.items}
        await until(
            lambda rt=rt, wanted=wanted: (
                wanted == {(i["metadata"]["name"], i["metadata"]["resourceVersion"]) for i in world.cache.list(rt)}
            )
        )
