"""Two replicas of a federated Keystone on MariaDB: attach and detach of both types while the administrator logs in, and one pod that answers SAML."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.databases.site import DB_SECRET, QUICK, credentials, load
from tests.e2e.unanswered import AUTH, asked, backend, containers, documents, located, projected, saml
from tests.real.database import NAME
from tests.real.mariadb import MariaDb, mariadb

from moorage.kube import resources

SAML = "/OS-FEDERATION/identity_providers/{}/protocols/mapped/auth"
pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """An empty database of its own."""
    with mariadb(tmp_path_factory.mktemp("mariadb")) as running:
        yield running


@pytest.fixture
async def keystone(served: MariaDb, opened: Cloud) -> Cloud:
    """Two replicas that nothing is attached to."""
    found = [doc for doc in documents() if doc["kind"] != "KeystoneIdentityBackend"]
    spec = next(doc for doc in found if doc["kind"] == "Keystone")["spec"]
    spec["database"] = {
        "engine": served.engine, "host": "127.0.0.1", "port": served.port, "database": NAME, "secretRef": {"name": DB_SECRET},
    }  # fmt: skip
    spec |= {"deployment": {"replicas": 2}, "extraConfig": QUICK}
    await opened.apply([found[0], credentials(served.password), *found[1:]])
    await opened.until(KEYSTONE, "keystone", holds("Ready"))
    return opened


@pytest.mark.case("C19")
@pytest.mark.case("K22")
async def test_both_types_come_and_go_at_two_replicas_without_a_failed_login(keystone: Cloud) -> None:
    """Every roll runs under logins of the administrator; SAML is answered by one pod, whichever replica is asked."""
    async with load({"one": keystone.administrator, "two": keystone.administrator}) as logins:
        await keystone.apply([backend("acme")])
        await projected(keystone, "acme")
        assert await containers(keystone) == ["keystone", "federation-proxy"]
        assert await asked(keystone, AUTH.format("acme"), Accept="application/json") == 401
        await keystone.apply([saml("corp")])
        await projected(keystone, "corp")
        single = await keystone.client.get(resources.DEPLOYMENTS, keystone.key("keystone-saml"))
        assert single["spec"]["replicas"] == 1
        service = await keystone.client.get(resources.SERVICES, keystone.key("keystone"))
        assert service["spec"]["sessionAffinity"] == "ClientIP"
        pods = await keystone.client.list(resources.PODS, keystone.namespace, labels="app.kubernetes.io/component=api")
        ready = [pod["status"]["podIP"] for pod in pods.items if not pod["metadata"].get("deletionTimestamp")]
        assert len(ready) == 2
        for address in ready:
            status, where = await located(f"http://{address}:5050/v3{SAML.format('corp')}")
            assert (status, "/mellon/login" in where) == (303, True), where
        for name in ("acme", "corp"):
            await keystone.client.delete(BACKEND, keystone.key(name))
        for name in ("acme", "corp"):
            await keystone.gone(BACKEND, name)
        await keystone.until(
            KEYSTONE, "keystone", holds("IdentityBackendsReady", "True", "IdentityBackendsNotRequired")
        )
        await logins.reaches(1)
    logins.assert_flawless()
    assert not await keystone.exists(resources.DEPLOYMENTS, "keystone-saml")
    assert await containers(keystone) == ["keystone"]
    service = await keystone.client.get(resources.SERVICES, keystone.key("keystone"))
    assert service["spec"]["sessionAffinity"] == "None"
