"""A Keycloak and the operator, on one machine and on a real kube-apiserver: attached by what it publishes, a new key, down for a while, detached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.example import ADMIN_PASSWORD
from tests.e2e.federation import manifests
from tests.e2e.federation.machine import SP_METADATA, Federated, client, content, federated_cluster, federated_machine
from tests.e2e.federation.realms import Real, backends, realms, register, rotate
from tests.e2e.federation.site import ACME, CORP, PEOPLE, Site
from tests.e2e.federation.watchers import forger, watching
from tests.fakes.idp import ServiceProvider
from tests.real.keycloak import Keycloak, keycloak
from tests.real.process import TICK

from moorage.kube import resources

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]
KEYCLOAK = "127.0.0.11"
ALLOWED = ("--federation-metadata-allow-cidrs", f"{KEYCLOAK}/32")
FORGED = (ACME, CORP)
WHERE = {"one-machine": federated_machine, "kube-apiserver": federated_cluster}


@pytest.fixture(scope="module", params=WHERE)
def machine(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """A Keystone, nothing attached yet; the operator may fetch from Keycloak's address alone."""
    with WHERE[request.param](tmp_path_factory.mktemp(request.param), *ALLOWED) as found:

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
    machine: Federated, on: Cloud, site: Site, tmp_path: Path
) -> None:
    """Discovery and SAML metadata by https with a private authority; a new signing key, and a Keycloak that is down for a while."""
    with keycloak(tmp_path, realms(machine.base), machine.authority, host=KEYCLOAK) as provider:
        real = Real(site.base, site.keystone, None, machine.trust, ADMIN_PASSWORD, provider=provider)  # type: ignore[arg-type]
        async with watching(forger(real, *FORGED)) as attacker:
            await _attached(on, provider)
            for name in FORGED:
                token = await real.token_of(name)
                assert (await real.said_of(token))["user"]["name"] == PEOPLE[name]
                assert await real.scoped(token, name) == ["member", "reader"]
            token = await provider.token(ACME, PEOPLE[ACME], "cli")
            assert (await real.bearer(token)).status == 201
            await _new_key(on, real)
            await _down(on, real)
            await machine.detach(on, *FORGED)
            await on.until(KEYSTONE, "keystone", holds("IdentityBackendsReady", reason="IdentityBackendsNotRequired"))
        assert not attacker.bad
        assert (await site.administrator_gets_in()).status == 201


async def _attached(on: Cloud, provider: Keycloak) -> None:
    """Applied, registered, Ready."""
    found, authority = await backends(provider), provider.authority.pem.decode()
    descriptor = f"{provider.issuer(CORP)}/protocol/saml/descriptor"
    await on.apply(manifests.fetched(found[ACME]))
    await on.apply(manifests.by_url(found[CORP], descriptor, authority))
    exported = await on.until(resources.SECRETS, SP_METADATA, lambda obj: bool(obj.get("data")))
    await register(provider, ServiceProvider.of(content(exported, "sp-metadata.xml")))
    for name in FORGED:
        await on.until(BACKEND, name, holds("Ready"))


async def _new_key(on: Cloud, real: Real) -> None:
    """SAML: refused until the document was fetched again, then taken. OIDC: taken at once, without a rollout."""
    await rotate(real.provider, CORP)
    page = await real.sign_in(real.visitor(), CORP)
    assert (page.status, page.token) == (400, "")
    await on.ask_again(CORP, "new key")
    async with asyncio.timeout(300):
        while not (await real.sign_in(real.visitor(), CORP)).token:  # noqa: ASYNC110  an endpoint tells nobody
            await asyncio.sleep(TICK)
    await on.until(BACKEND, CORP, holds("Ready"))
    await on.until(BACKEND, ACME, holds("Ready"))
    before = await on.revision()
    await rotate(real.provider, ACME)
    assert await real.token_of(ACME)
    assert await on.revision() == before


async def _down(on: Cloud, real: Real) -> None:
    """Federated logins fail closed and passwords go on; the backends stay Ready on their last good documents, and say so."""
    token, before = await real.provider.token(ACME, PEOPLE[ACME], "cli"), await on.revision()
    with real.provider.down():
        assert (await real.bearer(token)).status == 401
        assert (await real.administrator_gets_in()).status == 201
        for name in FORGED:
            await on.ask_again(name, "down")
            found = await on.until(BACKEND, name, lambda obj: obj["status"]["metadata"].get("stale"))
            assert holds("Ready")(found), found["status"]
    for name in FORGED:
        await on.ask_again(name, "up")
        await on.until(BACKEND, name, lambda obj: not obj["status"]["metadata"].get("stale"))
    assert (await real.bearer(token)).status == 201
    assert await on.revision() == before
