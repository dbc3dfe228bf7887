"""APIs of a namespace that only uses an instance: one that exists is not taken over, unless the instance says so."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid.model import Api, Permission

from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed
from moorage.pocketid.api.room import ROOM
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.runtime.walk import Walk

from .scene import HOME, NAMESPACE, Scene, elsewhere, message, ready
from .test_api import AUDIENCE, KIND, NAME, READ, only


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with elsewhere(tmp_path, ROOM) as made:
        yield made


def theirs(here: Scene) -> Api:
    """An API that somebody made by hand."""
    api = Api("Theirs", AUDIENCE, 0, [Permission("pay", "Pay", "")])
    here.fake.store.apis[api.id] = api
    return api


async def test_an_api_that_exists_is_neither_taken_over_nor_deleted_from_elsewhere(here: Scene) -> None:
    """Its permissions, and with them the grants of others, stay; so does the API when the resource goes."""
    api = theirs(here)
    await here.make(KIND, NAME, resource=AUDIENCE + "/", permissions=[READ], cimdAccess=True)
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/NotPermitted"
    assert "name pocket-id in spec.adminNamespaces of PocketIDInstance identity/main" in message(stored)
    assert stored is not None
    assert "apiID" not in stored["status"]
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None
    assert here.fake.journal.writes() == []
    assert (api.name, [item.key for item in api.permissions], api.cimd) == ("Theirs", ["pay"], False)


async def test_the_instance_can_trust_a_namespace_with_apis_that_exist(here: Scene) -> None:
    """`adminNamespaces` is the word of whoever keeps the instance."""
    api = theirs(here)
    await here.client.patch(INSTANCE.resource, Key(HOME, "main"), {"spec": {"adminNamespaces": [NAMESPACE]}})
    await here.make(KIND, NAME, resource=AUDIENCE, permissions=[READ])
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    assert (api.name, [item.key for item in api.permissions]) == (NAME, ["read"])


@pytest.mark.case("PIDX3")
async def test_an_api_of_its_own_whose_answer_was_lost_is_known_by_its_birthmark(here: Scene) -> None:
    """Committed, then the connection breaks: the same process finds it by its audience."""
    here.fake.faults.add("drop_after", method="POST", path="/api/apis")
    await here.make(KIND, NAME, resource=AUDIENCE)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Failed)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Done)
    assert only(here).name == NAME


async def test_every_crash_point_of_a_tenants_api_ends_in_the_same_api(tmp_path: Path) -> None:
    """Killed after any write: it is ours, with the name that is declared."""
    counter = itertools.count()

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with elsewhere(tmp_path / str(next(counter)), ROOM) as made:
            await made.make(KIND, NAME, resource=AUDIENCE, permissions=[READ])
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        stored = await here.stored(KIND, NAME)
        assert stored is not None
        return only(here).name, stored["status"]["apiID"] == only(here).id, ready(stored)

    assert await every_crash_point(fresh, drive, state) == 7
