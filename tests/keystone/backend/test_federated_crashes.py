"""Every crash point of a federated backend: killed after any write, to Kubernetes or to Keystone, the next start ends in the same state."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes

from moorage.keystone.backend import ROOM
from moorage.runtime.world import World

from .scene import BACKENDS, KEY, Scene, scene
from .waiting import fresh, settle

pytestmark = [pytest.mark.case("P5"), pytest.mark.timeout(900)]
Step = Callable[[Scene], Awaitable[None]]
GROUPS = [
    {"name": "eng", "roleAssignments": [{"role": "reader", "domain": True}]},
    {"name": "ops", "roleAssignments": [{"role": "member", "domain": True}]},
]


async def nothing(_: Scene) -> None:
    """The backend is only attached."""


async def edited(here: Scene) -> None:
    """Rules, groups and roles change at once; a person does this once, whatever the operator's fate is."""
    rules = [{"remote": [{"type": "HTTP_OIDC_SUB"}], "local": [{"user": {"name": "{0}"}}]}]
    await here.edit(mappings=rules, groups=GROUPS)


async def renamed(here: Scene) -> None:
    """Identity provider and protocol at once."""
    await here.edit(oidc={"identityProviderName": "umbrella", "protocolID": "mapped"})


async def deleted(here: Scene) -> None:
    """By a person."""
    with contextlib.suppress(Exception):
        await here.client.delete(BACKENDS, KEY)


async def _until_done(here: Scene, world: World) -> None:
    """Both rooms, one after the other, until neither has anything to do."""
    await fresh(here, world)
    await passes(ROOM, world, KEY)
    obj = await here.stored()
    if obj is None:
        return
    leaving = bool(obj["metadata"].get("deletionTimestamp"))
    await here.attach(*([] if leaving else [KEY.name]))
    await fresh(here, world)
    await passes(ROOM, world, KEY)


@pytest.mark.parametrize("step", [nothing, edited, renamed, deleted], ids=lambda step: step.__name__)
async def test_every_crash_point_heals(tmp_path: Path, step: Step) -> None:
    """Attach, edit, rename, detach: nothing is lost, nothing is orphaned, and a second drive writes nothing."""
    count = 0

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        nonlocal count
        count += 1
        async with scene(tmp_path / str(count)) as made:
            await made.oidc(domain={"name": "corp", "deletionPolicy": "Delete"})
            if step is not nothing:
                await settle(made)
                await made.attach(KEY.name)
                await settle(made)
                await step(made)
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        if await here.stored() is None:
            return
        async with here.world(fence) as world:
            await _until_done(here, world)

    writes = await every_crash_point(anew, drive, state)
    assert writes >= {nothing: 9, edited: 6, renamed: 10, deleted: 7}[step]


async def state(here: Scene) -> Any:
    """What must be the same in the end: Keystone's objects by name, and the status without times."""
    found = here.stub.federated
    obj = await here.stored()
    status = (obj or {}).get("status") or {}
    record = status.get("applied") or {}
    return {
        "providers": {
            id: (item["enabled"], sorted(item["remote_ids"]), "kept by Moorage" in (item["description"] or ""))
            for id, item in found.providers.items()
        },
        "protocols": sorted(
            (*key, item["mapping_id"], item["remote_id_attribute"]) for key, item in found.protocols.items()
        ),
        "mappings": {id: item["rules"] for id, item in found.mappings.items()},
        "groups": sorted(item["name"] for item in found.groups.values()),
        "granted": found.granted(),
        "domains": sorted((item["name"], item["enabled"]) for item in here.stub.domains.values()),
        "conditions": {
            item["type"]: (item["status"], item["reason"], item["message"]) for item in status.get("conditions", ())
        },
        "recorded": (
            record.get("identityProviders"),
            [(group["name"], [item["role"] for item in group["grants"]]) for group in record.get("groups", ())],
        ),
    }


@pytest.mark.case("S4", "K4")
async def test_what_is_edited_before_the_next_start_is_not_orphaned(tmp_path: Path) -> None:
    """Killed at any write of the attach, then renamed and with other roles before the operator is back: nothing of the first form is left."""
    begun: set[int] = set()
    count = 0

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        nonlocal count
        count += 1
        async with scene(tmp_path / str(count)) as made:
            await made.oidc()
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        if id(here) not in begun:
            begun.add(id(here))
            async with here.world(fence) as world:
                await _until_done(here, world)
        obj = await here.stored()
        assert obj is not None
        if obj["spec"]["oidc"]["identityProviderName"] == "acme":
            await renamed(here)
            await here.edit(groups=GROUPS)
        async with here.world(fence) as world:
            await _until_done(here, world)

    async def lasting(here: Scene) -> Any:
        found = await state(here)
        found["groups"] = None  # a group that was created stays, one that was not yet is not
        return found

    assert await every_crash_point(anew, drive, lasting) > 20
