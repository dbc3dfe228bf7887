"""Every crash point of a deployed instance: killed after any write, the next start ends alike, with one key and one pod."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point

from moorage.core.meta import Key
from moorage.kube.resources import SECRETS

from .scene import NAME, Scene, embedded, scene

pytestmark = pytest.mark.timeout(900)
Step = Callable[[Scene], Awaitable[None]]


async def made(_: Scene) -> None:
    """The instance is only made."""


async def changed(here: Scene) -> None:
    """Image, settings and policy change at once, and the API key is lost."""
    await here.edit(image="pocket-id:v2.17.0", deletionPolicy="Delete", databaseUrl=None)
    await here.client.delete(SECRETS, Key(here.namespace, f"{NAME}-static-api-key"))


@pytest.mark.parametrize("step", [made, changed], ids=lambda step: step.__name__)
async def test_every_crash_point_heals(tmp_path: Path, step: Step) -> None:
    """The pod asserts that no life of ours starts it with another encryption key."""
    count = 0

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        nonlocal count
        count += 1
        folder = tmp_path / str(count)
        async with embedded(folder) as client, scene(client, folder) as here:
            await here.make(encryptionKey={"generate": True}, databaseUrl={"value": "postgres://id@db/id"})
            if step is not made:
                await here.drive()
                await step(here)
            yield here

    async def drive(here: Scene, fence: Fence) -> None:
        await here.drive(fence)

    assert await every_crash_point(anew, drive, state) >= 6


async def state(here: Scene) -> Any:
    """What must be the same in the end: children, owners, status; not what is random."""
    live, status = await here.workload(), await here.status()
    (container,) = live["spec"]["template"]["spec"]["containers"]
    token = (await here.secret_data(f"{NAME}-static-api-key"))["token"]
    held = (await here.secret_data(f"{NAME}-held-encryption-key"))["token"]
    return {
        "names": await here.names(),
        "env": [{**item, "value": ""} for item in container["env"]],
        "image": container["image"],
        "key": here.encrypted_with == held,
        "api": here.fake.api_key == token,
        "status": {name: value for name, value in status.items() if name not in ("conditions", "observedGeneration")},
        "ready": await here.ready(),
    }
