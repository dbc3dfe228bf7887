"""What outlives a node, and what must not."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path

from moorage.core.meta import Key
from moorage.kube.resources import PODS
from moorage.node.network.addresses import PODS as NETWORK
from moorage.node.network.addresses import claim
from moorage.node.pods.container import alive, lives

from .conftest import Machine, eventually, is_ready, phase, pod
from .test_pods import FOREVER

_NODE = """
import asyncio, sys
from pathlib import Path
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.node import Node
async def main():
    data = Path(sys.argv[1])
    async with Client(load_kubeconfig(str(data / "kubeconfig"))) as client:
        await Node(client, data).run(asyncio.Event())
asyncio.run(main())
"""


def container_id(found: dict[str, object]) -> str:
    return str(found["status"]["containerStatuses"][0]["containerID"])  # type: ignore[index]


async def other_node(machine: Machine) -> asyncio.subprocess.Process:
    """A node in a process of its own, so that it can be killed."""
    await machine.stop()
    return await asyncio.create_subprocess_exec(
        sys.executable, "-c", _NODE, str(machine.data), stdout=asyncio.subprocess.DEVNULL
    )


async def test_a_node_that_was_killed_loses_no_pod_and_no_exit_code(machine: Machine) -> None:
    other = await other_node(machine)
    await machine.client.create(PODS, pod("stays", *FOREVER))
    await machine.client.create(
        PODS, pod("ends", "/bin/sh", "-c", "read x < /go; exit 7", restartPolicy="Never", **_fifo(machine.data.parent))
    )
    before = await machine.until(PODS, "stays", is_ready)
    await machine.until(PODS, "ends", is_ready)
    other.send_signal(signal.SIGKILL)
    await other.wait()
    with (machine.data.parent / "fifo").open("w") as fifo:
        fifo.write("go\n")
    await eventually(lambda: _exists(machine.data))
    await machine.start()
    found = await machine.until(PODS, "ends", phase("Failed"))
    assert found["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 7
    after = await machine.client.get(PODS, Key("default", "stays"))
    assert container_id(after) == container_id(before)
    assert after["status"]["podIP"] == before["status"]["podIP"]
    await machine.client.delete(PODS, Key("default", "stays"))
    await machine.gone(PODS, "stays")


async def _exists(data: Path) -> bool:
    return any((data / "node" / "pods").glob("*/containers/main/0/exit.json"))


def _fifo(data: Path) -> dict[str, object]:
    os.mkfifo(data / "fifo")
    return {
        "volumes": [{"name": "go", "hostPath": {"path": str(data / "fifo")}}],
        "container": {"volumeMounts": [{"name": "go", "mountPath": "/go"}]},
    }


async def test_an_adopted_pod_stays_ready_until_its_probe_says_otherwise(machine: Machine) -> None:
    other = await other_node(machine)
    probe = {"exec": {"command": ["/bin/true"]}, "periodSeconds": 1}
    slow = {"startupProbe": {**probe, "initialDelaySeconds": 1}, "readinessProbe": {**probe, "initialDelaySeconds": 1}}
    await machine.client.create(PODS, pod("warm", *FOREVER, container=slow))
    await machine.until(PODS, "warm", is_ready)
    since = (await machine.client.list(PODS, "default")).resource_version
    other.send_signal(signal.SIGKILL)
    await other.wait()
    await machine.start()
    await machine.client.create(PODS, pod("mark", *FOREVER))
    async for event in machine.client.watch(PODS, "default", since=since):
        name = event.object["metadata"]["name"]
        assert name != "warm" or is_ready(event.object)
        if name == "mark" and is_ready(event.object):
            break


async def test_pods_deleted_while_no_node_ran_are_ended_by_the_next_one(machine: Machine) -> None:
    other = await other_node(machine)
    await machine.client.create(PODS, pod("orphan", *FOREVER))
    found = await machine.until(PODS, "orphan", is_ready)
    other.send_signal(signal.SIGKILL)
    await other.wait()
    body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}
    await machine.client.raw("DELETE", PODS.path("default", "orphan"), body=body)
    folder = machine.data / "node" / "pods" / found["metadata"]["uid"]
    assert lives(folder / "containers" / "main" / "0")
    await machine.start()
    await eventually(lambda: _gone(folder))


async def _gone(folder: Path) -> bool:
    return folder.name not in os.listdir(folder.parent)


async def test_a_clean_stop_ends_all_pods_and_the_next_node_starts_them_again(machine: Machine) -> None:
    await machine.client.create(PODS, pod("again", *FOREVER))
    found = await machine.until(PODS, "again", is_ready)
    await machine.stop()
    folder = machine.data / "node" / "pods" / found["metadata"]["uid"]
    assert not lives(folder / "containers" / "main" / "0")
    await machine.start()
    found = await machine.until(
        PODS, "again", lambda item: is_ready(item) and container_id(item) != container_id(found)
    )
    assert found["status"]["containerStatuses"][0]["restartCount"] == 1


async def test_a_supervisor_that_is_killed_takes_its_container_along(machine: Machine) -> None:
    """The pod is restarted, and the lost run is told as such."""
    await machine.client.create(PODS, pod("lost", *FOREVER))
    found = await machine.until(PODS, "lost", is_ready)
    folder = machine.data / "node" / "pods" / found["metadata"]["uid"] / "containers" / "main" / "0"
    state = json.loads((folder / "state.json").read_text())
    os.kill(state["shim"], signal.SIGKILL)
    found = await machine.until(
        PODS, "lost", lambda item: is_ready(item) and item["status"]["containerStatuses"][0]["restartCount"] == 1
    )
    assert found["status"]["containerStatuses"][0]["lastState"]["terminated"]["exitCode"] == 137
    await eventually(lambda: _dead(state))


async def test_pods_start_by_the_supervisor_that_the_node_took_along_when_it_started(machine: Machine) -> None:
    """S21: an upgrade in place changed it under a running machine, and no new pod started any more."""
    await machine.client.create(PODS, pod("any", *FOREVER))
    found = await machine.until(PODS, "any", is_ready)
    folder = machine.data / "node" / "pods" / found["metadata"]["uid"] / "containers" / "main" / "0"
    state = json.loads((folder / "state.json").read_text())
    assert _words(state["shim"])[3] == str(machine.data / "node" / "supervisor" / "shim.py")


def _words(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/cmdline").read_text().split("\0")


async def test_a_supervisor_that_cannot_even_start_is_told_by_its_last_words(machine: Machine) -> None:
    """S21: exit 137 without a message, and nobody knew why."""
    (machine.data / "node" / "supervisor" / "shim.py").write_text("raise SystemExit('an odd supervisor')")
    await machine.client.create(PODS, pod("odd", *FOREVER, restartPolicy="Never"))
    found = await machine.until(PODS, "odd", phase("Failed"))
    ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ended["message"] == "the supervisor ended: an odd supervisor"


async def _dead(state: dict[str, int]) -> bool:
    return not alive(state["pid"], state["ticks"])


async def test_two_nodes_on_one_machine_give_different_addresses(machine: Machine, tmp_path: Path) -> None:
    await machine.client.create(PODS, pod("mine", *FOREVER))
    found = await machine.until(PODS, "mine", is_ready)
    other = claim(NETWORK, tmp_path / "other")
    try:
        assert found["status"]["podIP"] not in {str(address) for address in other.block}
    finally:
        other.close()
