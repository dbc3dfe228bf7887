"""How many requests a backend costs until it is Ready, and in a steady pass: counted, against a stub Keystone."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

from tests.keystone.backend.scene import NAMESPACE, Scene, conditions, scene

from bench.plan import Plan
from bench.table import Row, Spread, spread
from moorage.core.meta import Key
from moorage.core.outcome import Done
from moorage.keystone.backend import ROOM
from moorage.runtime.walk import Walk
from moorage.runtime.world import World

CHILDREN = 0
"""Objects that a KeystoneIdentityBackend owns on the API server: its files belong to the Keystone."""


def measure(plan: Plan) -> list[Row]:
    """Two questions: the first passes, and the pass after them."""
    return asyncio.run(_measure(plan))


async def _measure(plan: Plan) -> list[Row]:
    names = [f"backend-{number}" for number in range(plan.count(20))]
    async with scene(plan.folder) as made:
        for name in names:
            await made.backend(name, domain=name)
        await made.attach(*names)
        async with made.world() as world:
            first = await _converged(made, world, names)
        async with made.world() as world:
            return [_attach(first, names), *await _steady(made, world, names)]


async def _converged(made: Scene, world: World, names: list[str]) -> Counter[str]:
    """Every request to the API server that is no watch and no list of the cache, until all are Ready."""
    walk = Walk(ROOM, world)
    made.client.calls.clear()
    for name in names:
        await walk(Key(NAMESPACE, name))
    found = _writes(made)
    for name in names:
        if conditions(await made.stored(name)).get("Ready") != "True/AllReady":
            raise RuntimeError(f"{name} is not Ready: {await made.stored(name)}")
    return found


def _writes(made: Scene) -> Counter[str]:
    calls = made.client.calls.items()
    return Counter({f"{method} {what}": n for (method, what), n in calls if method not in ("GET", "LIST", "WATCH")})


def _attach(first: Mapping[str, int], names: list[str]) -> Row:
    count = len(names)
    status = sum(n for what, n in first.items() if what.endswith("/status")) / count
    others = sum(n for what, n in first.items() if not what.endswith("/status")) / count
    raw: dict[str, Spread] = {what: spread([n / count]) for what, n in first.items()}
    ours = f"{others:g} finalizer, {CHILDREN} children, {status:g} status"
    return Row(
        "API requests for each converged backend",
        ours,
        "-",
        f"{others + status:g}",
        "children + 1 status (+ 1 finalizer)",
        others <= 1 + CHILDREN and status <= 1,
        raw,
    )


async def _steady(made: Scene, world: World, names: list[str]) -> list[Row]:
    """A process that just started: its first pass over all, then the steady pass that is counted."""
    walk = Walk(ROOM, world)
    for name in names:
        await walk(Key(NAMESPACE, name))
    logins = made.stub.count()["login"]
    made.client.calls.clear()
    most, writing = 0, 0
    for name in names:
        made.stub.requests.clear()
        outcome = await walk(Key(NAMESPACE, name))
        if not isinstance(outcome, Done):
            raise RuntimeError(f"{name}: {outcome}")
        most = max(most, len(made.stub.requests))
        writing += len(made.stub.writes())
    writes = sum(_writes(made).values())
    reads = sum(n for (method, _), n in made.client.calls.items() if method != "WATCH")
    return [
        Row(
            "second pass: writes to the API server",
            str(writes),
            "-",
            str(writes),
            "0",
            writes == 0,
            {"writes": spread([writes])},
        ),
        Row(
            "second pass: any request to the API server",
            str(reads),
            "-",
            str(reads),
            "-",
            None,
            {"requests": spread([reads])},
        ),
        Row(
            "second pass: Keystone calls that write",
            str(writing),
            "-",
            str(writing),
            "0",
            writing == 0,
            {"calls": spread([writing])},
        ),
        Row(
            "Keystone requests in a steady pass, at most",
            str(most),
            "-",
            str(most),
            "<= 8",
            most <= 8,
            {"requests": spread([most])},
        ),
        Row(
            f"Keystone logins for {len(names)} passes and more",
            str(logins),
            "-",
            str(logins),
            "<= 1 a pass",
            logins <= len(names),
            {},
        ),
    ]
