"""A namespace on the embedded API server with a Keystone that the stub answers for, and the service room's part by hand.

Enters: a folder. Leaves: a Scene. What the kind Keystone would do (project, roll out) is done here with plain writes, so
that these tests see the backend's controller alone.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.crashpoints import Fence, cached_world
from tests.keystone.stub_keystone import StubKeystone, StubResolver
from tests.real.furnished import furnished

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend import KIND, ROOM
from moorage.keystone.backend.documents import source_of
from moorage.keystone.backend.materials import Document, Fault, Materials
from moorage.keystone.backend.observe_mount import VOLUMES, decoded
from moorage.keystone.backend.render import Projected, project, secret_names
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.client import Client
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

    async def oidc(self, name: str = KEY.name, **spec: Any) -> JsonObject:
        """Apply an OIDC backend with one rule and one group; `spec` replaces its fields."""
        return await self.client.create(BACKENDS, oidc(name, **spec))

    async def edit(self, name: str = KEY.name, **spec: Any) -> None:
        """Change fields of a spec; lists are replaced."""
        await self.client.patch(BACKENDS, Key(NAMESPACE, name), {"spec": spec})

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
        files: dict[str, dict[str, bytes]] = {"domains": {}, "federation-metadata": {}, "federation-mellon": {}}
        for name in backends:
            backend = KIND.parse(await self.client.get(BACKENDS, Key(NAMESPACE, name)))
            found = project(backend, await self._materials(backend))
            assert isinstance(found, Projected), found
            files[VOLUMES[backend.spec.type]] |= found.files
        volumes = [await self._volume(name, content) for name, content in files.items() if content]
        patch = {"spec": {"template": {"spec": {"volumes": volumes or None}}}}
        await self.client.patch(DEPLOYMENTS, KEYSTONE_KEY, patch)

    async def _materials(self, backend: Any) -> Materials:
        """What both rooms make the files from."""
        secrets = {}
        for name in secret_names(backend):
            with contextlib.suppress(NotFound):
                secrets[name] = decoded(await self.client.get(SECRETS, Key(NAMESPACE, name)))
        document = source_of(backend, secrets, datetime.now(UTC))
        assert isinstance(document, Document | Fault | None), "what is fetched is no matter of these tests"
        return Materials(secrets, "http://keystone.openstack.svc.cluster.local:5000", document)

    async def _volume(self, name: str, files: Mapping[str, bytes]) -> JsonObject:
        bundle = Bundle(f"keystone-{name}", files)
        body = {"kind": "Secret", "apiVersion": "v1", "metadata": {"name": bundle.name, "namespace": NAMESPACE}}
        data = {key: base64.b64encode(value).decode() for key, value in files.items()}
        with contextlib.suppress(AlreadyExists):
            await self.client.create(SECRETS, {**body, "data": data})
        return {"name": name, "secret": {"secretName": bundle.name}}

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


PROXY = {"proxyImage": {"repository": "moorage/keystone-federation-proxy", "tag": "2.4"}}
ISSUER = "https://idp.example.org/realms/corp"
RULES = [
    {
        "remote": [{"type": "HTTP_OIDC_ISS", "anyOneOf": [ISSUER]}, {"type": "HTTP_OIDC_PREFERRED_USERNAME"}],
        "local": [{"user": {"name": "{0}"}, "group": {"name": "eng", "domain": {"name": "corp"}}}],
    }
]


def oidc(name: str, **spec: Any) -> JsonObject:
    """A backend whose provider is declared in full, so that nothing is fetched."""
    endpoints = {item: f"{ISSUER}/{item}" for item in ("authorizationEndpoint", "tokenEndpoint", "jwksURI")}
    secret = {"name": "client"}
    provider = {"issuer": ISSUER, "clientID": "keystone", "clientSecretRef": secret, "endpoints": endpoints}
    body = {
        "keystoneRef": {"name": "keystone"},
        "domain": {"name": "corp"},
        "type": "OIDC",
        "oidc": {**provider, "identityProviderName": "acme", **spec.pop("oidc", {})},
        "mappings": RULES,
        "groups": [{"name": "eng", "roleAssignments": [{"role": "member", "domain": True}]}],
        **spec,
    }
    meta = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": BACKENDS.api_version, "kind": BACKENDS.kind, "metadata": meta, "spec": body}


def conditions(obj: JsonObject | None) -> dict[str, str]:
    """Condition type to `Status/Reason`."""
    found: Iterable[JsonObject] = ((obj or {}).get("status") or {}).get("conditions") or ()
    return {item["type"]: f"{item['status']}/{item['reason']}" for item in found}


@contextlib.asynccontextmanager
async def scene(folder: Path) -> AsyncIterator[Scene]:
    """A fresh scene: namespace, Secrets, a Keystone whose API is up, its Deployment without any domain."""
    async with furnished(folder, _furnish) as client, StubKeystone() as stub:
        for role in ("member", "reader"):
            stub.federated.role(role)
        yield Scene(client, stub)


async def _furnish(client: Client) -> None:
    made = Scene(client, StubKeystone())
    for kind in (KEYSTONE, KIND):
        await client.create(CRDS, kind.crd())
    await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    await made.secret("keystone-admin", password="admin-password")
    await made.secret("corp-ldap-bind", username="cn=svc,dc=corp", password="bind-password")
    await made.secret("client", clientSecret="client-secret")
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
                "federation": PROXY,
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
