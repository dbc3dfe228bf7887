"""A client on its way from one instance to another: whatever becomes of the move, nothing that was made is forgotten, and the stored secret works."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Client

from moorage.core.meta import Key
from moorage.kube.errors import NotFound
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .scene import KEY, NAMESPACE, SECRET, Scene, fresh, scene
from .test_adoption import SETTINGS

pytestmark = [pytest.mark.case("PIDX14"), pytest.mark.timeout(900)]
NAMES = ("pocketid", "second", "third")


@dataclass
class Sea:
    """Three servers; the client is at home at the first."""

    here: Scene
    fakes: dict[str, Fake]

    async def move(self, to: str, **spec: Any) -> None:
        """A person selects another instance."""
        await self.here.edit(instanceSelector={"matchLabels": {"at": to}}, **spec)
        await self.here.settle()

    def clients(self) -> list[int]:
        """How many clients each server has."""
        return [len(self.fakes[name].store.clients) for name in NAMES]

    async def works(self) -> str:
        """Where the stored secret logs in."""
        found = await self.here.credentials()
        return next(
            (name for name in NAMES if self.fakes[name].authenticates(found["client_id"], found["client_secret"])), ""
        )

    def hold_up(self, name: str) -> None:
        """The server of that name makes no secret until `let_go`, so that a move to it does not come to its end."""
        self.fakes[name].faults.add("status", method="POST", path="*/secrets", status=400, times=-1)

    def let_go(self) -> None:
        """Nothing holds anything up any more."""
        for fake in self.fakes.values():
            fake.faults.clear()


@contextlib.asynccontextmanager
async def sea(folder: Path, **spec: Any) -> AsyncIterator[Sea]:
    """The client is settled at its first home."""
    async with contextlib.AsyncExitStack() as stack:
        here = await stack.enter_async_context(scene(folder))
        fakes = {"pocketid": here.fake}
        for name in NAMES[1:]:
            fakes[name] = Fake(api_key=here.fake.api_key)
            fakes[name].clock.offset = here.fake.clock.offset
            await here.instance(name, await stack.enter_async_context(serving(fakes[name])))
        for name in NAMES:
            await here.client.patch(INSTANCE.resource, Key(NAMESPACE, name), {"metadata": {"labels": {"at": name}}})
            await here.attach(Key(NAMESPACE, name))
        await here.make(instanceSelector={"matchLabels": {"at": "pocketid"}}, **spec)
        await here.settle()
        yield Sea(here, fakes)


@pytest.fixture
async def at_sea(tmp_path: Path) -> AsyncIterator[Sea]:
    async with sea(tmp_path) as made:
        yield made


async def test_a_move_that_is_held_up_says_where_else_a_client_is(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    status = await at_sea.here.status()
    assert at_sea.clients() == [1, 1, 0]
    assert status["instance"]["name"] == "pocketid"
    (way,) = status["moving"]
    assert (way["instance"]["name"], way["clientID"]) == ("second", *at_sea.fakes["second"].store.clients)
    assert await at_sea.works() == "pocketid"
    at_sea.let_go()
    await at_sea.here.settle()
    assert at_sea.clients() == [0, 1, 0]
    assert await at_sea.works() == "second"
    assert "moving" not in await at_sea.here.status()


async def test_a_move_that_goes_on_elsewhere_leaves_all_former_instances(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    at_sea.hold_up("third")
    await at_sea.move("third")
    assert at_sea.clients() == [1, 1, 1]
    at_sea.let_go()
    await at_sea.here.settle()
    assert at_sea.clients() == [0, 0, 1]
    assert await at_sea.works() == "third"


@pytest.mark.parametrize("spec", [{}, {"secret": {"storeClientSecret": False}}], ids=["own", "kept"])
async def test_a_move_back_leaves_what_was_made_on_the_way(tmp_path: Path, spec: dict[str, Any]) -> None:
    async with sea(tmp_path, **spec) as at_sea:
        at_sea.hold_up("second")
        await at_sea.move("second")
        at_sea.let_go()
        await at_sea.move("pocketid")
        assert at_sea.clients() == [1, 0, 0]
        assert await at_sea.works() == "pocketid"
        assert (await at_sea.here.ready())[0] == "True/Reconciled"


async def test_a_move_back_after_the_secret_was_stored_has_one_that_works_at_home(at_sea: Sea) -> None:
    """The Secret held the secret of the other instance for a while: the one at home is made anew."""
    at_sea.fakes["pocketid"].faults.add("status", method="DELETE", path="*/oidc/clients/*", status=503, times=-1)
    await at_sea.move("second")
    assert await at_sea.works() == "second"
    at_sea.let_go()
    await at_sea.move("pocketid")
    assert at_sea.clients() == [1, 0, 0]
    assert await at_sea.works() == "pocketid"
    assert len(at_sea.fakes["pocketid"].store.clients.popitem()[1].secrets) == 1


async def test_a_declared_secret_that_moves_is_pushed_once_at_each_instance(tmp_path: Path) -> None:
    async with sea(tmp_path) as at_sea:
        await at_sea.here.secret("source", value="prod-secret-value-0004")
        await at_sea.here.edit(clientSecretRef={"name": "source", "key": "value"})
        await at_sea.here.settle()
        at_sea.fakes["pocketid"].faults.add("status", method="DELETE", path="*/oidc/clients/*", status=503, times=-1)
        for name in ("second", "pocketid", "second"):
            await at_sea.move(name)
            assert await at_sea.here.settle() is not None
        at_sea.let_go()
        await at_sea.here.settle()
        (made,) = at_sea.fakes["second"].store.clients.values()
        assert (at_sea.clients(), len(made.secrets), await at_sea.works()) == ([0, 1, 0], 1, "second")


async def test_a_client_that_is_deleted_on_its_way_goes_everywhere(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    await at_sea.here.client.delete(KIND.resource, KEY)
    await at_sea.here.settle()
    assert at_sea.clients() == [0, 0, 0]
    assert await at_sea.here.stored() is None


async def test_what_only_hangs_on_a_client_holds_up_no_move(at_sea: Sea) -> None:
    """An API that is not there yet: who may log in, and how, is right, so nothing stays behind."""
    await at_sea.move("second", apiAccess=[{"apiRef": {"name": "absent"}, "clientPermissions": ["read"]}])
    assert at_sea.clients() == [0, 1, 0]
    assert (await at_sea.here.ready())[0] == "False/APIAccessReconcileError"
    assert (await at_sea.here.status())["instance"]["name"] == "second"


async def test_nobody_takes_a_client_on_its_way_by_its_name_even_after_a_restart(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    await at_sea.here.make("thief", name="wiki", instanceSelector={"matchLabels": {"at": "second"}})
    await at_sea.here.settle(Key(NAMESPACE, "thief"))
    assert (await at_sea.here.ready("thief"))[0] == "False/Conflict"
    at_sea.let_go()
    await at_sea.here.settle()
    assert at_sea.clients() == [0, 1, 0]
    assert await at_sea.works() == "second"
    assert (await at_sea.here.ready())[0] == "True/Reconciled"


async def test_a_client_of_others_that_has_the_declared_id_is_not_deleted_for_a_move_that_ended_elsewhere(
    tmp_path: Path,
) -> None:
    """It was announced and never ours."""
    async with sea(tmp_path, clientID="wiki-app") as at_sea:
        at_sea.fakes["second"].faults.add("status", method="POST", path="*/oidc/clients", status=400, times=-1)
        await at_sea.move("second")
        at_sea.let_go()
        at_sea.fakes["second"].store.clients["wiki-app"] = Client("wiki-app", {**SETTINGS})
        await at_sea.move("pocketid")
        assert at_sea.clients() == [1, 1, 0]
        assert "wiki-app" in next(event.message for event in at_sea.here.told if event.reason == "ClientOrphaned")


@pytest.mark.parametrize("back", [False, True])
async def test_a_client_whose_first_secret_alone_is_stored_moves_under_its_declared_id(
    tmp_path: Path, back: bool
) -> None:
    """It is new there. A way that leads back locks nobody out: the value from there is of no use, so there is one of home again; what was pasted by hand stays."""
    async with sea(tmp_path, clientID="wiki-app", secret={"storeClientSecret": False}) as at_sea:
        pasted = "pasted-by-a-person-012345"
        at_sea.here.fake.place_legacy_secret("wiki-app", pasted)
        at_sea.here.server("wiki-app").secrets[-1].prefix = pasted[:4]
        at_sea.fakes["pocketid"].faults.add("status", method="DELETE", path="*/oidc/clients/*", status=503, times=-1)
        await at_sea.move("second")
        assert await at_sea.works() == "second"
        assert "initialSecretPending" not in await at_sea.here.status()
        at_sea.let_go()
        if back:
            await at_sea.move("pocketid")
            assert at_sea.clients() == [1, 0, 0]
            assert at_sea.fakes["pocketid"].authenticates("wiki-app", pasted)
            assert await at_sea.works() == "pocketid"
        else:
            await at_sea.here.settle()
            assert (at_sea.clients(), await at_sea.works()) == ([0, 1, 0], "second")
        assert (await at_sea.here.ready())[0] == "True/Reconciled"


@pytest.mark.parametrize("spec", [{}, {"secret": {"storeClientSecret": False}}], ids=["own", "kept"])
async def test_a_declared_client_that_was_made_on_the_way_unanswered_is_left_like_any_other(
    tmp_path: Path, spec: dict[str, Any]
) -> None:
    """The status has no id of it; the name that it was made under tells that it is ours."""
    async with sea(tmp_path, clientID="wiki-app", **spec) as at_sea:
        at_sea.fakes["second"].faults.add("drop_after", method="POST", path="*/oidc/clients", times=1)
        await at_sea.here.edit(instanceSelector={"matchLabels": {"at": "second"}})
        for _ in range(2):
            await at_sea.here.once()
        assert at_sea.clients() == [1, 1, 0]
        at_sea.fakes["second"].journal.clear()
        await at_sea.move("third")
        assert at_sea.clients() == [0, 0, 1]
        assert await at_sea.works() == "third"
        assert [line.split()[0] for line in at_sea.fakes["second"].journal.lines()] == ["GET", "DELETE"]
        assert not [event for event in at_sea.here.told if event.reason == "ClientOrphaned"]


async def test_a_place_that_does_not_say_what_is_there_holds_up_the_end_of_a_move_and_is_not_forgotten(
    tmp_path: Path,
) -> None:
    async with sea(tmp_path, clientID="wiki-app") as at_sea:
        second = at_sea.fakes["second"]
        second.faults.add("drop_after", method="POST", path="*/oidc/clients", times=1)
        await at_sea.here.edit(instanceSelector={"matchLabels": {"at": "second"}})
        for _ in range(2):
            await at_sea.here.once()
        second.faults.add("status", status=503, times=-1)
        await at_sea.move("third")
        assert (await at_sea.here.ready())[0] == "False/APIClientError"
        assert await at_sea.works() == "third"
        assert [way["instance"]["name"] for way in (await at_sea.here.status())["moving"]] == ["second"]
        at_sea.let_go()
        await at_sea.here.settle()
        assert at_sea.clients() == [0, 0, 1]
        assert (await at_sea.here.ready())[0] == "True/Reconciled"


@pytest.mark.parametrize("kept", [False, True], ids=["own", "kept"])
async def test_a_move_to_another_address_of_the_same_server_keeps_the_one_client(tmp_path: Path, kept: bool) -> None:
    """Nothing says that both are one but the ids of its secrets, which the server drew: one look at the former place tells."""
    spec = {"secret": {"storeClientSecret": False}} if kept else {}
    async with sea(tmp_path, clientID="wiki-app", **spec) as at_sea:
        here = at_sea.here
        await here.instance("alias", here.url.replace("127.0.0.1", "localhost"))
        await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "alias"), {"metadata": {"labels": {"at": "alias"}}})
        await here.attach(Key(NAMESPACE, "alias"))
        before = await here.proven()
        here.fake.journal.clear()
        await at_sea.move("alias")
        assert at_sea.clients() == [1, 0, 0]
        assert await here.proven() == before
        assert (await here.ready())[0] == "True/Reconciled"
        assert (await here.status())["instance"]["name"] == "alias"
        assert [item for item in here.writes() if item.startswith("DELETE")] == []
        here.fake.journal.clear()
        await here.once()
        assert here.writes() == []


async def test_an_instance_that_is_deleted_waits_for_what_was_begun_there(at_sea: Sea) -> None:
    """As it does for those that are at home there: else what a move began would stay at its server."""
    second = Key(NAMESPACE, "second")
    at_sea.hold_up("second")
    await at_sea.move("second")
    await at_sea.here.client.delete(KIND.resource, KEY)
    await at_sea.here.client.delete(INSTANCE.resource, second)
    at_sea.here.later(minutes=1)
    await at_sea.here.attach(second)
    assert await at_sea.here.client.get(INSTANCE.resource, second)
    await at_sea.here.settle()
    await at_sea.here.attach(second)
    assert at_sea.clients() == [0, 0, 0]
    with pytest.raises(NotFound):
        await at_sea.here.client.get(INSTANCE.resource, second)


async def test_an_instance_that_is_gone_holds_up_nothing_and_is_told(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    second = Key(NAMESPACE, "second")
    await at_sea.here.client.delete(INSTANCE.resource, second)
    at_sea.here.later(minutes=1)
    await at_sea.here.attach(second)
    with pytest.raises(NotFound):
        await at_sea.here.client.get(INSTANCE.resource, second)
    await at_sea.move("third")
    assert at_sea.clients() == [0, 1, 1]
    (told,) = [event for event in at_sea.here.told if event.reason == "ClientOrphaned"]
    assert next(iter(at_sea.fakes["second"].store.clients)) in told.message


# --- crash points


async def _moves(at_sea: Sea) -> None:
    await at_sea.here.edit(instanceSelector={"matchLabels": {"at": "second"}})


async def _moves_on(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    at_sea.let_go()
    await at_sea.here.edit(instanceSelector={"matchLabels": {"at": "third"}})


async def _moves_back(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    at_sea.let_go()
    await at_sea.here.edit(instanceSelector={"matchLabels": {"at": "pocketid"}})


async def _is_deleted(at_sea: Sea) -> None:
    at_sea.hold_up("second")
    await at_sea.move("second")
    at_sea.let_go()
    await at_sea.here.client.delete(KIND.resource, KEY)


@pytest.mark.parametrize("step", [_moves_on, _moves_back, _is_deleted], ids=lambda step: step.__name__.strip("_"))
async def test_every_crash_point_of_a_way_that_ends_elsewhere_heals(
    tmp_path: Path, step: Callable[[Sea], Awaitable[None]]
) -> None:
    assert await every_crash_point(_anew(tmp_path, step), _drive, _state) >= 2


@pytest.mark.parametrize("spec", [{}, {"clientID": "wiki-app"}], ids=["drawn", "declared"])
async def test_every_crash_point_of_a_move_of_a_client_whose_secret_is_not_stored_heals(
    tmp_path: Path, spec: dict[str, Any]
) -> None:
    """It ends: the first secret at the new instance is stored, since the client is new there."""
    kept = {"secret": {"storeClientSecret": False}, **spec}
    assert await every_crash_point(_anew(tmp_path, _moves, **kept), _drive, _state) >= 4


@pytest.mark.parametrize("kept", [False, True], ids=["own", "kept"])
async def test_a_move_that_was_cut_short_anywhere_and_goes_on_elsewhere_leaves_nothing(
    tmp_path: Path, kept: bool
) -> None:
    """The operator dies after each write of a move, and a person selects the third instance before it is back."""
    for allowed in itertools.count():
        spec = {"secret": {"storeClientSecret": False}} if kept else {}
        async with sea(tmp_path / str(allowed), **spec) as at_sea:
            await _moves(at_sea)
            fence = Fence(allowed)
            await at_sea.here.dies(fence)
            await at_sea.move("third")
            assert at_sea.clients() == [0, 0, 1], f"killed after write {allowed}"
            assert await at_sea.works() == "third"
            if not fence.killed.is_set():
                return


def _anew(
    folder: Path, step: Callable[[Sea], Awaitable[None]], **spec: Any
) -> Callable[[], contextlib.AbstractAsyncContextManager[Sea]]:
    numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Sea]:
        async with sea(folder / str(next(numbers)), **spec) as at_sea:
            await step(at_sea)
            yield at_sea

    return anew


async def _drive(at_sea: Sea, fence: Fence) -> None:
    if await at_sea.here.stored() is None:
        return
    async with at_sea.here.world(fence) as world:
        await fresh(at_sea.here, world)
        await passes(ROOM, world, KEY)


async def _state(at_sea: Sea) -> Any:
    if await at_sea.here.stored() is None:
        return at_sea.clients()
    status, found = await at_sea.here.status(), await at_sea.here.credentials(SECRET)
    rows = [len(client.secrets) for fake in at_sea.fakes.values() for client in fake.store.clients.values()]
    bound = status["instance"]["name"], status["clientID"] == found["client_id"], status.get("moving")
    return at_sea.clients(), await at_sea.works(), bound, await at_sea.here.ready(), rows
