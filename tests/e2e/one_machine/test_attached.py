"""A directory is attached on one machine: what stays true while passwords change, directories die and siblings are broken.

All tests share one machine and one attached backend; each leaves them as it found them.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator

import aiohttp
import ldap3
import pytest
import yaml
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, Login, cloud, condition, holds
from tests.e2e.databases.site import load, people
from tests.e2e.one_machine.machine import Machine
from tests.e2e.one_machine.quiet import (
    Arguments,
    bundle,
    family,
    files,
    is_loopback,
    leaks,
    listening,
    metrics,
    objects,
    secrets,
)  # fmt: skip
from tests.real.kubectl import MACHINE, Kubectl
from tests.real.process import TICK

from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
API = "app.kubernetes.io/component=api"


@pytest.fixture(scope="module")
def arguments(up: Machine) -> Iterator[Arguments]:
    """The arguments of every process of the machine, from before anything is applied."""
    watcher = Arguments(up)
    watcher.start()
    yield watcher
    watcher.end()


@pytest.fixture(scope="module")
def applied(arguments: Arguments, up: Machine) -> Machine:
    """The example, applied by kubectl where it is on the machine, and Ready."""
    asyncio.run(_apply(up))
    return up


async def _apply(up: Machine) -> None:
    async with cloud(up.kubeconfig) as site:
        documents = example.manifests(up.directory)
        example.of_kind(documents, "Keystone")["spec"]["extraConfig"] = example.QUICK["extraConfig"]
        if MACHINE.exists():
            kubectl = Kubectl(up.kubeconfig, up.folder, namespace=site.namespace)
            said = kubectl("apply", "--server-side", "-f", "-", given=yaml.safe_dump_all(documents))
            assert said.count("serverside-applied") == len(documents)
        else:
            await site.apply(documents)
        await site.ready(example.BACKEND)


@pytest.fixture
async def attached(applied: Machine, site: Cloud) -> Cloud:
    """The machine with the example, and Ready."""
    await site.until(KEYSTONE, "keystone", holds("Ready"))
    await site.ready(example.BACKEND)
    return site


async def test_a_user_of_the_directory_gets_a_token_with_the_role_of_a_group(attached: Cloud) -> None:
    """The whole point: a real token, its domain and the role that a group of the directory has there (member implies reader)."""
    await attached.grant("planetexpress", "ship_crew", "member")
    domain = await attached.domain("planetexpress")
    assert domain is not None
    found = await attached.login("fry", "fry", scope={"domain": {"id": domain["id"]}})
    assert (found.status, found.body["user"]["name"], found.roles) == (201, "fry", ["member", "reader"])
    assert found.body["user"]["domain"]["name"] == "planetexpress"
    assert (await attached.login("fry", "leela")).status == 401
    assert (await attached.login("professor", "professor", scope={"domain": {"id": domain["id"]}})).status == 401
    backend = await attached.client.get(BACKEND, attached.key(example.BACKEND))
    assert backend["status"]["domainID"] == domain["id"]
    assert condition(backend, "DirectoryReachable")[2].startswith("bind works and 3 users")


@pytest.mark.case("P1", "B09")
async def test_a_second_pass_writes_nothing_anywhere(up: Machine, attached: Cloud) -> None:
    """Two forced passes: no revision but our own two, and Keystone saw nothing but reads."""
    await attached.rolled()
    seen = Counter(await attached.requests())
    before = await _revision(attached)
    for note in ("again", "and again"):
        reads = len(await _domain_reads(attached))
        await attached.ask_again(example.BACKEND, f"{note} {before}")
        await _more_reads(attached, reads)
    fresh = Counter(await attached.requests()) - seen
    writes = [line for line in fresh if '"GET ' not in line and '"POST /v3/auth/tokens' not in line]
    assert not writes, writes
    assert await _revision(attached) == before + 2


async def _revision(site: Cloud) -> int:
    """The revision of the whole store: one more for each write, whoever makes it."""
    return int((await site.client.list(resources.CONFIG_MAPS, site.namespace)).resource_version)


async def _more_reads(site: Cloud, than: int) -> None:
    """Ask for the log again until a pass has looked at its domain."""
    async with asyncio.timeout(300):
        while len(await _domain_reads(site)) <= than:  # noqa: ASYNC110  the log of a process tells nobody
            await asyncio.sleep(TICK)


async def _domain_reads(site: Cloud) -> list[str]:
    return [line for line in await site.requests() if '"GET /v3/domains/' in line]


@pytest.mark.case("B09", "C15")
async def test_a_new_bind_password_rolls_once_and_fails_no_login_and_no_write(up: Machine, attached: Cloud) -> None:
    """The directory takes both passwords for as long as both are in use; old and new pod share the SQLite file meanwhile; then the old one goes."""
    before, jobs, fresh = await attached.revision(), await attached.jobs(), f"{up.bind_password}!"
    await asyncio.to_thread(_passwords, up, [up.bind_password, fresh])
    async with load(people(attached, leaver=lambda: _logs_out(attached))) as seen:
        await attached.set_secret("planetexpress-bind", password=fresh)
        await attached.until(BACKEND, example.BACKEND, holds("ConfigProjected", "False"))
        await attached.ready(example.BACKEND)
        up.bind_password = fresh
        await asyncio.to_thread(_passwords, up, [fresh])
    seen.assert_flawless()
    assert await attached.revision() == before + 1
    assert await attached.jobs() == jobs
    assert (await attached.login("leela", "leela")).status == 201
    pods = await attached.client.list(resources.PODS, attached.namespace, labels=API)
    assert len([pod for pod in pods.items if not pod["metadata"].get("deletionTimestamp")]) == 1


def _passwords(up: Machine, values: list[str]) -> None:
    """All passwords with which the reader may bind."""
    with up.directory.connection() as connection:
        connection.modify(example.READER, {"userPassword": [(ldap3.MODIFY_REPLACE, values)]})


async def _logs_out(site: Cloud) -> Login:
    """A login that is ended at once: Keystone writes the revocation, and refuses the token from then on. 201 when all was right."""
    found = await site.login("admin", example.ADMIN_PASSWORD, domain="Default")
    if found.status != 201:
        return found
    headers = {"X-Auth-Token": found.token, "X-Subject-Token": found.token}
    url = f"{await site.url()}/auth/tokens"
    try:
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.delete(url) as ended:
                pass
            async with session.get(url) as after:
                pass
    except aiohttp.ClientError as error:
        return Login(0, {"logout": repr(error)}, "")
    return Login(201 if (ended.status, after.status) == (204, 401) else after.status, {"logout": ended.status}, "")


@pytest.mark.case("K20", "P3")
async def test_a_dead_directory_and_a_wrong_password_stand_in_the_status_and_undo_nothing(
    up: Machine, attached: Cloud
) -> None:
    """DirectoryReachable says which; Ready, domain and files stay; it heals by itself."""
    domain, projected = await attached.domain("planetexpress"), await attached.projected()
    up.directory.stop()
    await attached.ask_again(example.BACKEND, "died")
    dead = await attached.until(BACKEND, example.BACKEND, holds("DirectoryReachable", "False", "AddressUnreachable"))
    assert condition(dead, "Ready")[0] == "True"
    up.directory.start()
    await attached.ask_again(example.BACKEND, "back")
    await attached.ready(example.BACKEND)
    await asyncio.to_thread(_passwords, up, ["changed-behind-our-back"])
    await attached.ask_again(example.BACKEND, "wrong")
    wrong = await attached.until(BACKEND, example.BACKEND, holds("DirectoryReachable", "False", "BindFailed"))
    assert condition(wrong, "Ready")[0] == "True"
    assert "changed-behind-our-back" not in json.dumps(wrong)
    assert (await attached.domain("planetexpress"), await attached.projected()) == (domain, projected)
    await asyncio.to_thread(_passwords, up, [up.bind_password])
    await attached.ask_again(example.BACKEND, "right")
    await attached.ready(example.BACKEND)


@pytest.mark.case("P4")
async def test_a_bad_backend_never_harms_its_sibling(up: Machine, attached: Cloud) -> None:
    """Its Secret is missing: it is named on the Keystone, nothing rolls, the other stays Ready and logs in; it leaves at once."""
    before = await attached.revision()
    bad = example.backend(up.directory, "bad", {"ldap": {"bindCredentialsSecretRef": {"name": "nowhere"}}})
    await attached.apply([bad])
    stuck = await attached.until(BACKEND, "bad", holds("ConfigProjected", "False", "WaitingForProjection"))
    assert "nowhere" in condition(stuck, "ConfigProjected")[2]
    keystone = await attached.until(KEYSTONE, "keystone", holds("IdentityBackendsReady", "False"))
    assert "bad" in condition(keystone, "IdentityBackendsReady")[2]
    good = await attached.client.get(BACKEND, attached.key(example.BACKEND))
    assert condition(good, "Ready")[0] == "True"
    assert (await attached.login("leela", "leela")).status == 201
    await attached.client.delete(BACKEND, attached.key("bad"))
    await attached.gone(BACKEND, "bad")
    await attached.until(KEYSTONE, "keystone", holds("IdentityBackendsReady"))
    assert await attached.domain("bad") is None
    assert await attached.revision() == before


@pytest.mark.case("P2")
async def test_no_secret_stands_in_anything_that_is_said_or_shown(
    up: Machine, attached: Cloud, arguments: Arguments
) -> None:
    """Logs, events, conditions, annotations, metrics, process arguments, audit log, support bundle: none has a secret value."""
    values = await secrets(attached)
    assert {name.partition("/")[0].rpartition("-")[0] for name in values} > {"keystone-fernet", "keystone-credential"}
    assert {up.bind_password, example.ADMIN_PASSWORD} <= set(values.values())
    archive = up.folder / "bundle.tar.gz"
    bundler = [sys.executable, "-m", "moorage.cli", "support-bundle", "-A", "--kubeconfig", str(up.kubeconfig)]
    await asyncio.to_thread(subprocess.run, [*bundler, "--out", str(archive)], check=True, capture_output=True)
    shown = [("API", json.dumps(await objects(attached))), ("arguments", "\n".join(arguments.seen))]
    places = [*files(up), *bundle(archive), *shown, ("metrics", await metrics(attached))]
    assert len(places) > 10
    assert {"uwsgi", "bootstrap"} <= set(shown[1][1].split())
    assert leaks(places, values) == []


async def test_keystone_finds_its_keys_closed_and_no_password_of_a_pod_is_on_the_disk(
    up: Machine, attached: Cloud
) -> None:
    """S16: "key_repository is world readable" in each log. S17: the administrator's password in the folder of the pod that had used it."""
    texts = [path.read_text(errors="replace") for path in (up.data / "logs").rglob("*.log")]
    assert [text for text in texts if "world readable" in text] == []
    kept = [path for path in (up.data / "node").rglob("*") if path.is_file() and "volumes" not in path.parts]
    assert kept
    assert [path for path in kept if example.ADMIN_PASSWORD.encode() in path.read_bytes()] == []


async def test_nothing_listens_beyond_loopback(up: Machine, attached: Cloud) -> None:
    """Neither the machine nor any process of its pods."""
    assert up.process is not None
    found = listening(family([up.process.pid, *up.pods()]))
    assert len(found) > 2
    assert [address for address in sorted(found) if not is_loopback(address)] == []
