"""Groups of a namespace that only uses an instance: one that exists is not taken over, unless the instance says so."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid.model import Group

from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.reach import lists_of, reach
from moorage.pocketid.rest import PocketID
from moorage.pocketid.usergroup.room import ROOM
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import HOME, NAMESPACE, Scene, condition, elsewhere, message, ready
from .test_group import user

KIND, NAME = "UserGroup", "staff"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with elsewhere(tmp_path, ROOM) as made:
        yield made


def staff(here: Scene, *people: str) -> Group:
    """A group that somebody made by hand."""
    group = Group(NAME, "Staff", 0, users=set(people))
    here.fake.store.groups[group.id] = group
    return group


async def test_a_group_that_people_are_in_is_not_taken_over_from_elsewhere(here: Scene) -> None:
    """Whoever is added to it could use every client that is restricted to it."""
    someone = user(here, "eve")
    group = staff(here, someone)
    await here.make(KIND, NAME, friendlyName="Ours", customClaims=[{"key": "a", "value": "b"}])
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/NotPermitted"
    assert "name pocket-id in spec.adminNamespaces of PocketIDInstance identity/main" in message(stored)
    assert stored is not None
    assert "groupID" not in stored["status"]
    assert here.fake.journal.writes() == []
    await here.client.patch(INSTANCE.resource, Key(HOME, "main"), {"spec": {"adminNamespaces": [NAMESPACE]}})
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    assert (group.friendly, group.users) == ("Ours", {someone})


async def test_an_empty_group_that_is_older_is_not_taken_over_either(here: Scene) -> None:
    """A client may be restricted to it so that nobody can use that until the pager rings."""
    staff(here)
    await here.make(KIND, NAME)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/NotPermitted"


async def test_clients_of_other_namespaces_that_are_listed_from_elsewhere_are_told(here: Scene) -> None:
    """The group is made; who may use those clients is not for it to say."""
    told: list[Event] = []
    await here.make(KIND, NAME, allowedOIDCClients=[{"name": "wiki", "namespace": HOME}])
    await here.settle(NAME, told)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    (event,) = [event for event in told if event.reason == "NotPermitted"]
    assert "identity/wiki is of another namespace" in event.message


async def test_a_group_that_is_made_by_hand_after_the_resource_was_is_not_taken_over(here: Scene) -> None:
    """A resource that lies in wait, with an instance that is not Ready yet, gains nothing by being older."""
    await here.client.patch(
        INSTANCE.resource, Key(HOME, "main"), {"status": {"conditions": condition(up=False)}}, subresource="status"
    )
    await here.make(KIND, NAME)
    await here.settle(NAME)
    staff(here)
    await here.client.patch(
        INSTANCE.resource, Key(HOME, "main"), {"status": {"conditions": condition()}}, subresource="status"
    )
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/NotPermitted"
    assert here.fake.journal.writes() == []


async def test_a_group_that_is_made_by_hand_at_the_same_moment_is_not_taken_over(here: Scene) -> None:
    """The list did not have it yet; the create says that the name is taken."""
    await here.make(KIND, NAME)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        instance = world.cache.get(INSTANCE.resource, Key(HOME, "main"))
        assert instance is not None
        groups, remote = lists_of(world, here.url).groups, reach(world, instance)
        assert isinstance(remote, PocketID)
        groups.expire()
        await groups.get(remote.reader, nobody_is_there, world.now(), 60)
        staff(here)
        assert (await walk(Key(NAMESPACE, NAME))).reason == "NotPermitted"
    (group,) = here.fake.store.groups.values()
    assert group.friendly == "Staff"


async def nobody_is_there() -> list[Any]:
    """A list of a moment ago."""
    return []


async def test_a_group_whose_id_was_lost_is_had_again_once_it_stands_in_the_status(here: Scene) -> None:
    """After a restore without status nobody can tell whose it is; the condition says where the id belongs."""
    await here.make(KIND, NAME)
    await here.settle(NAME)
    (group,) = here.fake.store.groups.values()
    await here.says(KIND, NAME, groupID=None)
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/NotPermitted"
    assert (
        "have its id written into status.groupID (kubectl edit --subresource=status) if it was made here before"
        in message(stored)
    )
    await here.says(KIND, NAME, groupID=group.id)
    await here.edit(KIND, NAME, friendlyName="Still ours")
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    assert group.friendly == "Still ours"


async def test_a_group_whose_answer_was_lost_is_known_by_its_birthmark(here: Scene) -> None:
    """Committed, then the connection breaks: the same process finds it by its name."""
    here.fake.faults.add("drop_after", method="POST", path="/api/user-groups")
    await here.make(KIND, NAME, friendlyName="Ours")
    async with here.world() as world:
        walk = Walk(ROOM, world)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Failed)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Done)
    (group,) = here.fake.store.groups.values()
    assert (group.name, group.friendly) == (NAME, "Ours")


async def test_every_crash_point_of_a_tenants_group_ends_in_the_same_group(tmp_path: Path) -> None:
    """Killed after any write: it is ours, with the name that is declared."""
    counter = itertools.count()

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with elsewhere(tmp_path / str(next(counter)), ROOM) as made:
            user(made, "ada")
            await made.make(KIND, NAME, friendlyName="Ours", users={"usernames": ["ada"]})
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        (group,) = here.fake.store.groups.values()
        stored = await here.stored(KIND, NAME)
        assert stored is not None
        return group.name, group.friendly, len(group.users), stored["status"]["groupID"] == group.id, ready(stored)

    assert await every_crash_point(fresh, drive, state) == 8
