"""Every write whose answer is lost, though the server committed it: one client, one secret, and the stored one works."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from tests.crashpoints import passes

from moorage.pocketid.oidcclient.room import ROOM

from . import lives
from .lives import Step, anew_by, locked_out_never, state
from .proof import prove
from .scene import KEY, Scene, fresh

pytestmark = pytest.mark.timeout(900)
STEPS: tuple[Step, ...] = (
    lives.made_with_everything, lives.stripped, lives.asked_for, lives.declared, lives.lost, lives.full, lives.deleted,
)  # fmt: skip


@pytest.mark.case("PIDX3")
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
async def test_every_lost_answer_heals(tmp_path: Path, step: Step) -> None:
    """The server commits a write and the connection breaks, for each write in turn: two passes later all is as if nothing had happened."""
    anew = anew_by(tmp_path, step)
    async with anew() as here:
        await _lives(here)
        wanted = await state(here)
    for number in itertools.count():
        async with anew() as here:
            fault = here.fake.faults.add("drop_after", method="[PD]*", path="/api/*[!n]", skip=number)  # no token
            await _lives(here)
            assert await state(here) == wanted, f"the answer to write {number} was lost"
            if await here.stored() is not None:
                await prove(here)
            if not fault.struck:
                assert number > 0
                return


async def _lives(here: Scene) -> None:
    """Passes of one process until nothing is left to do, whatever the first of them came to."""
    async with here.world() as world:
        for _ in range(3):
            if await here.stored() is None:
                return
            await fresh(here, world)
            await passes(ROOM, world, KEY)
            await locked_out_never(here)
