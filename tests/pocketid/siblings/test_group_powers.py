"""Groups of a namespace that only uses an instance: one that people are in is not taken over, unless the instance says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.fakes.pocketid.model import Group

from moorage.core.meta import Key
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.usergroup.room import ROOM
from moorage.runtime.room import Event

from .scene import HOME, NAMESPACE, Scene, elsewhere, message, ready
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


async def test_a_group_of_its_own_is_known_again_after_a_lost_status(here: Scene) -> None:
    """It is empty until its id is written down; afterwards its members matter no more."""
    await here.make(KIND, NAME)
    await here.settle(NAME)
    await here.says(KIND, NAME, groupID=None)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    (group,) = here.fake.store.groups.values()
    group.users.add(user(here, "eve"))
    await here.edit(KIND, NAME, friendlyName="Still ours")
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    assert group.friendly == "Still ours"
