"""Groups and APIs whose making was not answered, and whose status has no id: what can only be ours goes with the resource, what may be ours is told."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes

from moorage.core.meta import Key
from moorage.pocketid.api.room import ROOM as API_ROOM
from moorage.pocketid.usergroup.room import ROOM as GROUP_ROOM
from moorage.runtime.room import Event

from .scene import NAMESPACE, Scene, elsewhere, ready, scene

pytestmark = pytest.mark.case("PIDX3")
NAME = "orders"


@dataclass(frozen=True)
class Case:
    """One kind: its room, what is declared, where it is made."""

    kind: str
    room: Any
    spec: dict[str, Any]
    path: str
    store: str
    field: str

    def there(self, here: Scene) -> list[Any]:
        """What the server has."""
        return list(getattr(here.fake.store, self.store).values())


CASES = (
    Case("UserGroup", GROUP_ROOM, {}, "/api/user-groups", "groups", "groupID"),
    Case("API", API_ROOM, {"resource": "https://orders.example.org"}, "/api/apis", "apis", "apiID"),
)
each = pytest.mark.parametrize("case", CASES, ids=[item.kind for item in CASES])


async def unanswered(here: Scene, case: Case, how: Any = "drop_after", **spec: Any) -> None:
    """It is asked for; the connection breaks before the server answers."""
    here.fake.faults.add(how, method="POST", path=case.path, times=1)
    await here.make(case.kind, NAME, **case.spec, **spec)
    await here.once(NAME)
    assert len(case.there(here)) == (how == "drop_after")
    here.fake.journal.clear()


async def deleted(here: Scene, case: Case) -> list[Event]:
    """A person deletes it, and it goes; what is told."""
    told: list[Event] = []
    await here.delete(case.kind, NAME)
    await here.settle(NAME, told)
    assert await here.stored(case.kind, NAME) is None
    return [event for event in told if event.reason == "LeftBehind"]


@each
async def test_what_can_only_be_ours_goes_with_the_resource(tmp_path: Path, case: Case) -> None:
    """And the next resource of that name is not locked out by what it left."""
    async with elsewhere(tmp_path, case.room) as here:
        await unanswered(here, case)
        assert await deleted(here, case) == []
        assert case.there(here) == []
        assert [line.split()[0] for line in here.fake.journal.lines()] == ["GET", "DELETE"]
        await here.make(case.kind, NAME, **case.spec)
        await here.settle(NAME)
        assert ready(await here.stored(case.kind, NAME)) == "True/Reconciled"


@each
async def test_what_another_resource_has_by_now_stays(tmp_path: Path, case: Case) -> None:
    """Its status has the id; it just did not give it its own name yet."""
    async with elsewhere(tmp_path, case.room) as here:
        await unanswered(here, case)
        (made,) = case.there(here)
        bound = (await here.stored(case.kind, NAME) or {})["status"]["instance"]
        await here.make(case.kind, "heir", **case.spec)
        await here.says(case.kind, "heir", instance=bound, **{case.field: made.id})
        await deleted(here, case)
        assert case.there(here) == [made]


@each
async def test_it_stays_where_the_deletion_policy_says_so(tmp_path: Path, case: Case) -> None:
    async with elsewhere(tmp_path, case.room) as here:
        await unanswered(here, case, deletionPolicy="Retain")
        await deleted(here, case)
        assert (len(case.there(here)), here.fake.journal.lines()) == (1, [])


@each
@pytest.mark.parametrize("made", [True, False], ids=["made", "not made"])
async def test_what_may_be_anybodys_stays_and_is_told(tmp_path: Path, case: Case, made: bool) -> None:
    """In a namespace that the instance trusts nothing tells who made it."""
    async with scene(tmp_path, case.room) as here:
        await unanswered(here, case, "drop_after" if made else "drop_before")
        told = await deleted(here, case)
        assert len(case.there(here)) == len(told) == made
        assert all("may be there for this resource" in event.message for event in told)


@each
async def test_a_deletion_waits_for_a_server_that_may_hold_it(tmp_path: Path, case: Case) -> None:
    async with elsewhere(tmp_path, case.room) as here:
        await unanswered(here, case)
        here.fake.faults.add("status", status=503, times=-1)
        await here.delete(case.kind, NAME)
        await here.once(NAME)
        assert await here.stored(case.kind, NAME) is not None
        here.fake.faults.clear()
        await here.settle(NAME)
        assert (await here.stored(case.kind, NAME), case.there(here)) == (None, [])


@each
async def test_a_complete_status_costs_no_look(tmp_path: Path, case: Case) -> None:
    async with elsewhere(tmp_path, case.room) as here:
        await here.make(case.kind, NAME, **case.spec)
        await here.settle(NAME)
        here.fake.journal.clear()
        await deleted(here, case)
        assert [line.split()[0] for line in here.fake.journal.lines()] == ["DELETE"]


@each
@pytest.mark.timeout(900)
async def test_every_crash_point_of_such_a_deletion_heals(tmp_path: Path, case: Case) -> None:
    numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        async with elsewhere(tmp_path / str(next(numbers)), case.room) as here:
            await unanswered(here, case)
            await here.delete(case.kind, NAME)
            yield here

    async def drive(here: Scene, fence: Fence) -> None:
        if await here.stored(case.kind, NAME) is not None:
            async with here.world(fence) as world:
                await passes(case.room, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        return await here.stored(case.kind, NAME), case.there(here)

    assert await every_crash_point(anew, drive, state) >= 2
