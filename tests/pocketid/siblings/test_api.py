"""The walk of an API on the embedded API server, with the fake as Pocket-ID: create, adopt, permissions, the CIMD switch, deletion."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid.model import Api, Client, Grant, Permission

from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed, Waiting
from moorage.pocketid.api.room import ROOM
from moorage.pocketid.api.types import CLIENT_FINALIZER, FINALIZER
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import NAMESPACE, Scene, message, ready, scene

KIND = "API"
NAME = "billing"
AUDIENCE = "https://billing.example.org"
READ = {"key": "read", "name": "Read", "description": "See bills"}
WRITE = {"key": "write", "name": "Write"}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path, ROOM) as made:
        yield made


def only(here: Scene) -> Api:
    """The one API at the server."""
    (api,) = here.fake.store.apis.values()
    return api


def permissions(api: Api) -> dict[str, tuple[str, str, bool]]:
    """What the server holds, by key."""
    return {item.key: (item.name, item.description, item.cimd) for item in api.permissions}


async def settled(here: Scene, **spec: Any) -> Api:
    """An API that is Ready."""
    await here.make(KIND, NAME, **{"resource": AUDIENCE, **spec})
    assert isinstance(await here.settle(NAME), Done)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    return only(here)


async def status(here: Scene) -> dict[str, Any]:
    """Status without conditions."""
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    return {name: value for name, value in stored["status"].items() if name != "conditions"}


async def test_an_api_is_made_with_permissions_and_its_switch(here: Scene) -> None:
    """The switch comes after the permissions, by the ids that they got."""
    told: list[Event] = []
    await here.make(KIND, NAME, resource=AUDIENCE, permissions=[READ | {"cimdAccess": True}, WRITE], cimdAccess=True)
    assert await here.settle(NAME, told) == Done(after=120.0)
    api = only(here)
    assert (api.name, api.resource, api.cimd) == (NAME, AUDIENCE, True)
    assert permissions(api) == {"read": ("Read", "See bills", True), "write": ("Write", "", False)}
    found = await status(here)
    assert found.pop("createdAt")
    ids = {item.key: item.id for item in api.permissions}
    assert found == {
        "observedGeneration": 1, "instance": {"namespace": NAMESPACE, "name": "main", "url": here.url}, "apiID": api.id, "name": NAME,
        "resource": AUDIENCE, "cimdAccess": True,
        "permissions": [
            {"id": ids["read"], "key": "read", "name": "Read", "cimdAccess": True},
            {"id": ids["write"], "key": "write", "name": "Write", "cimdAccess": False},
        ],
    }  # fmt: skip
    assert [event.reason for event in told] == ["APICreated", "APIUpdated", "APIUpdated"]
    writes = [entry.path.rpartition("/")[2] for entry in here.fake.journal.writes()]
    assert writes == ["apis", "permissions", "cimd-access"]


async def test_a_second_pass_sends_nothing(here: Scene) -> None:
    """The shared list tells everything."""
    await settled(here, permissions=[WRITE, READ], cimdAccess=True)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        here.fake.journal.clear()
        await walk(Key(NAMESPACE, NAME))
        assert [line.split("?")[0] for line in here.fake.journal.lines()] == ["GET /api/apis"]
        assert await here.second_pass(walk, NAME) == []


async def test_an_api_is_adopted_by_its_audience_whatever_slashes_end_it(here: Scene) -> None:
    """The server takes them away; foreign permissions go, ids of those that stay are kept."""
    there = Api("theirs", AUDIENCE, 0, [Permission("read", "R", ""), Permission("foreign", "F", "")])
    here.fake.store.apis[there.id] = there
    kept = there.permissions[0].id
    told: list[Event] = []
    await here.make(KIND, NAME, resource=AUDIENCE + "//", permissions=[READ])
    assert isinstance(await here.settle(NAME, told), Done)
    api = only(here)
    assert (api.id, api.name, permissions(api)) == (there.id, NAME, {"read": ("Read", "See bills", False)})
    assert api.permissions[0].id == kept
    assert (await status(here))["resource"] == AUDIENCE
    assert [event.reason for event in told] == ["APIAdopted", "APIUpdated", "APIUpdated"]


@pytest.mark.case("PIDX3")
async def test_an_api_whose_answer_was_lost_is_found_by_its_audience(here: Scene) -> None:
    """Committed, then the connection breaks: no second one, no endless 409."""
    here.fake.faults.add("drop_after", method="POST", path="/api/apis")
    await here.make(KIND, NAME, resource=AUDIENCE + "/")
    async with here.world() as world:
        walk = Walk(ROOM, world)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Failed)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Done)
    assert (await status(here))["apiID"] == only(here).id


async def test_foreign_permissions_and_a_switch_set_by_hand_are_undone(here: Scene) -> None:
    """The resource is the sole owner of its permissions; an absent cimdAccess is nobody's."""
    api = await settled(here, permissions=[READ])
    api.permissions.append(Permission("foreign", "F", ""))
    api.cimd = True
    assert isinstance(await here.settle(NAME), Done)
    assert (set(permissions(api)), api.cimd) == ({"read"}, True)
    await here.edit(KIND, NAME, cimdAccess=False)
    await here.settle(NAME)
    assert api.cimd is False


async def test_the_grants_of_a_permission_go_with_it_and_others_stay(here: Scene) -> None:
    """Kept keys keep their ids, so what clients hold of them is untouched."""
    api = await settled(here, permissions=[READ, WRITE])
    ids = {item.key: item.id for item in api.permissions}
    here.fake.store.clients["app"] = Client("app", {"isPublic": False})
    here.fake.store.grants[api.id, "app"] = Grant(client=True, client_permissions=set(ids.values()))
    await here.edit(KIND, NAME, permissions=[READ | {"name": "See"}])
    await here.settle(NAME)
    assert here.fake.store.grants[api.id, "app"].client_permissions == {ids["read"]}
    assert permissions(api) == {"read": ("See", "See bills", False)}


async def test_what_only_the_server_refuses_is_told_with_its_limit(here: Scene) -> None:
    """Nothing is sent, the message stays the same, another look comes in minutes."""
    await here.make(KIND, NAME, resource=AUDIENCE, permissions=[{"key": "k", "name": "n" * 51}])
    text = "spec.permissions[0].name: Pocket-ID admits at most 50 characters, this has 51: the server will refuse it"
    assert await here.settle(NAME) == Waiting("ReconcileError", text, after=300.0)
    assert here.fake.journal.writes() == []
    assert message(await here.stored(KIND, NAME)) == text


async def test_the_issuer_as_audience_is_refused_by_the_server_and_told(here: Scene) -> None:
    """The field and its code are named."""
    await here.make(KIND, NAME, resource=here.url)
    outcome = await here.settle(NAME)
    assert isinstance(outcome, Waiting)
    assert (outcome.reason, outcome.after) == ("APIClientError", 300.0)
    assert "resource (reserved)" in outcome.message


async def test_two_resources_never_write_one_api(here: Scene) -> None:
    """The one that has it keeps it."""
    api = await settled(here, permissions=[READ])
    await here.make(KIND, "other", resource=AUDIENCE + "/")
    await here.settle("other")
    assert ready(await here.stored(KIND, "other")) == "False/Conflict"
    assert set(permissions(api)) == {"read"}


async def test_an_api_deleted_elsewhere_is_made_again(here: Scene) -> None:
    """With its permissions."""
    before = await settled(here, permissions=[READ])
    here.fake.store.delete_api(before.id)
    told: list[Event] = []
    assert isinstance(await here.settle(NAME, told), Done)
    assert only(here).id != before.id
    assert set(permissions(only(here))) == {"read"}
    assert "DeletedElsewhere" in [event.reason for event in told]


@pytest.mark.case("PIDF2", "PIDF1")
async def test_deletion_waits_for_clients_that_name_the_api(here: Scene) -> None:
    """A grant that is declared holds it; then the API goes with its permissions."""
    await settled(here)
    await here.make("OIDCClient", "app", apiAccess=[{"apiRef": {"name": NAME}, "delegatedAccess": True}])
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    assert stored["metadata"]["finalizers"] == [FINALIZER, CLIENT_FINALIZER]
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "True/DeletionBlocked"
    await here.edit("OIDCClient", "app", apiAccess=None)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None
    assert here.fake.store.apis == {}


@pytest.mark.case("PIDF3", "PIDF4")
@pytest.mark.parametrize("gone", ["instance", "api"])
async def test_deletion_ends_when_there_is_nothing_left_to_delete(here: Scene, gone: str) -> None:
    """No instance, or a 404."""
    api = await settled(here)
    if gone == "api":
        here.fake.store.delete_api(api.id)
    else:
        await here.delete("Instance", "main")
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None


async def test_every_crash_point_ends_in_the_same_api(tmp_path: Path) -> None:
    """Killed after any write: one API, its permissions, its switch, the same status."""
    counter = itertools.count()

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with scene(tmp_path / str(next(counter)), ROOM) as made:
            await made.make(KIND, NAME, resource=AUDIENCE, permissions=[READ | {"cimdAccess": True}], cimdAccess=True)
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        api = only(here)
        return api.name, api.resource, api.cimd, permissions(api), ready(await here.stored(KIND, NAME))

    assert await every_crash_point(fresh, drive, state) == 6
