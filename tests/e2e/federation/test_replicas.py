"""Two and three replicas of Keystone on MariaDB: SAML logins end whichever replica is asked, a response is good once, nobody notices attach and detach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.e2e.cloud import KEYSTONE, Cloud, holds
from tests.e2e.databases.site import credentials
from tests.e2e.example import QUICK
from tests.e2e.federation.machine import Federated, client, federated_machine, on_server
from tests.e2e.federation.site import ACME, CORP, Site
from tests.e2e.federation.watchers import administrator, forger, watching
from tests.real.mariadb import MariaDb, mariadb
from tests.real.process import TICK

from moorage.core.meta import JsonObject
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(600)]
REPLICAS = 2
"""While providers come and go; each of their rollouts starts every replica anew."""
MOST = 3
"""While people sign in."""
API = "app.kubernetes.io/component=api"
SAML = "app.kubernetes.io/component=saml"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """Keystone with its replicas, nothing attached yet."""
    with (
        mariadb(tmp_path_factory.mktemp("mariadb")) as database,
        federated_machine(tmp_path_factory.mktemp("replicas")) as running,
    ):
        asyncio.run(_served(running, database))
        yield running


async def _served(running: Federated, database: MariaDb) -> None:
    async with client(running) as on:
        await running.serve(
            on, credentials(database.password), keystone=on_server(database, REPLICAS) | {"uwsgi": QUICK["uwsgi"]}
        )
        await on.until(KEYSTONE, "keystone", holds("Ready"))


@pytest.fixture
def site(machine: Federated) -> Site:
    """The cloud as people see it."""
    assert machine.site is not None
    return machine.site


async def _pods(on: Cloud, labels: str) -> list[JsonObject]:
    items = (await on.client.list(resources.PODS, on.namespace, labels=labels)).items
    return [item for item in items if not item["metadata"].get("deletionTimestamp")]


async def _affinity(on: Cloud) -> str:
    """Whether one address is led to the same replica each time."""
    return str((await on.client.get(resources.SERVICES, on.key("keystone")))["spec"]["sessionAffinity"])


async def _scale(on: Cloud, replicas: int) -> None:
    """Another number of replicas, all of them serving."""
    await on.client.patch(KEYSTONE, on.key("keystone"), {"spec": {"deployment": {"replicas": replicas}}})
    await on.until(resources.DEPLOYMENTS, "keystone", lambda obj: obj["status"].get("readyReplicas") == replicas)
    await on.until(KEYSTONE, "keystone", holds("Ready"))


@pytest.mark.case("C19", "S1")
async def test_nobody_s_login_fails_while_providers_are_attached(machine: Federated, on: Cloud, site: Site) -> None:
    """The administrator logs in five times a second; an attacker gets nothing at any replica."""
    async with watching(administrator(site)) as people, watching(forger(site, ACME, CORP)) as attacker:
        await machine.attach(on, ACME, CORP)
        await on.until(KEYSTONE, "keystone", holds("Ready"))
    assert people.asked > 20
    assert (people.bad, attacker.bad) == ([], [])
    assert (len(await _pods(on, API)), len(await _pods(on, SAML))) == (REPLICAS, 1)
    assert await _affinity(on) == "ClientIP"


@pytest.mark.case("C11", "K11", "K22", "B22")
async def test_logins_end_although_the_replicas_are_asked_strictly_in_turn(
    machine: Federated, on: Cloud, site: Site
) -> None:
    """The worst that a gateway can do: every request goes to another replica."""
    await _scale(on, MOST)
    pods = await _pods(on, API)
    assert len(pods) == MOST
    machine.front([f"http://{pod['status']['podIP']}:5050" for pod in pods])
    for _ in range(2):
        person = site.visitor()
        assert (await site.sign_in(person, CORP)).token
        for _ in range(MOST):
            assert (await person.open(site.websso(CORP))).token, "the session holds at every replica"
    token = await site.token_of(CORP)
    assert await site.scoped(token, CORP) == ["member", "reader"]
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    for _ in range(MOST):
        assert (await person.open(site.websso(ACME))).token
        assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201


@pytest.mark.case("K22")
async def test_a_response_that_was_used_is_refused_at_every_replica(site: Site) -> None:
    """By the same browser and by a thief's, as often as there are replicas."""
    person, thief = site.visitor(), site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), "carol")
    await thief.open(site.websso(CORP))
    assert (await person.carry_on(page)).token
    for who in (person, thief):
        for _ in range(MOST):
            again = await who.carry_on(page)
            assert (again.status, again.token) == (400, "")


async def test_the_pod_that_answers_saml_may_die(machine: Federated, on: Cloud, site: Site) -> None:
    """Meanwhile everybody else gets in; then SAML does again, with a new session."""
    (pod,) = await _pods(on, SAML)
    await on.client.delete(resources.PODS, on.key(pod["metadata"]["name"]))
    assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201
    assert (await site.administrator_gets_in()).status == 201
    await on.gone(resources.PODS, pod["metadata"]["name"])
    async with asyncio.timeout(120):
        while not await _gets_in(site):  # noqa: ASYNC110  an endpoint tells nobody
            await asyncio.sleep(TICK)


async def _gets_in(site: Site) -> bool:
    person = site.visitor()
    page = await person.open(site.websso(CORP))
    if page.form is not None and "username" in page.form.fields:
        page = await person.carry_on(await person.sign_in(page, "carol"))
    return bool(page.token)


@pytest.mark.case("S1")
async def test_nobody_s_login_fails_while_providers_are_detached(machine: Federated, on: Cloud, site: Site) -> None:
    """Both at once, and the sidecar with them: at most one rollout for each that leaves, and one for the sidecar."""
    machine.front([site.keystone.removesuffix("/v3")])
    await _scale(on, REPLICAS)
    before = await on.revision()
    async with watching(administrator(site)) as people, watching(forger(site, ACME, CORP)) as attacker:
        await machine.detach(on, CORP, ACME)
        await on.until(KEYSTONE, "keystone", holds("Ready"))
    assert (people.bad, attacker.bad) == ([], [])
    assert await on.revision() - before <= 3
    await on.gone(resources.DEPLOYMENTS, "keystone-saml")
    assert not await _pods(on, SAML)
    assert await _affinity(on) == "None"
