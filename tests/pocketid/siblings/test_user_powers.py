"""Users and groups of a namespace that only uses an instance: no administrators, nobody taken over, unless the instance says so."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid.model import STATIC_OWNER, User, digest

from moorage.core.meta import Key
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.user.room import ROOM

from .scene import HOME, NAMESPACE, Scene, elsewhere, message, ready

KIND, NAME = "User", "ada"
BOSS = {
    "username": "boss", "email": "boss@example.org", "isAdmin": True, "locale": None, "disabled": False, "emailVerified": True,
    "firstName": "The", "lastName": "Boss", "displayName": "The Boss",
}  # fmt: skip


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with elsewhere(tmp_path, ROOM) as made:
        yield made


def boss(here: Scene, **settings: Any) -> User:
    """A person who is there before."""
    user = User("00000001-0000-4000-8000-000000000000", {**BOSS, **settings})
    here.fake.store.users[user.id] = user
    return user


async def refused(here: Scene, asked: str) -> None:
    """Nothing was written at the server or in the cluster, the condition says what to do, and the status remembers nobody."""
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/NotPermitted"
    assert asked in message(stored)
    assert "name pocket-id in spec.adminNamespaces of PocketIDInstance identity/main" in message(stored)
    assert stored is not None
    assert "userID" not in stored["status"]
    assert here.fake.journal.writes() == []
    assert [
        item for item in (await here.client.list(SECRETS, NAMESPACE)).items if item["metadata"]["name"] != "api-key"
    ] == []


@pytest.mark.parametrize(("spec", "there"), [
    ({"username": {"value": "boss"}, "apiKeys": [{"name": "key"}]}, {}),
    ({"username": {"value": "boss"}}, {"isAdmin": False}),
    ({"email": {"value": "boss@example.org"}}, {"isAdmin": False}),
    ({"userID": "00000001-0000-4000-8000-000000000000"}, {"isAdmin": False}),
], ids=["administrator", "name", "address", "id"])  # fmt: skip
async def test_nobody_who_exists_is_taken_over_from_elsewhere(
    here: Scene, spec: dict[str, Any], there: dict[str, Any]
) -> None:
    """By no name, address or id: who sets the mail address receives the login codes."""
    user = boss(here, **there)
    before = dict(user.settings)
    await here.make(KIND, NAME, **spec)
    await here.settle(NAME)
    await refused(here, "'boss'")
    assert user.settings == before


async def test_a_person_who_is_applied_again_is_had_again_once_the_id_stands_in_the_status(here: Scene) -> None:
    """By default the person stays when the resource goes; of the next one of that name nobody can tell whose it is."""
    await here.make(KIND, NAME)
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    id = stored["status"]["userID"]
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    await here.make(KIND, NAME)
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/NotPermitted"
    assert "have its id written into status.userID (kubectl edit --subresource=status)" in message(stored)
    home = {"namespace": HOME, "name": "main", "url": here.url}
    await here.says(KIND, NAME, userID=id, instance=home)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    assert len([user for user in here.fake.store.users if user != STATIC_OWNER]) == 1


async def test_nobody_becomes_an_administrator_from_elsewhere(here: Scene) -> None:
    """Neither at once nor by an edit."""
    await here.make(KIND, NAME, admin=True, apiKeys=[{"name": "key"}])
    await here.settle(NAME)
    await refused(here, "spec.admin makes an administrator")


async def test_a_user_of_its_own_is_made_from_elsewhere_and_a_lost_answer_is_known_again(here: Scene) -> None:
    """Ordinary users are what admitting a namespace is for."""
    await here.make(KIND, NAME, email={"value": "ada@example.org"}, apiKeys=[{"name": "key"}])
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "True/Reconciled"
    await here.says(KIND, NAME, userID=None)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    await here.edit(KIND, NAME, admin=True)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/NotPermitted"
    assert not [user for user in here.fake.store.users.values() if user.id != STATIC_OWNER and user.settings["isAdmin"]]


@pytest.mark.parametrize("names", [{}, {"displayName": {"value": "Ada L."}}], ids=["undeclared", "declared"])
async def test_a_user_with_a_declared_id_is_known_again_whatever_was_lost(
    here: Scene, tmp_path: Path, names: dict[str, Any]
) -> None:
    """An answer, or a process after any write; in the end the name is the one that people see."""
    counter = itertools.count()
    id = "00000002-0000-4000-8000-000000000000"
    here.fake.faults.add("drop_after", method="POST", path="/api/users")
    await here.make(KIND, NAME, userID=id, **names)
    await here.settle(NAME)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with elsewhere(tmp_path / str(next(counter)), ROOM) as made:
            await made.make(KIND, NAME, userID=id, **names)
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        return here.fake.store.users[id].settings["displayName"], ready(await here.stored(KIND, NAME))

    assert await every_crash_point(fresh, drive, state) >= 7
    assert here.fake.store.users[id].settings["displayName"] == ("Ada L." if names else "ada")


async def test_keys_of_a_person_who_became_an_administrator_end(here: Scene) -> None:
    """The tenant holds the token: it opened what the person may, which is the whole server by now."""
    await here.make(KIND, NAME, apiKeys=[{"name": "key"}, {"name": "cron"}])
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    token = (await here.secret_data("ada-key-key"))["token"]
    person = here.fake.store.users[stored["status"]["userID"]]
    person.settings["isAdmin"] = True
    assert digest(token) in {key.digest for key in here.fake.store.keys.values()}
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/NotPermitted"
    assert stored is not None
    assert "apiKeys" not in stored["status"]
    assert here.fake.store.keys == {}
    secrets = {item["metadata"]["name"] for item in (await here.client.list(SECRETS, NAMESPACE)).items}
    assert secrets == {"api-key", "ada-user-data"}
    person.settings["isAdmin"] = False
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    assert digest((await here.secret_data("ada-key-key"))["token"]) in {
        key.digest for key in here.fake.store.keys.values()
    }


async def test_the_instance_can_trust_a_namespace(here: Scene) -> None:
    """`adminNamespaces` is the word of whoever keeps the instance."""
    user = boss(here)
    await here.client.patch(INSTANCE.resource, Key(HOME, "main"), {"spec": {"adminNamespaces": [NAMESPACE]}})
    await here.make(KIND, NAME, username={"value": "boss"}, admin=True)
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "True/Reconciled"
    assert stored is not None
    assert stored["status"]["userID"] == user.id
