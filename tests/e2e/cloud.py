"""What a test asks of an API server and of the Keystone on it, as an administrator and as a user of the directory.

Enters: a kubeconfig. Leaves: objects, tokens, and waits that end with a condition (woken by watches, never by a clock).
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
from tests.e2e.example import ADMIN_PASSWORD
from tests.real.process import TICK

from moorage.cli.waiting import until
from moorage.core.meta import JsonObject, Key, ResourceType, controller_of, is_terminating
from moorage.keystone import KINDS
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import NotFound

OURS = {kind.kind: kind.resource for kind in KINDS}
KEYSTONE, BACKEND = OURS["Keystone"], OURS["KeystoneIdentityBackend"]
TYPES = {"Namespace": resources.NAMESPACES, "Secret": resources.SECRETS, **OURS}
PROBE_AT = "moorage.internal/probe-at"


@dataclass(frozen=True)
class Login:
    """The answer to a password login: status, token body, token."""

    status: int
    body: JsonObject
    token: str

    @property
    def roles(self) -> list[str]:
        return sorted(role["name"] for role in self.body.get("roles", ()))


def condition(obj: JsonObject, type_: str) -> tuple[str, str, str]:
    """Status, reason and message of a condition; empty texts when it is not there."""
    for item in (obj.get("status") or {}).get("conditions") or ():
        if item["type"] == type_:
            return item["status"], item["reason"], item.get("message", "")
    return "", "", ""


def holds(type_: str, status: str = "True", reason: str = "") -> Callable[[JsonObject], bool]:
    """Whether a condition has this status (and reason) at the current generation."""

    def ask(obj: JsonObject) -> bool:
        current = (obj.get("status") or {}).get("observedGeneration", 0) >= obj["metadata"].get("generation", 1)
        found = condition(obj, type_)
        return current and found[0] == status and (not reason or found[1] == reason)

    return ask


@dataclass
class Cloud:
    """One namespace of a served API, with its Keystone."""

    client: Client
    namespace: str = "openstack"
    _url: str = ""

    def key(self, name: str) -> Key:
        return Key(self.namespace, name)

    async def apply(self, documents: Sequence[JsonObject]) -> None:
        """As `kubectl apply --server-side`."""
        for document in documents:
            await self.client.apply(TYPES[document["kind"]], document)

    async def until(
        self, rt: ResourceType, name: str, done: Callable[[JsonObject], object], limit: float = 400
    ) -> JsonObject:
        """The object as soon as `done` holds; TimeoutError with its last conditions."""
        last: JsonObject | None = None
        try:
            async with asyncio.timeout(limit):
                async for obj in until(self.client, rt, self.key(name)):
                    last = obj
                    if obj is not None and done(obj):
                        return obj
        except TimeoutError:
            raise TimeoutError(f"{rt.kind} {name}: {json.dumps((last or {}).get('status'), indent=1)}") from None
        raise AssertionError("a watch of one object does not end")

    async def ready(self, name: str) -> JsonObject:
        """A backend that is Ready and whose directory answers."""
        return await self.until(BACKEND, name, lambda o: holds("Ready")(o) and holds("DirectoryReachable")(o))

    async def gone(self, rt: ResourceType, name: str, limit: float = 400) -> None:
        """Wait until an object does not exist (any more)."""
        key = Key("" if not rt.namespaced else self.namespace, name)
        try:
            async with asyncio.timeout(limit):
                async for obj in until(self.client, rt, key):
                    if obj is None:
                        return
        except TimeoutError:
            left = await self.client.get(rt, key)
            raise TimeoutError(f"{rt.kind} {name} does not end: {json.dumps(left, indent=1)}") from None

    async def exists(self, rt: ResourceType, name: str) -> bool:
        try:
            await self.client.get(rt, self.key(name))
        except NotFound:
            return False
        return True

    async def set_secret(self, name: str, **values: str) -> None:
        """Change values of a Secret."""
        data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
        await self.client.patch(resources.SECRETS, self.key(name), {"data": data})

    async def ask_again(self, name: str, note: str) -> None:
        """Wake a backend's controller, and its probe of the directory."""
        await self.client.patch(BACKEND, self.key(name), {"metadata": {"annotations": {PROBE_AT: note}}})

    async def revision(self) -> int:
        """Revision of the Keystone Deployment: one more for each rollout."""
        live = await self.client.get(resources.DEPLOYMENTS, self.key("keystone"))
        return int(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"])

    async def mounted(self) -> list[str]:
        """Names of the volumes of the Keystone Deployment."""
        live = await self.client.get(resources.DEPLOYMENTS, self.key("keystone"))
        return [volume["name"] for volume in live["spec"]["template"]["spec"]["volumes"]]

    async def projected(self) -> list[str]:
        """Names of the Secrets that hold domain files."""
        listing = await self.client.list(resources.SECRETS, self.namespace)
        return [name for item in listing.items if "-domains-" in (name := item["metadata"]["name"])]

    async def jobs(self) -> set[str]:
        """Uids of the Jobs that the operator made; those of a CronJob come with the hour."""
        listing = await self.client.list(resources.JOBS, self.namespace)
        owners = {item["metadata"]["uid"]: controller_of(item) for item in listing.items}
        return {uid for uid, owner in owners.items() if owner is None or owner.kind != "CronJob"}

    # --- Keystone

    async def url(self) -> str:
        """Of the Service, whose address stays as long as it is there: looked up once, not for each login."""
        if not self._url:
            service = await self.client.get(resources.SERVICES, self.key("keystone"))
            self._url = f"http://{service['spec']['clusterIP']}:5000/v3"
        return self._url

    async def login(self, user: str, password: str, *, domain: str = "planetexpress", scope: Any = None) -> Login:
        """A password login by a connection of its own; status 0 when there was no answer."""
        who = {"name": user, "domain": {"name": domain}, "password": password}
        auth: JsonObject = {"identity": {"methods": ["password"], "password": {"user": who}}}
        if scope is not None:
            auth["scope"] = scope
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(f"{await self.url()}/auth/tokens", json={"auth": auth}) as answer,
            ):
                body = await answer.json()
                return Login(answer.status, body.get("token", {}), answer.headers.get("X-Subject-Token", ""))
        except aiohttp.ClientError as error:
            return Login(0, {"error": repr(error)}, "")

    async def validates(self, token: str) -> bool:
        """Whether Keystone takes a token, which proves itself."""
        headers = {"X-Auth-Token": token, "X-Subject-Token": token}
        async with (
            aiohttp.ClientSession(headers=headers) as session,
            session.get(f"{await self.url()}/auth/tokens") as answer,
        ):
            return answer.status == 200

    async def administrator(self) -> Login:
        """A system administrator's login."""
        return await self.login("admin", ADMIN_PASSWORD, domain="Default", scope={"system": {"all": True}})

    async def administrator_of_a_project(self) -> Login:
        """The same account, for its project: Keystone computes 27 ms instead of 87, for those who log in all the time."""
        project = {"name": "admin", "domain": {"id": "default"}}
        return await self.login("admin", ADMIN_PASSWORD, domain="Default", scope={"project": project})

    @contextlib.asynccontextmanager
    async def identity(self) -> AsyncIterator[Callable[..., Any]]:
        """`await ask(method, path)` as the administrator: status and decoded body."""
        token, base = (await self.administrator()).token, await self.url()
        assert token, "the administrator cannot log in"
        async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:

            async def ask(method: str, path: str) -> tuple[int, Any]:
                async with session.request(method, f"{base}{path}") as answer:
                    text = await answer.text()
                    return answer.status, json.loads(text) if text else {}

            yield ask

    async def domain(self, name: str) -> JsonObject | None:
        """A domain as Keystone has it."""
        async with self.identity() as ask:
            found = (await ask("GET", f"/domains?name={name}"))[1]["domains"]
        return found[0] if found else None

    async def grant(self, domain: str, group: str, role: str) -> None:
        """Give a group of the directory a role on its domain."""
        async with self.identity() as ask:
            id = (await ask("GET", f"/domains?name={domain}"))[1]["domains"][0]["id"]
            groups = (await ask("GET", f"/groups?domain_id={id}"))[1]["groups"]
            chosen = next(item["id"] for item in groups if item["name"] == group)
            role_id = (await ask("GET", f"/roles?name={role}"))[1]["roles"][0]["id"]
            status, _ = await ask("PUT", f"/domains/{id}/groups/{chosen}/roles/{role_id}")
            assert status == 204

    async def _pods(self) -> Sequence[JsonObject]:
        return (await self.client.list(resources.PODS, self.namespace, labels="app.kubernetes.io/component=api")).items

    async def rolled(self) -> None:
        """Wait until every Keystone pod has started and none is on its way out: from then on their logs only grow."""
        async with asyncio.timeout(400):
            while not all(map(_stays, await self._pods())):  # noqa: ASYNC110  pods that go are told by no condition
                await asyncio.sleep(TICK)

    async def requests(self) -> list[str]:
        """Every request that the Keystone pods of now have answered, as their log has it."""
        return [
            line
            for pod in await self._pods()
            async for line in self.client.logs(self.key(pod["metadata"]["name"]))
            if "HTTP/1" in line
        ]


def _stays(pod: JsonObject) -> bool:
    """Whether a pod runs and is not being deleted."""
    statuses = pod["status"].get("containerStatuses") or ()
    return not is_terminating(pod) and bool(statuses) and all("running" in item["state"] for item in statuses)


@contextlib.asynccontextmanager
async def cloud(kubeconfig: Path, namespace: str = "openstack") -> AsyncIterator[Cloud]:
    """A client for the time of a `with`."""
    async with Client(load_kubeconfig(str(kubeconfig)), field_manager="test") as client:
        yield Cloud(client, namespace)
