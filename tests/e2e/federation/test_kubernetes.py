"""The operator on a real kube-apiserver, two replicas of it: an OpenID Connect and a SAML provider beside a directory are attached, used and detached."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.e2e import example
from tests.e2e.cloud import KEYSTONE, Cloud, holds
from tests.e2e.federation.machine import Federated, client, federated_cluster
from tests.e2e.federation.site import ACME, CORP, PEOPLE, Site
from tests.e2e.federation.watchers import forger, watching

from moorage.kube import resources

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]
LDAP = example.BACKEND


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """The cluster with a Keystone, nothing attached yet."""
    with federated_cluster(tmp_path_factory.mktemp("cluster")) as found:
        asyncio.run(_served(found))
        yield found


async def _served(found: Federated) -> None:
    async with client(found) as on:
        await found.serve(on)


@pytest.fixture
def site(machine: Federated) -> Site:
    """The cloud as people see it."""
    assert machine.site is not None
    return machine.site


@pytest.mark.case("S1")
async def test_providers_are_attached_used_and_detached(machine: Federated, on: Cloud, site: Site) -> None:
    """The same manifests as on one machine, SAML leaves first, then the directory; nobody forges a login at any time."""
    async with watching(forger(site, ACME, CORP)) as attacker:
        directory = example.manifests(machine.up.directory)
        await on.apply([item for item in directory if item["metadata"]["name"] in ("planetexpress-bind", LDAP)])
        await machine.attach(on, ACME, CORP)
        await on.ready(LDAP)
        assert (await on.login("fry", "fry")).status == 201
        for name in (ACME, CORP):
            token = await site.token_of(name)
            assert (await site.said_of(token))["user"]["name"] == PEOPLE[name]
            assert await site.scoped(token, name) == ["member", "reader"]
        found = await site.bearer(site.idp.token(ACME, "alice", "cli"))
        assert (found.status, found.user) == (201, "alice")
        await machine.detach(on, CORP)
        assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201
        assert (await on.login("fry", "fry")).status == 201
        await machine.detach(on, LDAP)
        assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201
        await machine.detach(on, ACME)
        await on.until(KEYSTONE, "keystone", holds("IdentityBackendsReady", reason="IdentityBackendsNotRequired"))
    assert not attacker.bad
    live = await on.client.get(resources.DEPLOYMENTS, on.key("keystone"))
    assert [item["name"] for item in live["spec"]["template"]["spec"]["containers"]] == ["keystone"]
    assert (await site.administrator_gets_in()).status == 201
