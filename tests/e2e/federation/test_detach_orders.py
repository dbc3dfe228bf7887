"""A directory, an OpenID Connect and a SAML provider leave a Keystone of two replicas in every order; the administrator logs in all the time.

What each order does to the pods, tests/keystone/service/test_detach_orders.py proves without them; here real pods roll, and real logins are counted.
The other half of the orders: test_detach_orders_onward.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.cloud import Cloud
from tests.e2e.federation.machine import Federated
from tests.e2e.federation.orders import ORDERS, all_leave, two_replicas

pytestmark = [pytest.mark.e2e, pytest.mark.conformance, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """Two replicas, nothing attached."""
    with two_replicas(tmp_path_factory.mktemp("orders")) as running:
        yield running


@pytest.mark.case("S1")
@pytest.mark.parametrize("order", ORDERS[:3], ids="-".join)
async def test_nobody_notices_who_leaves(machine: Federated, on: Cloud, order: tuple[str, ...]) -> None:
    """Half of the orders."""
    await all_leave(machine, on, order)
