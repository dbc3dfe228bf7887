"""`moorage up` with a fake provider beside it and a TLS gateway before its Keystone.

Enters: a folder. Leaves: a running `Federated` for the time of a `with`, nothing attached yet. Everything that a person would do is done through the API.
"""

from __future__ import annotations

import base64
import contextlib
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, cloud, condition, holds
from tests.e2e.databases.site import DB_SECRET
from tests.e2e.example import ADMIN_PASSWORD, QUICK
from tests.e2e.federation import manifests
from tests.e2e.federation.site import CORP, DASHBOARD, Site, realms
from tests.e2e.kubernetes.cluster import Cluster, cluster
from tests.e2e.one_machine.machine import Machine, machine
from tests.fakes.idp import FakeIdp, ServiceProvider, fake_idp
from tests.real.certificates import Authority
from tests.real.database import NAME, Database
from tests.real.gateway import gateway
from tests.real.ports import free_port
from tests.real.process import poll

from moorage.core.meta import JsonObject
from moorage.kube import resources

GATEWAY = "127.0.0.40"
SP_METADATA = "keystone-saml-sp-metadata"


@dataclass
class Federated:
    """A machine, a provider and the gateway's address; `site` as soon as Keystone is served."""

    up: Machine | Cluster
    idp: FakeIdp
    base: str
    authority: Authority
    stack: contextlib.ExitStack
    """What stands before the Keystone."""
    named: Callable[[str], None] = lambda address: None
    """Told the address of Keystone's Service, where names of Services are somebody else's matter."""
    fetched: frozenset[str] = frozenset()
    """Providers whose discovery document the operator fetches by itself."""
    site: Site | None = field(default=None, init=False)

    @property
    def kubeconfig(self) -> Path:
        return self.up.api.kubeconfig if isinstance(self.up, Cluster) else self.up.kubeconfig

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.authority.pem.decode())

    async def serve(self, on: Cloud, *more: JsonObject, keystone: JsonObject | None = None) -> Site:
        """Apply the Keystone, with changes over its spec, and put the gateway before its Service."""
        *first, declared = manifests.site(self.base, DASHBOARD)
        declared["spec"] |= {"extraConfig": QUICK["extraConfig"], **(keystone or {})}
        await on.apply([*first, *more, declared])
        await on.until(KEYSTONE, "keystone", lambda obj: bool(condition(obj, "KeystoneAPIReady")[0]))
        url = await on.url()
        self.named(url.removeprefix("http://").partition(":")[0])
        await on.until(KEYSTONE, "keystone", holds("KeystoneAPIReady"))
        self.front([url.removesuffix("/v3")])
        self.site = Site(self.base, url, self.idp, self.trust, ADMIN_PASSWORD)
        return self.site

    def front(self, behind: Sequence[str]) -> None:
        """Put the gateway before these servers, which it asks strictly in turn; one that stood before is ended."""
        self.stack.pop_all().close()
        port = int(self.base.rpartition(":")[2])
        place = self.up.folder / "gateway"
        self.stack.enter_context(gateway(place, self.authority, behind, host=GATEWAY, port=port))

    def documents(self, name: str) -> list[JsonObject]:
        """A backend of the stand with its Secrets."""
        found = manifests.backends(self.idp)[name]
        return manifests.fetched(found) if name in self.fetched else found

    async def attach(self, on: Cloud, *names: str) -> None:
        """Apply backends of the stand and wait until they are Ready; the provider learns of the service provider as an administrator would tell it."""
        for name in names:
            await on.apply(self.documents(name))
        if CORP in names:
            await self.register(on)
        for name in names:
            await on.until(BACKEND, name, holds("Ready"))

    async def register(self, on: Cloud) -> None:
        """Hand the exported SP metadata to the provider."""
        found = await on.until(resources.SECRETS, SP_METADATA, lambda obj: bool(obj.get("data")))
        document = content(found, "sp-metadata.xml")
        realm = self.idp.realm(CORP)
        realm.providers[:] = [ServiceProvider.of(document)]

    async def detach(self, on: Cloud, *names: str) -> None:
        """Delete backends and wait until they are gone."""
        for name in names:
            await on.client.delete(BACKEND, on.key(name))
        for name in names:
            await on.gone(BACKEND, name)


def on_server(database: Database, replicas: int) -> JsonObject:
    """What is laid over a Keystone's spec so that it runs on a database server; the account is `tests.e2e.databases.site.credentials`."""
    where = {"engine": database.engine, "host": "127.0.0.1", "port": database.port, "database": NAME}
    return {
        "database": {**where, "secretRef": {"name": DB_SECRET}},
        "deployment": {"replicas": replicas},
    }


def content(secret: JsonObject, key: str) -> bytes:
    """A value of a Secret."""
    return base64.b64decode(secret["data"][key])


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextlib.contextmanager
def federated_cluster(folder: Path, *arguments: str, authority: Authority | None = None) -> Iterator[Federated]:
    """Two replicas of the operator on a real kube-apiserver, and a provider; `arguments` are further ones of `moorage run`."""
    base = f"https://{GATEWAY}:{free_port(GATEWAY)}"
    authority = authority or Authority()
    with contextlib.ExitStack() as stack:
        idp = stack.enter_context(fake_idp(folder / "idp", realms(base), authority))
        up = stack.enter_context(cluster(folder, *arguments))
        for replica in up.replicas:
            poll(partial(_is_ready, replica.health), what=f"{replica.name} ready", limit=120)
        before = stack.enter_context(contextlib.ExitStack())
        named = partial(up.name, "keystone.openstack.svc.cluster.local")
        yield Federated(up, idp, base, authority, before, named)


@contextlib.contextmanager
def federated_machine(
    folder: Path, *arguments: str, fetched: frozenset[str] = frozenset(), authority: Authority | None = None
) -> Iterator[Federated]:
    """A machine and a provider; `arguments` are further ones of `moorage up`."""
    base = f"https://{GATEWAY}:{free_port(GATEWAY)}"
    authority = authority or Authority()
    with contextlib.ExitStack() as stack:
        idp = stack.enter_context(fake_idp(folder / "idp", realms(base), authority))
        up = stack.enter_context(machine(folder, *arguments))
        before = stack.enter_context(contextlib.ExitStack())
        yield Federated(up, idp, base, authority, before, fetched=fetched)


@contextlib.asynccontextmanager
async def client(of: Federated) -> AsyncIterator[Cloud]:
    """A client of its API."""
    async with cloud(of.kubeconfig) as opened:
        yield opened
