"""A namespace on the embedded API server with a Keystone that the stub answers for, and the service room's part by hand.

Enters: a folder. Leaves: a Scene. What the kind Keystone would do (project, roll out) is done here with plain writes, so
that these tests see the backend's controller alone.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crashpoints import Fence, cached_world
from tests.keystone.stub_keystone import StubKeystone, StubResolver

from moorage.apiserver.server import Server
from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend import KIND, ROOM
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.observe_mount import decoded
from moorage.keystone.backend.render import Projected, project
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import AlreadyExists, NotFound
from moorage.kube.resources import CRDS, DEPLOYMENTS, NAMESPACES, SECRETS
from moorage.render.bundle import Bundle
from moorage.runtime.world import World

NAMESPACE = "openstack"
BACKENDS = KIND.resource
KEY = Key(NAMESPACE, "corp-ldap")
KEYSTONE_KEY = Key(NAMESPACE, "keystone")
FENCE = Fence  # the crash point's fence, for signatures here


@dataclass
class Scene:
    """One API server, one stub Keystone."""

    client: Client
    stub: StubKeystone

    @contextlib.asynccontextmanager
    async def world(self, fence: Any = None) -> AsyncIterator[World]:
        """What a process that just started sees."""
        resolver = StubResolver(self.stub)
        async with cached_world(self.client, [ROOM], fence or (lambda: None), resolver=resolver) as world:
            yield world

    # --- a person's part

    async def backend(self, name: str = KEY.name, *, domain: str = "corp", **fields: Any) -> JsonObject:
        """Apply a backend; `fields` go into spec.domain."""
        return await self.client.create(BACKENDS, backend(name, domain, **fields))

    async def stored(self, name: str = KEY.name) -> JsonObject | None:
        """The backend as the server has it, None when it is gone."""
        try:
            return await self.client.get(BACKENDS, Key(NAMESPACE, name))
        except NotFound:
            return None

    async def secret(self, name: str, **data: str) -> None:
        """Create or replace a Secret."""
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": NAMESPACE}}
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        try:
            await self.client.create(SECRETS, {**body, "data": encoded})
        except AlreadyExists:
            await self.client.patch(SECRETS, Key(NAMESPACE, name), {"data": encoded})

    # --- the service room's part

    async def api(self, *, up: bool) -> None:
        """Say that the Keystone's API answers, or does not."""
        ready = {"type": "KeystoneAPIReady", "status": "True" if up else "False", "reason": "x", "message": ""}
        status = {"conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}]}
        await self.client.patch(KEYSTONE.resource, KEYSTONE_KEY, {"status": status}, subresource="status")

    async def project(self, *backends: str) -> None:
        """Mount exactly these backends' files; the rollout is still to come. Twice is as once."""
        files: dict[str, bytes] = {}
        for name in backends:
            obj = await self.client.get(BACKENDS, Key(NAMESPACE, name))
            bind = decoded(await self.client.get(SECRETS, Key(NAMESPACE, "corp-ldap-bind")))
            found = project(KIND.parse(obj), Materials({"corp-ldap-bind": bind}))
            assert isinstance(found, Projected), found
            files |= found.files
        bundle = Bundle("keystone-domains", files)
        body = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": bundle.name, "namespace": NAMESPACE}}
        data = {key: base64.b64encode(value).decode() for key, value in files.items()}
        with contextlib.suppress(AlreadyExists):
            await self.client.create(SECRETS, {**body, "data": data})
        volumes = [{"name": "domains", "secret": {"secretName": bundle.name}}] if files else []
        patch = {"spec": {"template": {"spec": {"volumes": volumes or None}}}}
        await self.client.patch(DEPLOYMENTS, KEYSTONE_KEY, patch)

    async def rolled_out(self, *, done: bool = True) -> None:
        """Say that every replica runs the template, or that one of the older still does."""
        live = await self.client.get(DEPLOYMENTS, KEYSTONE_KEY)
        counts = {"replicas": 1 if done else 2, "updatedReplicas": 1, "readyReplicas": 1}
        status = {"observedGeneration": live["metadata"]["generation"], **counts}
        await self.client.patch(DEPLOYMENTS, KEYSTONE_KEY, {"status": status}, subresource="status")

    async def attach(self, *backends: str) -> None:
        """Project and roll out."""
        await self.project(*backends)
        await self.rolled_out()


def backend(name: str, domain: str, **fields: Any) -> JsonObject:
    """A backend whose directory refuses connections at once."""
    ldap = {
        "url": "ldap://127.0.0.1:1",
        "bindCredentialsSecretRef": {"name": "corp-ldap-bind"},
        "suffix": "dc=corp",
        "users": {"treeDN": "ou=people,dc=corp"},
    }
    spec = {"keystoneRef": {"name": "keystone"}, "domain": {"name": domain, **fields}, "type": "LDAP", "ldap": ldap}
    return {
        "apiVersion": BACKENDS.api_version,
        "kind": BACKENDS.kind,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def conditions(obj: JsonObject | None) -> dict[str, str]:
    """Condition type to `Status/Reason`."""
    found: Iterable[JsonObject] = ((obj or {}).get("status") or {}).get("conditions") or ()
    return {item["type"]: f"{item['status']}/{item['reason']}" for item in found}


@contextlib.asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """A fresh scene: namespace, Secrets, a Keystone whose API is up, its Deployment without any domain."""
    server = Server(folder / "data")
    await server.start()
    try:
        server.kubeconfig(folder / "kubeconfig")
        async with Client(load_kubeconfig(folder / "kubeconfig")) as client, StubKeystone() as stub:
            made = Scene(client, stub)
            await _furnish(made)
            yield made
    finally:
        await server.stop()


async def _furnish(made: Scene) -> None:
    client = made.client
    for kind in (KEYSTONE, KIND):
        await client.create(CRDS, kind.crd())
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await made.secret("keystone-admin", password="admin-password")
    await made.secret("corp-ldap-bind", username="cn=svc,dc=corp", password="bind-password")
    await _until_served(client)
    meta = {"name": "keystone", "namespace": NAMESPACE}
    await client.create(
        KEYSTONE.resource,
        {
            "apiVersion": KEYSTONE.resource.api_version,
            "kind": "Keystone",
            "metadata": meta,
            "spec": {
                "image": {"repository": "moorage/keystone", "tag": "30.0.0"},
                "deployment": {"replicas": 1},
                "database": {"embedded": {}},
                "bootstrap": {"adminPasswordSecretRef": {"name": "keystone-admin"}},
            },
        },
    )
    pod = {"containers": [{"name": "keystone", "image": "moorage/keystone:30.0.0"}]}
    labels = {"app": "keystone"}
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec}
    await client.create(DEPLOYMENTS, deployment)
    await made.api(up=True)
    await made.rolled_out()


async def _until_served(client: Client) -> None:
    """CRDs are served a moment after they are made."""
    import asyncio

    async with asyncio.timeout(30):
        for kind in (KEYSTONE, KIND):
            while True:
                try:
                    await client.list(kind.resource)
                    break
                except NotFound:
                    await asyncio.sleep(0.01)
