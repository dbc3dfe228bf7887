"""Waiting for caches and settling: what the walk tests of all types share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.crashpoints import passes

from moorage.core.outcome import Outcome
from moorage.keystone.backend import ROOM
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.runtime.room import Event
from moorage.runtime.world import World

from .scene import BACKENDS, KEY, Scene


async def until(check: Callable[[], Any]) -> None:
    """Wait for the cache; a bound against hanging, not a measure."""
    async with asyncio.timeout(30):
        while not check():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


async def fresh(here: Scene, world: World) -> None:
    """Wait until the cache holds what the server holds."""
    for rt in (BACKENDS, KEYSTONE.resource, DEPLOYMENTS, SECRETS):
        listing = await here.client.list(rt)
        wanted = {(i["metadata"]["name"], i["metadata"]["resourceVersion"]) for i in listing.items}
        await until(
            lambda rt=rt, wanted=wanted: (
                wanted == {(i["metadata"]["name"], i["metadata"]["resourceVersion"]) for i in world.cache.list(rt)}
            )
        )


async def settle(here: Scene, told: list[Event] | None = None) -> Outcome:
    """What a process that just started makes of it."""
    async with here.world() as world:
        return await passes(ROOM, world, KEY, told=told)
