"""The federation sidecar on one machine: it comes with the first federated backend and goes with the last, and the administrator never notices.

The provider's endpoints are declared and nobody answers there: what is proven here needs no login of a person.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.databases.site import load
from tests.e2e.one_machine.machine import Machine
from tests.e2e.unanswered import AUTH, asked, backend, containers, documents, projected

from moorage.keystone.service.proxy import ABSENT
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

NAMES = ("acme", "beta")


@pytest.fixture
async def keystone(up: Machine, site: Cloud) -> AsyncIterator[Cloud]:
    """A Keystone that nothing is attached to, and its end."""
    await site.apply([doc for doc in documents() if doc["kind"] != "KeystoneIdentityBackend"])
    await site.until(KEYSTONE, "keystone", holds("Ready"))
    yield site
    for name in NAMES:
        if await site.exists(BACKEND, name):
            await site.client.delete(BACKEND, site.key(name))
            await site.gone(BACKEND, name)


@pytest.mark.case("C19")
async def test_attach_and_detach_never_fail_a_login_of_the_administrator(keystone: Cloud) -> None:
    """First backend, second backend, first leaves, second leaves: four rolls between plain and federated pods, no failed login."""
    jobs = await keystone.jobs()
    administrator = keystone.administrator_of_a_project
    async with load({"one": administrator, "two": administrator}) as logins:
        await keystone.apply([backend("acme")])
        await projected(keystone, "acme")
        assert await containers(keystone) == ["keystone", "federation-proxy"]
        assert await asked(keystone, "") == 200
        assert await asked(keystone, AUTH.format("acme"), Accept="application/json") == 401
        assert await asked(keystone, AUTH.format("nobody"), Accept="application/json") == 403
        assert await asked(keystone, ABSENT.removeprefix("/v3")) == 404
        assert await asked(keystone, AUTH.format("beta"), Accept="application/json") == 403
        await keystone.apply([backend("beta")])
        await projected(keystone, "beta")
        assert await asked(keystone, AUTH.format("beta"), Accept="application/json") == 401
        await keystone.client.delete(BACKEND, keystone.key("acme"))
        await keystone.gone(BACKEND, "acme")
        assert await asked(keystone, AUTH.format("acme"), Accept="application/json") == 403
        await keystone.client.delete(BACKEND, keystone.key("beta"))
        await keystone.gone(BACKEND, "beta")
        await keystone.until(
            KEYSTONE, "keystone", holds("IdentityBackendsReady", "True", "IdentityBackendsNotRequired")
        )
        assert await containers(keystone) == ["keystone"]
        before = logins.total
        await logins.reaches(1)
        assert logins.total >= before
    logins.assert_flawless()
    assert await keystone.jobs() == jobs
    secrets = await keystone.client.list(resources.SECRETS, keystone.namespace)
    assert not [item["metadata"]["name"] for item in secrets.items if "-federation-" in item["metadata"]["name"]]
