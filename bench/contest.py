"""Two operators of one kind against the same servers, in turn: ours, and a kopf operator that does the same.

Enters: a Contest, and an Arena that is furnished. Leaves: objects Ready for each CPU-second of the operator's own process. Objects are made
while the operator runs; its CPU time counts from before the first one is made until two seconds after the last is Ready.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.real.process import Command, Process

from bench import children
from bench.machine import cpu_seconds
from bench.plan import Plan
from bench.servers import Served
from bench.table import Row, paired, spread
from moorage.core.meta import JsonObject
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import NotFound
from moorage.kube.resources import CRDS
from moorage.schema.kind import Kind

DEFAULT_PEER = f"{shlex.quote(sys.executable)} -m kopf run --quiet --namespace {{namespace}} {{file}}"
SIDES = ("ours", "peer")
SETTLE = 2.0
AIM = 3


@dataclass(frozen=True)
class Contest:
    """What is made, and by whom it is made Ready.

    Attributes:
        rooms: modules with a ROOM each, blanks between, that our operator runs.
        peer: the file that kopf runs.
        make: the object of a side and a number of eight digits.
        called: what the objects are called in the table.
    """

    kind: Kind[Any]
    rooms: str
    peer: Path
    make: Callable[[str, str], JsonObject]
    called: str


@dataclass(frozen=True)
class Arena:
    """One repetition: the API server, how many objects, a folder, what both operators find in their environment."""

    served: Served
    count: int
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)


Repetition = Callable[[Plan, Path, int, tuple[str, ...]], dict[str, float]]
"""Furnishes an arena in a folder and lets the sides run in that order; Ready for each CPU-second by side."""


def row(plan: Plan, contest: Contest, count: int, repetition: Repetition) -> Row:
    """The answer: the median of the pairs."""
    rates: dict[str, list[float]] = {side: [] for side in SIDES}
    for round_ in range(max(2, plan.repetitions - 2)):
        found = repetition(plan, plan.folder / f"round-{round_}", count, SIDES if round_ % 2 else SIDES[::-1])
        for side in SIDES:
            rates[side].append(found[side])
    ratio = paired(rates["ours"], rates["peer"])
    raw = {"ratio": ratio} | {f"{side} Ready/CPU-s": spread(rates[side]) for side in SIDES}
    mine, theirs = (f"{spread(rates[side])}/CPU-s" for side in SIDES)
    question = f"{count} {contest.called} Ready, by CPU-second of the operator"
    return Row(question, mine, theirs, str(ratio), f">= {AIM} x", ratio.median >= AIM, raw)


def run(plan: Plan, contest: Contest, arena: Arena, side: str) -> float:
    """One side's turn."""
    with operator(plan, contest, arena, side) as process:
        idle(process.pid)
        before = cpu_seconds(process.pid)
        asyncio.run(converge(contest, arena, side))
        time.sleep(SETTLE)
        return arena.count / (cpu_seconds(process.pid) - before)


@contextmanager
def operator(plan: Plan, contest: Contest, arena: Arena, side: str) -> Iterator[Process]:
    """The operator of a side while the block runs."""
    ready = arena.folder / f"{side}-ready"
    kubeconfig = str(arena.served.kubeconfig)
    if side == "ours":
        spec = {"kubeconfig": kubeconfig, "namespace": side, "ready": str(ready), "rooms": contest.rooms}
        with children.serving("operator", spec, arena.folder, ready=ready, environment=arena.environment) as process:
            yield process
        return
    command = (plan.peer_command or DEFAULT_PEER).format(namespace=side, file=contest.peer)
    told = {"KUBECONFIG": kubeconfig, "BENCH_READY": str(ready)}
    process = Command(
        "kopf", shlex.split(command), arena.folder, children.ENVIRONMENT | dict(arena.environment) | told
    ).start()
    try:
        process.wait_until(ready.exists)
        yield process
    finally:
        process.stop()


def idle(pid: int) -> None:
    """Wait until the process uses next to nothing for a second."""
    while True:
        before = cpu_seconds(pid)
        time.sleep(1.0)
        if cpu_seconds(pid) - before < 0.03:
            return


async def converge(contest: Contest, arena: Arena, side: str) -> None:
    """Make the objects and wait until all are Ready."""
    waiting = {contest.make(side, f"{number:08d}")["metadata"]["name"] for number in range(arena.count)}
    rt = contest.kind.resource
    async with Client(load_kubeconfig(str(arena.served.kubeconfig))) as client:
        since = (await client.list(rt, side)).resource_version
        made = asyncio.create_task(asyncio.to_thread(children.ask, "load", _creates(contest, arena, side)))
        async with asyncio.timeout(600):
            async for event in client.watch(rt, side, since=since):
                if _is_ready(event.object):
                    waiting.discard(event.object["metadata"]["name"])
                    if not waiting:
                        break
        answer = await made
    if waiting or answer["bad"]:
        raise RuntimeError(f"{side}: {len(waiting)} {contest.called} are not Ready; {answer['example']}")


def _creates(contest: Contest, arena: Arena, side: str) -> dict[str, Any]:
    rt = contest.kind.resource
    body = json.dumps(contest.make(side, "@@@@@@@@"))
    target = arena.served.target.wire()
    return {"target": target, "path": rt.path(side), "body": body, "connections": 8, "count": arena.count}


def _is_ready(obj: JsonObject) -> bool:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return any(item["type"] == "Ready" and item["status"] == "True" for item in conditions)


async def installed(client: Client, *kinds: Kind[Any]) -> None:
    """The kinds, once they are served."""
    for kind in kinds:
        await client.create(CRDS, kind.crd())
    async with asyncio.timeout(30):
        for kind in kinds:
            while True:
                try:
                    await client.list(kind.resource)
                    break
                except NotFound:
                    await asyncio.sleep(0.02)
