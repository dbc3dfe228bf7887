"""Every crash point of a scenario: killed after its n-th write, for every n, the next start ends in the same state.

Enters: how to make a fresh world, how to drive it until nothing is left to do, how to read its state. Leaves: an assertion, and
the number of writes. A room's test reads:

    writes = await every_crash_point(fresh, drive, state)
    assert writes == 7

`drive(env, fence)` runs walks or an Operator on `env.client.fenced(fence)`; servers other than the API server are fenced through
`World.http`. After its last allowed write the process is as dead: every further write raises Killed, which no handler of ours
catches, and the drive is given up. The second drive starts with empty memory.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeVar

from aiohttp.abc import AbstractResolver

from moorage.core.meta import Key
from moorage.core.outcome import Outcome
from moorage.kube.client import Client
from moorage.net.sessions import Sessions
from moorage.runtime.reflector import Reflector
from moorage.runtime.room import Event, Room
from moorage.runtime.walk import Walk
from moorage.runtime.world import Caches, World

Env = TypeVar("Env")


class Killed(BaseException):
    """The process is dead; not an Exception, so that no handler goes on."""


class Fence:
    """Lets `allowed` writes through, then kills. None lets all through and counts."""

    def __init__(self, allowed: int | None = None) -> None:
        self.allowed, self.writes = allowed, 0
        self.killed = asyncio.Event()

    def __call__(self) -> None:
        if self.allowed is not None and self.writes >= self.allowed:
            self.killed.set()
            raise Killed(f"after {self.writes} writes")
        self.writes += 1


Drive = Callable[[Env, Fence], Awaitable[None]]


async def every_crash_point(
    fresh: Callable[[], AbstractAsyncContextManager[Env]],
    drive: Callable[[Env, Fence], Awaitable[None]],
    state: Callable[[Env], Awaitable[Any]],
) -> int:
    """Assert that the final state is the same whichever write was the last of a first life; the number of writes."""
    fence = Fence()
    async with fresh() as env:
        await drive(env, fence)
        wanted = await state(env)
        again = Fence()
        await drive(env, again)
        assert again.writes == 0, f"a second pass over an unchanged world made {again.writes} writes"
    for allowed in range(fence.writes):
        async with fresh() as env:
            await _one_life(drive, env, Fence(allowed))
            await drive(env, Fence())
            found = await state(env)
        assert found == wanted, f"killed after write {allowed} of {fence.writes}, the next start ended elsewhere"
    return fence.writes


async def _one_life(drive: Callable[[Env, Fence], Awaitable[None]], env: Env, fence: Fence) -> None:
    life = asyncio.ensure_future(drive(env, fence))
    death = asyncio.ensure_future(fence.killed.wait())
    await asyncio.wait({life, death}, return_when=asyncio.FIRST_COMPLETED)
    life.cancel()
    death.cancel()
    await asyncio.gather(life, death, return_exceptions=True)
    assert fence.killed.is_set(), "the scenario ended before its crash point"


@contextlib.asynccontextmanager
async def cached_world(
    client: Client,
    rooms: Sequence[Room[Any, Any]],
    fence: Callable[[], None] = lambda: None,
    *,
    resolver: AbstractResolver | None = None,
) -> AsyncIterator[World]:
    """A World with synced reflectors of all that the rooms watch, and no controllers: tests call walks themselves."""
    types = {room.kind.resource for room in rooms}
    types |= {watch.resource for room in rooms for watch in room.watches}
    types |= {index.resource for room in rooms for index in room.indices}
    reflectors = {rt: Reflector(client, rt) for rt in types}
    for room in rooms:
        for index in room.indices:
            reflectors[index.resource].add_index(index.name, index.values)
    tasks = [asyncio.create_task(item.run()) for item in reflectors.values()]
    try:
        for item in reflectors.values():
            await item.synced.wait()
        async with Sessions(fence=fence, resolver=resolver) as http:
            yield World(client.fenced(fence), Caches(reflectors), http, leading=fence)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def passes(
    room: Room[Any, Any], world: World, key: Key, *, most: int = 20, told: list[Event] | None = None
) -> Outcome:
    """Walk one object again and again until a pass makes no request that writes; the last outcome."""
    walk = Walk(room, world, lambda _ref, event: None if told is None else told.append(event))
    for _ in range(most):
        before = world.client.writes
        outcome = await walk(key)
        if world.client.writes == before:
            return outcome
    raise AssertionError(f"{key} still writes after {most} passes")
