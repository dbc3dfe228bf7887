"""A directory, an OpenID Connect and a SAML provider leave a Keystone of two replicas in every order; the administrator logs in all the time.

What each order does to the pods, tests/keystone/service/test_detach_orders.py proves without them; here real pods roll, and real logins are counted.
The first half of the orders: test_detach_orders.py. Before these, the sidecar's image is taken away and given back, which leaves all three attached.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.federation.machine import Federated
from tests.e2e.federation.orders import ORDERS, all_leave, attach_all, site_of, two_replicas
from tests.e2e.federation.site import ACME, CORP
from tests.e2e.federation.watchers import administrator, forger, watching

from moorage.core.meta import JsonObject
from moorage.kube import resources
from moorage.runtime.projection import rolled_out

pytestmark = [pytest.mark.e2e, pytest.mark.conformance, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """Two replicas, nothing attached."""
    with two_replicas(tmp_path_factory.mktemp("orders")) as running:
        yield running


def _alone(live: JsonObject) -> bool:
    """Whether every pod is Keystone's without a sidecar."""
    containers = [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]
    return containers == ["keystone"] and rolled_out(live)


@pytest.mark.case("S1")
async def test_without_an_image_everybody_is_closed_before_the_sidecar_goes(machine: Federated, on: Cloud) -> None:
    """`proxyImage` is taken away while providers are attached, and given back: nobody forges a login, nobody else notices, people get in again."""
    site = site_of(machine)
    image = (await on.client.get(KEYSTONE, on.key("keystone")))["spec"]["federation"]["proxyImage"]
    async with watching(administrator(site)) as people, watching(forger(site, ACME, CORP)) as attacker:
        await attach_all(machine, on)
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
        await on.until(KEYSTONE, "keystone", holds("Ready"))
    assert (people.bad, attacker.bad) == ([], [])


@pytest.mark.case("S1")
@pytest.mark.parametrize("order", ORDERS[3:], ids="-".join)
async def test_nobody_notices_who_leaves(machine: Federated, on: Cloud, order: tuple[str, ...]) -> None:
    """Half of the orders."""
    await all_leave(machine, on, order)
