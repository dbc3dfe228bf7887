"""The pages about Pocket-ID as identity provider of a Keystone: their commands, then a person who signs in at a fake Pocket-ID and is somebody in Keystone.

The operator asks the fake over plain HTTP, as inside a cluster; people and the sidecar know it by an https address of its own, which is the issuer.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import yaml
from tests.docs.commands import PEOPLE, commands
from tests.docs.reader import Reader, copy
from tests.e2e.cloud import BACKEND, Cloud, holds
from tests.e2e.example import QUICK
from tests.e2e.federation import manifests
from tests.e2e.federation.machine import Federated, client, federated_machine
from tests.e2e.federation.site import DASHBOARD
from tests.fakes.pocketid import API_KEY, Fake, running
from tests.fakes.pocketid.model import Group, User, new_id
from tests.fakes.pocketid.probes import log_in

from moorage.core.meta import JsonObject
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

EXAMPLE = "examples/pocketid-keystone"
NAME = "people"
HOST = "127.0.0.13"
WRITTEN, GATEWAY = "https://id.example.org", "https://127.0.0.40:5443"
"""Addresses in the example."""


@dataclass
class Stand:
    """A Keystone behind its gateway, a Pocket-ID by two addresses."""

    machine: Federated
    fake: Fake
    inside: str
    issuer: str


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Nothing attached yet."""
    fake, folder = Fake("2.17.0"), tmp_path_factory.mktemp("pocketid-keystone")
    with federated_machine(folder) as machine:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(*machine.authority.issue(folder, "pocketid", (HOST,)))
        with running(fake, 0, HOST, tls) as issuer, running(fake) as inside:
            asyncio.run(_served(machine))
            yield Stand(machine, fake, inside, issuer)


async def _served(machine: Federated) -> None:
    async with client(machine) as on:
        await machine.serve(on, keystone=QUICK)


@pytest.fixture(scope="module")
def reader(stand: Stand, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A checkout whose example has the addresses of now."""
    checkout = copy(tmp_path_factory.mktemp("pocketid-keystone-checkout"))
    for file in (checkout / EXAMPLE).iterdir():
        text = file.read_text().replace(WRITTEN, stand.issuer).replace(GATEWAY, stand.machine.base)
        file.write_text(text.replace("change-me-to-an-api-key-of-your-server", API_KEY))
    _change(checkout / EXAMPLE / "20-keystone.yaml", federation={"trustedDashboards": [DASHBOARD]}, **QUICK)
    _change(checkout / EXAMPLE / "30-instance.yaml", appUrl=stand.issuer, external={"url": stand.inside})
    there = {ours: _address(stand, theirs) for ours, theirs in manifests.ENDPOINTS.items()}
    trusted = {"caBundleSecretRef": {"name": "people-ca"}, "endpoints": there}
    _change(checkout / EXAMPLE / "50-backend.yaml", oidc=trusted)
    meta = {"name": "people-ca", "namespace": "openstack"}
    bundle = {"ca.crt": stand.machine.authority.pem.decode()}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": bundle}
    (checkout / EXAMPLE / "15-authority.yaml").write_text(yaml.safe_dump(secret))
    return Reader(stand.machine.up, checkout)


def _address(stand: Stand, name: str) -> str:
    """An endpoint, as the server's discovery document has it; a provider that the operator may not fetch is declared."""
    paths = {
        "authorization_endpoint": "/authorize",
        "token_endpoint": "/api/oidc/token",
        "jwks_uri": "/.well-known/jwks.json",
        "userinfo_endpoint": "/api/oidc/userinfo",
        "end_session_endpoint": "/api/oidc/end-session",
        "introspection_endpoint": "/api/oidc/introspect",
    }
    return f"{stand.issuer}{paths[name]}"


def _change(file: Path, **spec: Any) -> None:
    """Lay members over the spec of the one document of a file."""
    (document,) = yaml.safe_load_all(file.read_text())
    for name, value in spec.items():
        document["spec"][name] = {**document["spec"].get(name, {}), **value} if isinstance(value, dict) else value
    file.write_text(yaml.safe_dump(document))


@pytest.mark.parametrize("page", PEOPLE)
async def test_every_command_of_a_page_works(page: str, reader: Reader) -> None:
    """In order, each exits 0; both resources are Ready at the end."""
    for command in commands(page):
        await reader.run(command)


async def test_a_person_of_pocket_id_is_somebody_in_keystone(stand: Stand, reader: Reader) -> None:
    """With the passkey session of Pocket-ID, without a password: user, domain and role by group; who is in no group has no role. A rotation changes nothing."""
    for command in commands(PEOPLE[1])[2:]:
        await reader.run(command)
    ann, bob = _person(stand.fake, "ann", "staff"), _person(stand.fake, "bob")
    async with client(stand.machine) as on:
        assert await _roles(stand, ann) == ("ann", NAME, ["member", "reader"])
        assert await _roles(stand, bob) == ("", "", [])
        await _rotated(stand, on)
        assert await _roles(stand, ann) == ("ann", NAME, ["member", "reader"])


def _person(fake: Fake, name: str, *groups: str) -> str:
    """Somebody who registered with a passkey; the id."""
    settings = {
        "username": name,
        "email": f"{name}@example.org",
        "firstName": name,
        "lastName": "",
        "displayName": name,
    }
    user = User(new_id(), {**settings, "isAdmin": False, "disabled": False, "locale": None, "emailVerified": True})
    fake.store.users[user.id] = user
    for group in groups:
        made = Group(group, group, fake.clock.now(), users={user.id})
        fake.store.groups[made.id] = made
    return user.id


async def _roles(stand: Stand, user: str) -> tuple[str, str, list[str]]:
    """Who a person is in Keystone after a browser login: name, domain, roles on it; all empty when there is no token."""
    site = stand.machine.site
    assert site is not None
    visitor = site.visitor()
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        browser = await log_in(http, stand.inside, API_KEY, user)
    visitor.jar.kept[HOST, "__Host-access_token"] = (browser.session, "/", True)
    page = await visitor.open(f"{stand.machine.base}{_websso()}")
    found = (await _scoped(stand, page.token)).get("token") if page.token else None
    if found is None:
        return "", "", []
    return found["user"]["name"], found["user"]["domain"]["name"], sorted(role["name"] for role in found["roles"])


def _websso() -> str:
    return f"/v3/auth/OS-FEDERATION/identity_providers/{NAME}/protocols/openid/websso?origin={DASHBOARD}"


async def _scoped(stand: Stand, token: str) -> JsonObject:
    """The token scoped to the domain, as Keystone tells it."""
    identity = {"methods": ["token"], "token": {"id": token}}
    auth = {"auth": {"identity": identity, "scope": {"domain": {"name": NAME}}}}
    site = stand.machine.site
    assert site is not None
    async with aiohttp.ClientSession() as http, http.post(f"{site.keystone}/auth/tokens", json=auth) as answer:
        return json.loads(await answer.read())  # type: ignore[no-any-return]


async def _rotated(stand: Stand, on: Cloud) -> None:
    """A new client secret, in the Secret and in every replica."""
    before = await on.client.get(resources.SECRETS, on.key("keystone-at-pocket-id"))
    from moorage.pocketid.oidcclient.types import KIND, REGENERATE

    await on.client.patch(KIND.resource, on.key("keystone"), {"metadata": {"annotations": {REGENERATE: "true"}}})
    await on.until(resources.SECRETS, "keystone-at-pocket-id", lambda obj: obj["data"] != before["data"])
    await on.until(BACKEND, NAME, lambda obj: not holds("ConfigProjected")(obj))
    await on.until(BACKEND, NAME, holds("Ready"))
