"""The federation sidecar on one machine: it comes with the first federated backend and goes with the last, and the administrator never notices.

The provider's endpoints are declared and nobody answers there: what is proven here needs no login of a person.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.databases.site import load
from tests.e2e.one_machine.machine import Machine, command_line
from tests.e2e.unanswered import AUTH, asked, backend, containers, documents, projected

from moorage.core.meta import JsonObject, is_terminating
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
    jobs = {item["metadata"]["uid"] for item in (await keystone.client.list(resources.JOBS, keystone.namespace)).items}
    async with load({"one": keystone.administrator, "two": keystone.administrator}) as logins:
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
    after = {item["metadata"]["uid"] for item in (await keystone.client.list(resources.JOBS, keystone.namespace)).items}
    assert after == jobs
    secrets = await keystone.client.list(resources.SECRETS, keystone.namespace)
    assert not [item["metadata"]["name"] for item in secrets.items if "-federation-" in item["metadata"]["name"]]


async def test_a_killed_sidecar_comes_back(up: Machine, keystone: Cloud) -> None:
    """Its container is started again; Keystone's is not touched; the API answers again by itself."""
    await keystone.apply([backend("acme")])
    await projected(keystone, "acme")
    found = await keystone.client.list(resources.PODS, keystone.namespace, labels="app.kubernetes.io/component=api")
    (pod,) = [item for item in found.items if not is_terminating(item)]
    masters = [
        pid for pid, words in processes().items() if words.startswith("apache2 -DFOREGROUND") and inside(pid, up)
    ]
    assert masters
    restarted = asyncio.create_task(
        keystone.until(
            resources.PODS,
            pod["metadata"]["name"],
            lambda obj: restarts(obj).get("federation-proxy", 0) > 0 and is_ready(obj),
        )
    )
    kill(masters)
    assert restarts(await restarted)["keystone"] == 0
    await projected(keystone, "acme")
    assert await asked(keystone, AUTH.format("acme"), Accept="application/json") == 401


def is_ready(pod: JsonObject) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


def restarts(pod: JsonObject) -> dict[str, int]:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return {item["name"]: item["restartCount"] for item in statuses}


def processes() -> dict[int, str]:
    """Command lines by process number."""
    return {int(entry.name): command_line(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}


def inside(pid: int, up: Machine) -> bool:
    """Whether a process sees a pod folder of this machine."""
    try:
        return str(up.data / "node" / "pods") in (Path("/proc") / str(pid) / "mountinfo").read_text()
    except OSError:
        return False


def kill(pids: list[int]) -> None:
    """As the kernel does when memory ends."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
