"""A directory, an OpenID Connect and a SAML provider leave a Keystone of two replicas in every order; the administrator logs in all the time.

What each order does to the pods, tests/keystone/service/test_detach_orders.py proves without them; here real pods roll, and real logins are counted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.databases.site import credentials
from tests.e2e.federation.machine import Federated, client, federated_machine, on_server
from tests.e2e.federation.site import ACME, CORP, Site
from tests.e2e.federation.watchers import administrator, forger, watching
from tests.real.mariadb import mariadb

from moorage.core.meta import JsonObject
from moorage.kube import resources
from moorage.runtime.projection import rolled_out

pytestmark = [pytest.mark.e2e, pytest.mark.conformance, pytest.mark.timeout(900)]
LDAP = example.BACKEND
REPLICAS = 2


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """Keystone with two replicas, nothing attached."""
    with (
        mariadb(tmp_path_factory.mktemp("mariadb")) as database,
        federated_machine(tmp_path_factory.mktemp("orders")) as running,
    ):

        async def serve() -> None:
            async with client(running) as on:
                await running.serve(on, credentials(database.password), keystone=on_server(database, REPLICAS))

        asyncio.run(serve())
        yield running


@pytest.fixture
def site(machine: Federated) -> Site:
    """The cloud as people see it."""
    assert machine.site is not None
    return machine.site


async def _attach(machine: Federated, on: Cloud) -> None:
    """All three."""
    directory = example.manifests(machine.up.directory)
    await on.apply([item for item in directory if item["metadata"]["name"] in ("planetexpress-bind", LDAP)])
    await machine.attach(on, ACME, CORP)
    await on.ready(LDAP)
    await on.until(KEYSTONE, "keystone", holds("Ready"))


async def _gets_in(on: Cloud, site: Site, name: str) -> bool:
    """Whether people of a backend log in."""
    if name == LDAP:
        return (await on.login("fry", "fry")).status == 201
    return bool(await site.token_of(name))


@pytest.mark.case("S1")
@pytest.mark.parametrize("order", list(itertools.permutations((LDAP, ACME, CORP))), ids="-".join)
async def test_nobody_notices_who_leaves(machine: Federated, on: Cloud, site: Site, order: tuple[str, ...]) -> None:
    """No login of the administrator fails, no forged one works, people of those that stay get in after each step."""
    async with watching(administrator(site)) as people, watching(forger(site, ACME, CORP)) as attacker:
        await _attach(machine, on)
        for number, name in enumerate(order, start=1):
            await machine.detach(on, name)
            for other in order[number:]:
                assert await _gets_in(on, site, other), (name, other)
        await on.until(KEYSTONE, "keystone", holds("Ready"))
    assert (people.bad, attacker.bad) == ([], [])
    assert people.asked > 20
    live = await on.client.get(resources.DEPLOYMENTS, on.key("keystone"))
    assert [item["name"] for item in live["spec"]["template"]["spec"]["containers"]] == ["keystone"]
    assert not [name for name in await on.mounted() if name == "domains" or "federation" in name]


def _alone(live: JsonObject) -> bool:
    """Whether every pod is Keystone's without a sidecar."""
    containers = [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]
    return containers == ["keystone"] and rolled_out(live)


@pytest.mark.case("S1")
async def test_without_an_image_everybody_is_closed_before_the_sidecar_goes(
    machine: Federated, on: Cloud, site: Site
) -> None:
    """`proxyImage` is taken away while providers are attached, and given back: nobody forges a login, nobody else notices, people get in again."""
    image = (await on.client.get(KEYSTONE, on.key("keystone")))["spec"]["federation"]["proxyImage"]
    async with watching(administrator(site)) as people, watching(forger(site, ACME, CORP)) as attacker:
        await _attach(machine, on)
        await on.client.patch(KEYSTONE, on.key("keystone"), {"spec": {"federation": {"proxyImage": None}}})
        await on.until(resources.DEPLOYMENTS, "keystone", _alone)
        for name in (ACME, CORP):
            found = await on.until(BACKEND, name, holds("Ready", "False"))
            assert "proxyImage" in str(found["status"]["conditions"]), found["status"]
        assert (await on.login("fry", "fry")).status == 201
        await on.client.patch(KEYSTONE, on.key("keystone"), {"spec": {"federation": {"proxyImage": image}}})
        for name in (ACME, CORP):
            await on.until(BACKEND, name, holds("Ready"))
            assert await site.token_of(name)
        await machine.detach(on, ACME, CORP, LDAP)
        await on.until(KEYSTONE, "keystone", holds("Ready"))
    assert (people.bad, attacker.bad) == ([], [])
