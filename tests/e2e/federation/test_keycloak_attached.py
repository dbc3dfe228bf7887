"""A Keycloak and the operator, on one machine and on a real kube-apiserver: attached by what it publishes, a new key, down for a while, detached."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.example import ADMIN_PASSWORD
from tests.e2e.federation import manifests
from tests.e2e.federation.machine import SP_METADATA, Federated, client, content, federated_cluster, federated_machine
from tests.e2e.federation.realms import Real, backends, realms, register, rotate
from tests.e2e.federation.site import ACME, CORP, PEOPLE, Site
from tests.e2e.federation.watchers import forger, watching
from tests.fakes.idp import ServiceProvider
from tests.real.certificates import Authority
from tests.real.keycloak import Keycloak, keycloak, redirect

from moorage.kube import resources

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]
KEYCLOAK = "127.0.0.11"
ALLOWED = ("--federation-metadata-allow-cidrs", f"{KEYCLOAK}/32")
PROVIDERS = (ACME, CORP)
LDAP = example.BACKEND
WHERE = {"one-machine": federated_machine, "kube-apiserver": federated_cluster}
PRIORITIES = itertools.count(200)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keycloak]:
    """One Keycloak for both; where its people come back to, each test tells it."""
    nowhere = realms("https://nowhere.example.test")
    with keycloak(tmp_path_factory.mktemp("keycloak"), nowhere, Authority(), host=KEYCLOAK) as served:
        yield served


@pytest.fixture(scope="module", params=WHERE)
def machine(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, provider: Keycloak
) -> Iterator[Federated]:
    """A Keystone, nothing attached yet; the operator may fetch from Keycloak's address alone."""
    made = WHERE[request.param](tmp_path_factory.mktemp(request.param), *ALLOWED, authority=provider.authority)
    with made as found:

        async def serve() -> None:
            async with client(found) as on:
                await found.serve(on)

        asyncio.run(serve())
        yield found


@pytest.fixture
def site(machine: Federated) -> Site:
    """The cloud as people see it."""
    assert machine.site is not None
    return machine.site


@pytest.mark.case("S1", "B30", "K16")
async def test_people_of_a_keycloak_that_the_operator_fetches_from(
    machine: Federated, on: Cloud, site: Site, provider: Keycloak
) -> None:
    """Discovery and SAML metadata by https with a private authority, beside a directory; a new signing key, and a Keycloak that is down for a while.

    SAML leaves first, then the directory; nobody forges a login at any time.
    """
    await redirect(provider, realms(machine.base))
    real = Real(site.base, site.keystone, None, machine.trust, ADMIN_PASSWORD, provider=provider)  # type: ignore[arg-type]
    async with watching(forger(real, *PROVIDERS)) as attacker:
        directory = example.manifests(machine.up.directory)
        await on.apply([item for item in directory if item["metadata"]["name"] in ("planetexpress-bind", LDAP)])
        await _attached(on, provider)
        await on.ready(LDAP)
        assert (await on.login("fry", "fry")).status == 201
        for name in PROVIDERS:
            token = await real.token_of(name)
            assert (await real.said_of(token))["user"]["name"] == PEOPLE[name]
            assert await real.scoped(token, name) == ["member", "reader"]
        found = await real.bearer(await provider.token(ACME, PEOPLE[ACME], "cli"))
        assert (found.status, found.user) == (201, PEOPLE[ACME])
        await _new_key(on, real)
        await _down(on, real)
        await _leave(machine, on, real)
    assert not attacker.bad
    live = await on.client.get(resources.DEPLOYMENTS, on.key("keystone"))
    assert [item["name"] for item in live["spec"]["template"]["spec"]["containers"]] == ["keystone"]
    assert (await site.administrator_gets_in()).status == 201


async def _leave(machine: Federated, on: Cloud, real: Real) -> None:
    """Who stays gets in after each step."""
    await machine.detach(on, CORP)
    assert (await real.bearer(await real.provider.token(ACME, PEOPLE[ACME], "cli"))).status == 201
    assert (await on.login("fry", "fry")).status == 201
    await machine.detach(on, LDAP)
    assert (await real.bearer(await real.provider.token(ACME, PEOPLE[ACME], "cli"))).status == 201
    await machine.detach(on, ACME)
    await on.until(KEYSTONE, "keystone", holds("IdentityBackendsReady", reason="IdentityBackendsNotRequired"))


async def _attached(on: Cloud, provider: Keycloak) -> None:
    """Applied, registered, Ready."""
    found, authority = await backends(provider), provider.authority.pem.decode()
    descriptor = f"{provider.issuer(CORP)}/protocol/saml/descriptor"
    await on.apply(manifests.fetched(found[ACME]))
    await on.apply(manifests.by_url(found[CORP], descriptor, authority))
    exported = await on.until(resources.SECRETS, SP_METADATA, lambda obj: bool(obj.get("data")))
    await register(provider, ServiceProvider.of(content(exported, "sp-metadata.xml")))
    for name in PROVIDERS:
        await on.until(BACKEND, name, holds("Ready"))


async def _new_key(on: Cloud, real: Real) -> None:
    """SAML: refused until the document was fetched again, then taken. OIDC: taken at once, without a rollout."""
    await rotate(real.provider, CORP, next(PRIORITIES))
    page = await real.sign_in(real.visitor(), CORP)
    assert (page.status, page.token) == (400, "")
    await on.ask_again(CORP, "new key")
    await on.until(BACKEND, CORP, holds("ConfigProjected", "False"))
    for name in PROVIDERS:
        await on.until(BACKEND, name, holds("Ready"))
    assert (await real.sign_in(real.visitor(), CORP)).token
    before = await on.revision()
    await rotate(real.provider, ACME, next(PRIORITIES))
    assert await real.token_of(ACME)
    assert await on.revision() == before


async def _down(on: Cloud, real: Real) -> None:
    """Federated logins fail closed and passwords go on; the backends stay Ready on their last good documents, and say so."""
    token, before = await real.provider.token(ACME, PEOPLE[ACME], "cli"), await on.revision()
    with real.provider.down():
        assert (await real.bearer(token)).status == 401
        assert (await real.administrator_gets_in()).status == 201
        for name in PROVIDERS:
            await on.ask_again(name, "down")
            found = await on.until(BACKEND, name, lambda obj: obj["status"]["metadata"].get("stale"))
            assert holds("Ready")(found), found["status"]
    for name in PROVIDERS:
        await on.ask_again(name, "up")
        await on.until(BACKEND, name, lambda obj: not obj["status"]["metadata"].get("stale"))
    assert (await real.bearer(token)).status == 201
    assert await on.revision() == before
