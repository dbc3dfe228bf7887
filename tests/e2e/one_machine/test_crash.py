"""`moorage up` dies at bad moments and is started again on the same data: the same end, no orphan, nothing done twice."""

from __future__ import annotations

import asyncio
import subprocess

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, Cloud, cloud, holds
from tests.e2e.one_machine.machine import Machine, alive
from tests.real.process import TICK

from moorage.core.meta import JsonObject
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.mark.case("P5")
async def test_killed_while_attaching_idle_and_detaching_it_ends_in_the_same_state(up: Machine) -> None:
    """One life a stage; each next life goes on from where the last one was cut off."""
    await _killed_while_the_keystone_starts(up)
    await _killed_when_the_domain_stands_but_no_pod_serves_it(up)
    await _killed_when_all_is_well(up)
    await _killed_while_detaching(up)
    await _nothing_is_left_over(up)


async def _killed_while_the_keystone_starts(up: Machine) -> None:
    async with cloud(up.kubeconfig) as site:
        documents = example.manifests(up.directory)
        example.of_kind(documents, "Keystone")["spec"] |= example.QUICK
        await site.apply(documents)
        await _some_pod(site)
    up.kill()
    up.start()


async def _some_pod(site: Cloud) -> None:
    """Wait until a pod of the Deployment has an address, that is, until its processes are about to start."""
    async with asyncio.timeout(300):
        while True:
            pods = await site.client.list(resources.PODS, site.namespace, labels="app.kubernetes.io/component=api")
            if any((item.get("status") or {}).get("podIP") for item in pods.items):
                return
            async for _ in site.client.watch(resources.PODS, site.namespace, since=pods.resource_version):
                break


async def _killed_when_the_domain_stands_but_no_pod_serves_it(up: Machine) -> None:
    async with cloud(up.kubeconfig) as site:
        await site.until(BACKEND, example.BACKEND, holds("DomainReady"))
    up.kill()
    up.start()


async def _killed_when_all_is_well(up: Machine) -> None:
    """The pods outlive the machine and are taken over as they are: same process, same start, not one restart."""
    async with cloud(up.kubeconfig) as site:
        await site.ready(example.BACKEND)
        assert (await site.login("fry", "fry")).status == 201
        before, revision = await _pods(site), await site.revision()
        processes = sorted(pid for pid, words in up.pods().items() if any(uid in words for uid in before))
        assert processes
    up.kill()
    assert [pid for pid in processes if alive(pid)] == processes
    up.start()
    async with cloud(up.kubeconfig) as site:
        await site.ask_again(example.BACKEND, "taken over")
        await site.ready(example.BACKEND)
        await _reached(site)
        assert (await site.login("fry", "fry")).status == 201
        assert await _pods(site) == before
        assert await site.revision() == revision
        assert [pid for pid in processes if alive(pid)] == processes


async def _reached(site: Cloud) -> None:
    """The pods served all the while; the address of their Service listens again once the node has looked around."""
    async with asyncio.timeout(60):
        while (await site.administrator()).status == 0:  # noqa: ASYNC110 - nobody announces it
            await asyncio.sleep(TICK)


async def _pods(site: Cloud) -> dict[str, JsonObject]:
    """Uid, and when and how often each container of an API pod was started."""
    pods = await site.client.list(resources.PODS, site.namespace, labels="app.kubernetes.io/component=api")
    return {
        item["metadata"]["uid"]: {
            container["name"]: (container["restartCount"], container["state"])
            for container in item["status"]["containerStatuses"]
        }
        for item in pods.items
        if not item["metadata"].get("deletionTimestamp")
    }


async def _killed_while_detaching(up: Machine) -> None:
    async with cloud(up.kubeconfig) as site:
        await site.client.delete(BACKEND, site.key(example.BACKEND))
        await site.until(BACKEND, example.BACKEND, holds("Ready", "False", "Deleting"))
    up.kill()
    up.start()
    async with cloud(up.kubeconfig) as site:
        await site.gone(BACKEND, example.BACKEND)


async def _nothing_is_left_over(up: Machine) -> None:
    """The domain is gone as its policy says, no Secret copy stays, every sandbox belongs to a pod that the API has."""
    async with cloud(up.kubeconfig) as site:
        assert await site.domain(example.BACKEND) is None
        assert "domains" not in await site.mounted()
        assert await site.projected() == []
        assert (await site.administrator()).status == 201
        wanted = {item["metadata"]["uid"] for item in (await site.client.list(resources.PODS)).items}
        strange = [words for words in up.pods().values() if not any(uid in words for uid in wanted)]
        assert not strange


def test_a_second_machine_on_the_same_data_says_so_and_exits_3(up: Machine) -> None:
    """One sentence: what runs, and what to do; the first goes on."""
    done = subprocess.run(up.command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 3
    assert "another `moorage up` runs on this data" in done.stderr
    assert str(up.kubeconfig) in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
