"""Ready backends for each CPU-second of the operator's own process, against a kopf operator that makes the same writes.

Each repetition has a fresh embedded API server and a fresh counting Keystone in processes of their own; both operators work on
them in turn, the order changes from repetition to repetition. Backends are made while the operator runs; its CPU time counts
from before the first one is made until two seconds after the last is Ready (Events are written meanwhile; waiting for idleness would
count our later looks at directories that refuse, which the peer never makes). The part of the kind Keystone (projection, rollout) is
there from the beginning, so one pass makes a backend Ready.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.real.process import Command, Process

from bench import children
from bench.machine import cpu_seconds
from bench.plan import Plan
from bench.servers import Served, ours
from bench.table import Row, paired, spread
from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.render import Projected, project
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import NotFound
from moorage.kube.resources import CRDS, DEPLOYMENTS, NAMESPACES, SECRETS, SERVICES

PEER = Path(__file__).with_name("peer_kopf.py")
DEFAULT_PEER = f"{shlex.quote(sys.executable)} -m kopf run --quiet --namespace {{namespace}} {{file}}"
SIDES = ("ours", "peer")
SETTLE = 2.0


@dataclass(frozen=True)
class Scene:
    """One repetition: the server, where its Keystones answer, how many backends."""

    served: Served
    addresses: dict[str, str]
    count: int
    folder: Path


def measure(plan: Plan) -> list[Row]:
    """One question, two sides."""
    count = plan.count(2000)
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    for round_ in range(max(2, plan.repetitions - 2)):
        found = _repetition(plan, plan.folder / f"round-{round_}", count, SIDES if round_ % 2 else SIDES[::-1])
        for side in SIDES:
            rates[side].append(found[side])
    ratio = paired(rates["ours"], rates["peer"])
    raw = {"ratio": ratio} | {f"{side} Ready/CPU-s": spread(rates[side]) for side in SIDES}
    mine, theirs = (f"{spread(rates[side])}/CPU-s" for side in SIDES)
    return [
        Row(
            f"{count} backends Ready, by CPU-second of the operator",
            mine,
            theirs,
            str(ratio),
            ">= 3 x",
            ratio.median >= 3,
            raw,
        )
    ]


def _repetition(plan: Plan, folder: Path, count: int, order: tuple[str, ...]) -> dict[str, float]:
    block = f"127.{random.randint(64, 95)}.{random.randint(0, 255)}"
    addresses = {side: f"{block}.{10 + at}" for at, side in enumerate(SIDES)}
    keystone = {"addresses": list(addresses.values()), "port": 5000, "ready": str(folder / "keystone-ready")}
    with (
        ours(folder, cidr=f"{block}.0/24") as served,
        children.serving("keystone", keystone, folder, ready=folder / "keystone-ready"),
    ):
        scene = Scene(served, addresses, count, folder)
        asyncio.run(_furnish(scene))
        return {side: _run(plan, scene, side) for side in order}


def _run(plan: Plan, scene: Scene, side: str) -> float:
    with _operator(plan, scene, side) as process:
        _idle(process.pid)
        before = cpu_seconds(process.pid)
        asyncio.run(_converge(scene, side))
        time.sleep(SETTLE)
        return scene.count / (cpu_seconds(process.pid) - before)


@contextmanager
def _operator(plan: Plan, scene: Scene, side: str) -> Iterator[Process]:
    ready = scene.folder / f"{side}-ready"
    if side == "ours":
        spec = {"kubeconfig": str(scene.served.kubeconfig), "namespace": side, "ready": str(ready)}
        with children.serving("operator", spec, scene.folder, ready=ready) as process:
            yield process
        return
    command = (plan.peer_command or DEFAULT_PEER).format(namespace=side, file=PEER)
    environment = children.ENVIRONMENT | {
        "KUBECONFIG": str(scene.served.kubeconfig),
        "BENCH_KEYSTONE": f"http://{scene.addresses[side]}:5000/v3",
        "BENCH_READY": str(ready),
    }
    process = Command("kopf", shlex.split(command), scene.folder, environment).start()
    try:
        process.wait_until(ready.exists)
        yield process
    finally:
        process.stop()


def _idle(pid: int) -> None:
    """Wait until the process uses next to nothing for a second."""
    while True:
        before = cpu_seconds(pid)
        time.sleep(1.0)
        if cpu_seconds(pid) - before < 0.03:
            return


# --- the world that the operators find


def backend(side: str, number: str) -> JsonObject:
    """A backend whose directory refuses connections at once."""
    ldap = {
        "url": "ldap://127.0.0.1:1",
        "bindCredentialsSecretRef": {"name": "bind"},
        "suffix": "dc=corp",
        "users": {"treeDN": "ou=people,dc=corp"},
    }
    name = f"{side}-{number}"
    return {
        "apiVersion": BACKEND.resource.api_version,
        "kind": BACKEND.kind,
        "metadata": {"name": name, "namespace": side},
        "spec": {"keystoneRef": {"name": "keystone"}, "domain": {"name": name}, "type": "LDAP", "ldap": ldap},
    }


async def _furnish(scene: Scene) -> None:
    async with Client(load_kubeconfig(str(scene.served.kubeconfig))) as client:
        for kind in (KEYSTONE, BACKEND):
            await client.create(CRDS, kind.crd())
        await _until_served(client)
        for side in SIDES:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": side}})
            await _keystone(client, side, scene.addresses[side])
            await _projected(client, side, scene.count)


async def _until_served(client: Client) -> None:
    async with asyncio.timeout(30):
        for kind in (KEYSTONE, BACKEND):
            while True:
                try:
                    await client.list(kind.resource)
                    break
                except NotFound:
                    await asyncio.sleep(0.02)


async def _keystone(client: Client, side: str, address: str) -> None:
    """What the kind Keystone has made already; its API is up."""
    meta = {"name": "keystone", "namespace": side}
    ports = [{"port": 5000}]
    await client.create(SERVICES, {"metadata": meta, "spec": {"clusterIP": address, "ports": ports}})
    await _secret(client, side, "admin", {"password": b"admin-password"})
    await _secret(client, side, "bind", {"username": b"cn=svc,dc=corp", "password": b"bind-password"})
    spec = {
        "image": {"repository": "moorage/keystone", "tag": "30.0.0"},
        "deployment": {"replicas": 1},
        "database": {"embedded": {}},
        "bootstrap": {"adminPasswordSecretRef": {"name": "admin"}},
    }
    await client.create(KEYSTONE.resource, {"metadata": meta, "spec": spec})
    now = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "APIHealthy", "message": ""}
    status = {"conditions": [{"type": "KeystoneAPIReady", "status": "True", **now}]}
    await client.patch(KEYSTONE.resource, Key(side, "keystone"), {"status": status}, subresource="status")


async def _secret(client: Client, side: str, name: str, data: dict[str, bytes]) -> None:
    encoded = {key: base64.b64encode(value).decode() for key, value in data.items()}
    await client.create(SECRETS, {"metadata": {"name": name, "namespace": side}, "data": encoded})


async def _projected(client: Client, side: str, count: int) -> None:
    """The files of all backends, mounted and rolled out."""
    files: dict[str, bytes] = {}
    bind = {"username": b"cn=svc,dc=corp", "password": b"bind-password"}
    for number in range(count):
        found = project(BACKEND.parse(backend(side, f"{number:08d}")), Materials({"bind": bind}))
        assert isinstance(found, Projected), found
        files |= found.files
    await _secret(client, side, "keystone-domains", files)
    labels = {"app": "keystone"}
    pod = {
        "containers": [{"name": "keystone", "image": "moorage/keystone:30.0.0"}],
        "volumes": [{"name": "domains", "secret": {"secretName": "keystone-domains"}}],
    }
    spec = {
        "replicas": 1,
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    made = await client.create(DEPLOYMENTS, {"metadata": {"name": "keystone", "namespace": side}, "spec": spec})
    counts = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
    status = {"observedGeneration": made["metadata"]["generation"], **counts}
    await client.patch(DEPLOYMENTS, Key(side, "keystone"), {"status": status}, subresource="status")


async def _converge(scene: Scene, side: str) -> None:
    """Make the backends and wait until all are Ready."""
    waiting = {f"{side}-{number:08d}" for number in range(scene.count)}
    async with Client(load_kubeconfig(str(scene.served.kubeconfig))) as client:
        since = (await client.list(BACKEND.resource, side)).resource_version
        made = asyncio.create_task(asyncio.to_thread(children.ask, "load", _creates(scene, side)))
        async with asyncio.timeout(600):
            async for event in client.watch(BACKEND.resource, side, since=since):
                if _is_ready(event.object):
                    waiting.discard(event.object["metadata"]["name"])
                    if not waiting:
                        break
        answer = await made
    if waiting or answer["bad"]:
        raise RuntimeError(f"{side}: {len(waiting)} backends are not Ready; {answer['example']}")


def _creates(scene: Scene, side: str) -> dict[str, Any]:
    rt = BACKEND.resource
    path = f"/apis/{rt.api_version}/namespaces/{side}/{rt.plural}"
    body = json.dumps(backend(side, "@@@@@@@@"))
    return {"target": scene.served.target.wire(), "path": path, "body": body, "connections": 8, "count": scene.count}


def _is_ready(obj: JsonObject) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)
