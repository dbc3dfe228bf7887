"""Two replicas of Keystone on a real MariaDB: nobody's login fails, whatever is rotated, scaled, attached or broken on purpose.

All tests share one machine and one Keystone; each leaves it Ready. Clients log in through the Service, both replicas behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import ldap3
import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, condition, holds
from tests.e2e.databases.site import DB_SECRET, load, on_server, people, rollout
from tests.e2e.one_machine.machine import Machine
from tests.real.mariadb import MariaDb, mariadb

from moorage.core.meta import JsonObject
from moorage.keystone.service.keys import ROTATED_AT
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
API = "app.kubernetes.io/component=api"


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MariaDb]:
    """MariaDB with an empty database."""
    with mariadb(tmp_path_factory.mktemp("mariadb")) as served:
        yield served


@pytest.fixture
async def site(up: Machine, database: MariaDb, opened: Cloud) -> Cloud:
    """The Keystone with its directory, Ready."""
    namespaces = (await opened.client.list(resources.NAMESPACES)).items
    if opened.namespace not in {item["metadata"]["name"] for item in namespaces}:
        await opened.apply(on_server(database, up.directory, 2))
    await opened.until(KEYSTONE, "keystone", holds("Ready"))
    await opened.ready(example.BACKEND)
    return opened


async def _job(site: Cloud, name: str) -> str:
    """Which object the Job of that name is."""
    return str((await site.client.get(resources.JOBS, site.key(name)))["metadata"]["uid"])


async def _pods(site: Cloud) -> set[str]:
    """The API pods that are to stay."""
    items = (await site.client.list(resources.PODS, site.namespace, labels=API)).items
    return {item["metadata"]["uid"] for item in items if not item["metadata"].get("deletionTimestamp")}


async def test_users_of_the_directory_log_in_at_both_replicas(site: Cloud) -> None:
    """Tokens are real, each replica serves, and whoever is no user is refused."""
    logins, serving = 4, False
    async with load(people(site)) as seen:
        while not serving:  # which replica answers a login is the forwarder's choice: go on until each has
            await seen.reaches(logins)
            serving = await _each_served_a_login(site)
            logins += 4
    seen.assert_flawless()
    assert (await site.login("leela", "fry")).status == 401


async def _each_served_a_login(site: Cloud) -> bool:
    for pod in (await site.client.list(resources.PODS, site.namespace, labels=API)).items:
        if pod["metadata"].get("deletionTimestamp"):
            continue
        lines = [line async for line in site.client.logs(site.key(pod["metadata"]["name"]))]
        if not any('"POST /v3/auth/tokens' in line and " 201 " in line for line in lines):
            return False
    return True


async def test_what_stands_around_the_pods_is_as_declared(site: Cloud, database: MariaDb, up: Machine) -> None:
    """One pod stays in a disruption, the Service leads to the API pods alone, the policy opens the ports that are used."""

    async def spec(rt: resources.ResourceType) -> JsonObject:
        found: JsonObject = (await site.client.get(rt, site.key("keystone")))["spec"]
        return found

    assert (await spec(resources.PDBS))["minAvailable"] == 1
    service = await spec(resources.SERVICES)
    assert service["selector"]["app.kubernetes.io/component"] == "api"
    assert [port["port"] for port in service["ports"]] == [5000]
    policy = await spec(resources.NETWORK_POLICIES)
    assert {"namespaceSelector": {"matchLabels": {"clients": "yes"}}} in policy["ingress"][0]["from"]
    open_ports = {port["port"] for rule in policy["egress"] for port in rule["ports"]}
    assert {database.port, up.directory.port, 53} <= open_ports


@pytest.mark.case("B09", "C15")
async def test_a_new_bind_password_rolls_once_and_no_login_fails(site: Cloud, up: Machine) -> None:
    """The directory takes both passwords meanwhile; one rollout of two replicas; no Job runs again."""
    revision, jobs = await site.revision(), await site.jobs()
    async with load(people(site)) as seen:
        await asyncio.to_thread(_bind_passwords, up, [example.BIND_PASSWORD, "better-news"])
        await site.set_secret("planetexpress-bind", password="better-news")
        await site.until(BACKEND, example.BACKEND, holds("ConfigProjected", "False"))
        await site.ready(example.BACKEND)
        await asyncio.to_thread(_bind_passwords, up, ["better-news"])
        await site.until(KEYSTONE, "keystone", holds("Ready"))
    seen.assert_flawless()
    assert await site.revision() == revision + 1
    assert await site.jobs() == jobs


def _bind_passwords(up: Machine, values: list[str]) -> None:
    with up.directory.connection() as connection:
        connection.modify(example.READER, {"userPassword": [(ldap3.MODIFY_REPLACE, values)]})


async def test_three_replicas_and_two_again_while_logins_go_on(site: Cloud) -> None:
    """Scaling makes no rollout and drops nobody, up and down."""
    revision = await site.revision()
    async with load(people(site)) as seen:
        for count in (3, 2):
            await site.client.patch(KEYSTONE, site.key("keystone"), {"spec": {"deployment": {"replicas": count}}})
            text = f"{count} replicas run"
            await site.until(
                KEYSTONE,
                "keystone",
                lambda obj, text=text: holds("Ready")(obj) and condition(obj, "DeploymentReady")[2] == text,
            )
    seen.assert_flawless()
    assert await site.revision() == revision


async def test_fernet_keys_rotate_without_a_rollout_and_tokens_of_before_stay_valid(site: Cloud) -> None:
    """A schedule that was missed is one rotation; both replicas read what the other signs, with old keys and new ones."""
    revision, pods, name = await site.revision(), await _pods(site), "keystone-fernet-keys"
    token = (await site.administrator()).token
    before = (await site.client.get(resources.SECRETS, site.key(name)))["data"]
    async with load(people(site)) as seen:
        long_ago = {"metadata": {"annotations": {ROTATED_AT: "2026-01-01T00:00:00Z"}}}
        await site.client.patch(resources.SECRETS, site.key(name), long_ago)
        rotated = await site.until(resources.SECRETS, name, lambda obj: obj["data"] != before)
        await site.until(KEYSTONE, "keystone", holds("FernetKeysReady", "True", "FernetKeysRotated"))
        await seen.reaches(10)
    seen.assert_flawless()
    assert rotated["data"]["2"] == before["0"]
    assert rotated["data"]["1"] == before["1"]
    assert await _valid(site, token)
    assert (await site.revision(), await _pods(site)) == (revision, pods)


async def _valid(site: Cloud, token: str) -> bool:
    """Whether each replica, asked in turn, takes the token of before and one of now."""
    now = (await site.administrator()).token
    return all([await site.validates(text) for text in (token, now) for _ in range(4)])


async def test_a_new_administrators_password_runs_the_bootstrap_again_and_nothing_else(site: Cloud) -> None:
    """The new password logs in and the old one does not; the schema is left alone and no pod is replaced."""
    revision, schema = await site.revision(), await _job(site, "keystone-db-sync")
    for password, other in (("changed-by-hand", example.ADMIN_PASSWORD), (example.ADMIN_PASSWORD, "changed-by-hand")):
        before = await _job(site, "keystone-bootstrap")
        await site.set_secret("keystone-admin", password=password)
        await site.until(
            resources.JOBS, "keystone-bootstrap", lambda job, before=before: job["metadata"]["uid"] != before
        )
        await site.until(KEYSTONE, "keystone", holds("BootstrapReady"))
        assert (await site.login("admin", password, domain="Default")).status == 201
        assert (await site.login("admin", other, domain="Default")).status == 401
    assert await _job(site, "keystone-db-sync") == schema
    assert await site.revision() == revision
    await site.ready(example.BACKEND)


@pytest.mark.case("C15")
async def test_attach_and_detach_run_no_job_again_and_drop_nobody(site: Cloud, up: Machine) -> None:
    """Two rollouts, one each way; the Jobs of the schema and of the administrator are the same objects as before."""
    revision, jobs = await site.revision(), await site.jobs()
    second = example.backend(up.directory, "second")
    async with load(people(site)) as seen:
        await site.apply([second])
        await site.ready("second")
        assert (await site.login("leela", "leela", domain="second")).status == 201
        await site.client.delete(BACKEND, site.key("second"))
        await site.gone(BACKEND, "second")
        await site.until(KEYSTONE, "keystone", holds("Ready"))
    seen.assert_flawless()
    assert await site.revision() == revision + 2
    assert await site.jobs() == jobs


async def test_a_wrong_database_password_is_named_and_the_pods_of_before_serve_on(
    site: Cloud, database: MariaDb
) -> None:
    """The rollout stops at its first pod, whose own words stand in the status; the right password ends it."""
    revision = await site.revision()
    async with load(people(site)) as seen:
        await site.set_secret(DB_SECRET, password="wrong-one")
        stuck = await site.until(KEYSTONE, "keystone", lambda obj: "denied" in condition(obj, "DeploymentReady")[2])
        await site.set_secret(DB_SECRET, password=database.password)
        await rollout(site, revision + 1)
    seen.assert_flawless()
    said = condition(stuck, "Ready")[2]
    assert f"database 127.0.0.1:{database.port}: Access denied for user 'keystone'" in said
    assert "wrong-one" not in str(stuck)


async def test_a_database_that_is_down_is_named_and_nothing_is_undone(site: Cloud, database: MariaDb) -> None:
    """Pods, Jobs and the attached directory stay as they are; it heals by itself."""
    state = (await site.revision(), await _pods(site), await site.jobs(), await site.projected())
    database.stop()
    try:
        down = await site.until(KEYSTONE, "keystone", holds("KeystoneAPIReady", "False", "DatabaseUnavailable"))
        assert f"MySQL at 127.0.0.1:{database.port}" in condition(down, "Ready")[2]
        backend = await site.client.get(BACKEND, site.key(example.BACKEND))
        assert condition(backend, "ConfigProjected")[0] == "True"
        assert condition(backend, "DomainReady")[0] == "True"
    finally:
        database.start()
    await site.until(KEYSTONE, "keystone", holds("Ready"))
    await site.ready(example.BACKEND)
    assert (await site.login("leela", "leela")).status == 201
    assert (await site.revision(), await _pods(site), await site.jobs(), await site.projected()) == state
