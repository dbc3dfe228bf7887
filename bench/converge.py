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
import random
from pathlib import Path

from bench import children, contest
from bench.contest import SIDES, Arena, Contest
from bench.plan import Plan
from bench.servers import ours
from bench.table import Row
from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.render import Projected, project
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.resources import DEPLOYMENTS, NAMESPACES, SECRETS, SERVICES


def measure(plan: Plan) -> list[Row]:
    """One question, two sides."""
    return [contest.row(plan, BACKENDS, plan.count(2000), _repetition)]


def _repetition(plan: Plan, folder: Path, count: int, order: tuple[str, ...]) -> dict[str, float]:
    block = f"127.{random.randint(64, 95)}.{random.randint(0, 255)}"
    addresses = {side: f"{block}.{10 + at}" for at, side in enumerate(SIDES)}
    keystone = {"addresses": list(addresses.values()), "port": 5000, "ready": str(folder / "keystone-ready")}
    with (
        ours(folder, cidr=f"{block}.0/24") as served,
        children.serving("keystone", keystone, folder, ready=folder / "keystone-ready"),
    ):
        arena = Arena(served, count, folder, {"BENCH_KEYSTONE": f"http://{addresses['peer']}:5000/v3"})
        asyncio.run(_furnish(arena, addresses))
        return {side: contest.run(plan, BACKENDS, arena, side) for side in order}


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


async def _furnish(arena: Arena, addresses: dict[str, str]) -> None:
    async with Client(load_kubeconfig(str(arena.served.kubeconfig))) as client:
        await contest.installed(client, KEYSTONE, BACKEND)
        for side in SIDES:
            await client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": side}})
            await _keystone(client, side, addresses[side])
            await _projected(client, side, arena.count)


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


BACKENDS = Contest(
    BACKEND, "moorage.keystone.backend.room", Path(__file__).with_name("peer_kopf.py"), backend, "backends"
)
