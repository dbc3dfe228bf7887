"""Waiting for resources by watching them: no polling, and a watch that ends is taken up again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from moorage.core.meta import JsonObject, Key, ResourceType
    from moorage.kube.client import Client


async def changes(client: Client, namespace: str) -> AsyncIterator[None]:
    """Yields whenever any resource of our kinds changes in this namespace (empty: in all)."""
    from moorage.cli.systems import KINDS

    woken = asyncio.Event()

    async def follow(resource: ResourceType) -> None:
        async for _ in objects(client, resource, namespace):
            woken.set()

    tasks = [asyncio.create_task(follow(kind.resource)) for kind in KINDS]
    try:
        while True:
            await woken.wait()
            woken.clear()
            yield
    finally:
        for task in tasks:
            task.cancel()


async def objects(
    client: Client, resource: ResourceType, namespace: str, fields: str = ""
) -> AsyncIterator[tuple[JsonObject | None, bool]]:
    """Every present object, then each one that changes, and whether it still exists; (None, False) when a list has none."""
    from moorage.kube.errors import Expired

    while True:
        listing = await client.list(resource, namespace, fields=fields)
        for item in listing.items:
            yield item, True
        if not listing.items:
            yield None, False
        since = listing.resource_version
        try:
            while True:
                async for event in client.watch(resource, namespace, since=since, fields=fields):
                    since = event.resource_version or since
                    if event.type != "BOOKMARK":
                        yield event.object, event.type != "DELETED"
        except Expired:
            continue


async def until(client: Client, resource: ResourceType, key: Key) -> AsyncIterator[JsonObject | None]:
    """The states of one object, None while it does not exist, or no longer. List and watch know of one state: nothing is missed between."""
    async for obj, exists in objects(client, resource, key.namespace, f"metadata.name={key.name}"):
        yield obj if exists else None
