"""Every crash point of a client: killed after any write, to Kubernetes or to Pocket-ID, the stored secret works and the next start ends alike."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Api, Group, Permission

from moorage.core.meta import Key
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM

from . import lives
from .lives import Step, anew_by, at_the_server, everything, locked_out_never, settled, state
from .scene import INSTANCE_KEY, KEY, NAMESPACE, Scene, fresh, scene
from .test_features import AUDIENCE

pytestmark = [pytest.mark.case("PIDX1", "PIDX2", "P5"), pytest.mark.timeout(900)]
STEPS: tuple[Step, ...] = (
    lives.made, lives.made_with_everything, lives.stripped, lives.adopted_by_id, lives.adopted_by_name, lives.rotated, lives.asked_for,
    lives.declared, lives.renamed_while_due, lives.lost, lives.kept, lives.kept_from_the_start, lives.kept_under_a_declared_id, lives.full, lives.deleted,
)  # fmt: skip


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_every_crash_point_heals(tmp_path: Path, step: Step) -> None:
    """After each life the stored secret authenticates, unless its client is gone; in the end exactly one is left."""
    assert await every_crash_point(anew_by(tmp_path, step), drive, state) >= 2


async def drive(here: Scene, fence: Fence) -> None:
    """One life, after a look at whether anybody is locked out."""
    if fence.allowed is None:
        await locked_out_never(here)
    if await here.stored() is None:
        return
    async with here.world(fence) as world:
        await fresh(here, world)
        await passes(ROOM, world, KEY)


# --- from one server to another


@pytest.mark.case("PIDX14")
async def test_every_crash_point_of_a_move_heals(tmp_path: Path) -> None:
    """The selector moved: in the end nothing is left at the one server, and one client whose secret works is at the other."""
    numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[tuple[Scene, Fake]]:
        new = Fake()
        async with scene(tmp_path / str(next(numbers))) as here, serving(new) as url:
            await _moved(here, new, url)
            yield here, new

    async def drive_both(env: tuple[Scene, Fake], fence: Fence) -> None:
        here, _ = env
        async with here.world(fence) as world:
            await fresh(here, world)
            await passes(ROOM, world, KEY)

    async def both(env: tuple[Scene, Fake]) -> Any:
        here, new = env
        found, status = await here.credentials(), await here.status()
        works = new.authenticates(found["client_id"], found["client_secret"])
        bound = status["instance"]["name"], found["client_id"] == status["clientID"]
        return at_the_server(here.fake), at_the_server(new), works, bound, await here.ready()

    assert await every_crash_point(anew, drive_both, both) >= 4


async def _moved(here: Scene, new: Fake, url: str) -> None:
    """A client with everything at the one instance; then its selector names the other."""
    spec = await everything(here)
    mine = next(iter(here.fake.store.apis.values()))
    new.store.apis[mine.id] = Api(
        mine.name, AUDIENCE, mine.created, [Permission("read", "read", "", id=mine.permissions[0].id)], id=mine.id
    )
    staff = Group("staff", "staff", mine.created)
    new.store.groups[staff.id] = staff
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"at": "old"}}})
    await settled(here, instanceSelector={"matchLabels": {"at": "old"}}, **spec)
    await here.instance("new", url)
    labelled = {"metadata": {"labels": {"at": "new"}}}
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "new"), labelled)
    await here.attach(Key(NAMESPACE, "new"))
    await here.edit(instanceSelector={"matchLabels": {"at": "new"}})
