"""OIDC clients at a fake Pocket-ID: Ready for each CPU-second of the operator against a kopf operator that makes the same calls, and what
clients that are Ready cost in a minute.

The fake (tests/fakes/pocketid) and the API server are processes of their own. Logos are off: they would be a call and a download for each
client on both sides. Each client is one POST, its first secret another, a read back; in Kubernetes the finalizer, the Secret, one status,
two Events. The minute of the steady state begins 75 s after the last client is Ready, so that it holds the resync of all of them (every 120 s, and
they were made together): CPU of the operator, requests that the fake's journal has, revisions that the API server's store gained.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.pocketid import API_KEY
from tests.real.ports import free_port

from bench import children, contest
from bench.contest import SIDES, Arena, Contest
from bench.machine import cpu_seconds
from bench.plan import Plan
from bench.servers import make_namespace, ours
from bench.table import Row, short, spread
from moorage.core.meta import JsonObject, Key
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.resources import SECRETS
from moorage.pocketid import KINDS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.types import KIND as CLIENT

STEADY = 500
RESTS = 75.0
MINUTE = 60.0
PAGE = 100


def measure(plan: Plan) -> list[Row]:
    """The contest, and the steady minute."""
    return [contest.row(plan, CLIENTS, plan.count(1000), _repetition), *_steady(plan, plan.count(STEADY))]


def _repetition(plan: Plan, folder: Path, count: int, order: tuple[str, ...]) -> dict[str, float]:
    found = {}
    for side in order:  # a fake for each: what the one made must not stand in the other's list
        with _arena(folder / side, count, side) as arena:
            found[side] = contest.run(plan, CLIENTS, arena, side)
    return found


def _steady(plan: Plan, count: int) -> list[Row]:
    side = SIDES[0]
    with _arena(plan.folder / "steady", count, side) as arena, contest.operator(plan, CLIENTS, arena, side) as process:
        asyncio.run(contest.converge(CLIENTS, arena, side))
        made = _journal(arena)
        time.sleep(RESTS)
        _forget(arena)
        cpu, revision = cpu_seconds(process.pid), arena.served.stats()["revision"]
        time.sleep(MINUTE)
        share = (cpu_seconds(process.pid) - cpu) / MINUTE * 100
        writes, asked = arena.served.stats()["revision"] - revision, _journal(arena)
    pages = -(-count // PAGE)
    of_each = (
        sum(many for (method, path), many in made.items() if path != "/api/oidc/clients" or method == "POST") / count
    )
    called = sum(asked.values())
    share_of, question = spread([share], "%"), f"{count} clients that are Ready, a minute with their resync"
    return [
        Row("Pocket-ID requests for each client until it is Ready", short(of_each), "", short(of_each), "<= 3",
            of_each < 3.05, {"requests": spread([of_each])}),
        Row(f"{question}: CPU", str(share_of), "", str(share_of), "< 2 %", share < 2, {"share of a core": share_of}),
        Row(f"{question}: requests to Pocket-ID", short(called), "", f"{called} for {pages} pages and the version",
            f"<= {pages + 1}", called <= pages + 1, {"requests": spread([called])}),
        Row(f"{question}: writes to the API server", short(writes), "", short(writes), "0", writes == 0,
            {"writes": spread([writes])}),
    ]  # fmt: skip


# --- the world that the operators find


@contextmanager
def _arena(folder: Path, count: int, side: str) -> Iterator[Arena]:
    """An API server with the kinds and an instance, and a fake with nothing in it."""
    port = free_port()
    folder.mkdir(parents=True)
    ready = folder / "fake-ready"
    url = f"http://127.0.0.1:{port}"
    with (
        ours(folder) as served,
        children.serving("pocketid_fake", {"port": port, "ready": str(ready)}, folder, ready=ready),
    ):
        environment = {"BENCH_POCKETID": url, "BENCH_API_KEY": API_KEY, "AUTOGENERATE_LOGOS": "false"}
        arena = Arena(served, count, folder, environment)
        make_namespace(served, side)
        asyncio.run(_furnish(arena, side))
        yield arena


async def _furnish(arena: Arena, side: str) -> None:
    url = arena.environment["BENCH_POCKETID"]
    async with Client(load_kubeconfig(str(arena.served.kubeconfig))) as client:
        await contest.installed(client, *KINDS)
        key = {"name": "key", "namespace": side}
        await client.create(SECRETS, {"metadata": key, "data": {"token": base64.b64encode(API_KEY.encode()).decode()}})
        spec = {"external": {"url": url, "apiKeySecretRef": {"name": "key", "key": "token"}}}
        await client.create(INSTANCE.resource, {"metadata": {"name": "pocketid", "namespace": side}, "spec": spec})
        now = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Ready", "message": ""}
        status = {"url": url, "version": "2.14.0", "conditions": [{"type": "Ready", "status": "True", **now}]}
        await client.patch(INSTANCE.resource, Key(side, "pocketid"), {"status": status}, subresource="status")


def client_of(side: str, number: str) -> JsonObject:
    """A client with nothing but what it must have."""
    name = f"{side}-{number}"
    return {
        "apiVersion": CLIENT.resource.api_version,
        "kind": CLIENT.kind,
        "metadata": {"name": name, "namespace": side},
        "spec": {"callbackUrls": [f"https://{name}.example.org/callback"]},
    }


CLIENTS = Contest(
    CLIENT,
    "moorage.pocketid.instance.room moorage.pocketid.oidcclient.room",
    Path(__file__).with_name("peer_kopf_pocketid.py"),
    client_of,
    "OIDC clients",
)


# --- the fake's journal


def _journal(arena: Arena) -> Counter[tuple[str, str]]:
    """Requests by method and route."""
    with urllib.request.urlopen(f"{arena.environment['BENCH_POCKETID']}/_fake/journal") as answer:
        entries: list[dict[str, Any]] = json.load(answer)["entries"]
    return Counter((entry["method"], entry["route"]) for entry in entries)


def _forget(arena: Arena) -> None:
    url = f"{arena.environment['BENCH_POCKETID']}/_fake/journal"
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()
