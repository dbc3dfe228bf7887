"""A client whose making was not answered, or cut short, and whose status knows nothing of it: what can only be ours goes, what may be ours is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes

from moorage.core.meta import JsonObject, Key
from moorage.kube.errors import NotFound
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .lives import anew_by
from .scene import CALLBACK, INSTANCE_KEY, KEY, Scene, fresh, scene
from .test_adoption import there
from .test_other_instances import place
from .test_powers import MODES, TENANT, asks, looked, said

pytestmark = pytest.mark.case("PIDX3")


async def unanswered(here: Scene, key: Key = TENANT, **spec: Any) -> None:
    """A client is asked for; the server makes it, and the connection breaks before it answers."""
    here.fake.faults.add("drop_after", method="POST", path="/api/oidc/clients", times=1)
    await place(here, key.namespace, KIND, key.name, {"callbackUrls": [CALLBACK], **spec})
    await here.once(key)
    assert len(here.fake.store.clients) == 1
    here.fake.journal.clear()


async def deleted(here: Scene, key: Key = TENANT) -> None:
    """A person deletes it, and it goes."""
    await here.client.delete(KIND.resource, key)
    await here.settle(key)
    with pytest.raises(NotFound):
        await here.client.get(KIND.resource, key)


def told(here: Scene, reason: str) -> list[str]:
    """Messages of the events of that reason."""
    return [event.message for event in here.told if event.reason == reason]


@pytest.mark.parametrize("spec", MODES.values(), ids=list(MODES))
async def test_a_client_whose_making_was_not_answered_is_deleted_with_the_resource(
    admitting: Scene, spec: JsonObject
) -> None:
    """And the next resource of that name is not locked out by what it left."""
    await unanswered(admitting, **spec)
    await deleted(admitting)
    assert admitting.fake.store.clients == {}
    assert [item.method for item in admitting.fake.journal] == ["GET", "DELETE"]
    assert said(await asks(admitting, **spec)) == "True/Reconciled"


async def test_it_stays_where_the_deletion_policy_says_so(admitting: Scene) -> None:
    await unanswered(admitting, deletionPolicy="Retain")
    await deleted(admitting)
    assert len(admitting.fake.store.clients) == 1
    assert admitting.fake.journal.lines() == []


@pytest.mark.parametrize("spec", [{}, {"clientID": "wiki-app"}], ids=["drawn", "declared"])
async def test_what_may_be_ours_or_anybodys_stays_and_is_told(admitting: Scene, spec: JsonObject) -> None:
    """In a namespace that the instance trusts nothing tells who made it."""
    await unanswered(admitting, KEY, **spec)
    await deleted(admitting, KEY)
    (id,) = admitting.fake.store.clients
    (message,) = told(admitting, "ClientOrphaned")
    assert f"client {id} may be there" in message


async def test_nothing_is_told_where_nothing_was_made(admitting: Scene) -> None:
    admitting.fake.faults.add("status", method="POST", path="/api/oidc/clients", status=503, times=1)
    for key in (KEY, TENANT):
        await place(admitting, key.namespace, KIND, key.name, {"callbackUrls": [CALLBACK]})
        await admitting.once(key)
        await deleted(admitting, key)
    assert told(admitting, "ClientOrphaned") == []


async def test_a_client_of_others_with_the_declared_id_stays(admitting: Scene) -> None:
    there(admitting, "grafana")
    assert said(await asks(admitting, clientID="grafana")) == "False/NotPermitted"
    await deleted(admitting)
    assert list(admitting.fake.store.clients) == ["grafana"]
    assert told(admitting, "ClientOrphaned") == []


@pytest.mark.parametrize("spec", MODES.values(), ids=list(MODES))
async def test_a_client_that_another_resource_has_by_now_stays(admitting: Scene, spec: JsonObject) -> None:
    """Made for this one, and not answered; then adopted by one that may, under the very id: it is that one's."""
    await unanswered(admitting, **spec)
    (id,) = admitting.fake.store.clients
    await admitting.make("heir", clientID=id)
    heir = Key(KEY.namespace, "heir")
    await admitting.settle(heir)
    assert (await admitting.ready("heir"))[0] == "True/Reconciled"
    await deleted(admitting)
    assert list(admitting.fake.store.clients) == [id]
    await admitting.proven("heir-oidc-credentials")


async def test_a_deletion_that_the_server_refuses_says_where_and_the_way_out(admitting: Scene) -> None:
    """The key is no administrator's any more."""
    await unanswered(admitting)
    admitting.fake.faults.add("status", method="GET", path="/api/oidc/clients", status=403, code="forbidden", times=-1)
    await admitting.client.delete(KIND.resource, TENANT)
    await admitting.settle(TENANT)
    (ready,) = (await admitting.client.get(KIND.resource, TENANT))["status"]["conditions"]
    assert "PocketIDInstance apps/pocketid: GET /api/oidc/clients: Pocket-ID answered 403" in ready["message"]
    assert "set deletionPolicy to Retain to leave the client in Pocket-ID" in ready["message"]
    await admitting.client.patch(KIND.resource, TENANT, {"spec": {"deletionPolicy": "Retain"}})
    await admitting.settle(TENANT)
    assert not await admitting.is_there(TENANT)


async def test_a_deletion_waits_for_a_server_that_may_hold_it(admitting: Scene) -> None:
    """It was asked to make a client; when it answers again that one is found."""
    await unanswered(admitting)
    admitting.fake.faults.add("status", status=503, times=-1)
    await admitting.client.delete(KIND.resource, TENANT)
    await admitting.settle(TENANT)
    assert said(await looked(admitting)) == "False/APIClientError"
    admitting.fake.faults.clear()
    await admitting.settle(TENANT)
    assert admitting.fake.store.clients == {}


async def test_one_that_never_came_to_a_server_is_let_go_without_asking_it(admitting: Scene) -> None:
    gone = {"external": {"url": admitting.url, "apiKeySecretRef": {"name": "absent", "key": "token"}}}
    await admitting.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": gone})
    await admitting.attach()
    assert said(await asks(admitting)).startswith("False/")
    admitting.fake.journal.clear()
    await deleted(admitting)
    assert admitting.fake.journal.lines() == []


async def test_a_complete_status_costs_no_look(admitting: Scene) -> None:
    await asks(admitting)
    admitting.fake.journal.clear()
    await deleted(admitting)
    assert [item.method for item in admitting.fake.journal] == ["DELETE"]


@pytest.mark.parametrize("spec", [MODES["kept"], {**MODES["kept"], "clientID": "wiki-app"}], ids=["drawn", "declared"])
async def test_every_crash_point_of_a_first_pass_that_a_deletion_follows_leaves_nothing(
    tmp_path: Path, spec: JsonObject
) -> None:
    """Killed after each write of the making, then deleted."""
    for allowed in range(9):
        async with scene(tmp_path / str(allowed)) as here:
            await here.make(**spec)
            fence = Fence(allowed)
            await here.dies(fence)
            await here.client.delete(KIND.resource, KEY)
            await here.settle()
            assert here.fake.store.clients == {}, f"killed after write {allowed}"
            if not fence.killed.is_set():
                return
    raise AssertionError("the making has no end")


@pytest.mark.timeout(900)
async def test_every_crash_point_of_such_a_deletion_heals(tmp_path: Path) -> None:
    async def begun(here: Scene) -> None:
        await unanswered(here, KEY, **MODES["kept"])
        await here.client.delete(KIND.resource, KEY)

    async def drive(here: Scene, fence: Fence) -> None:
        if await here.stored() is not None:
            async with here.world(fence) as world:
                await fresh(here, world)
                await passes(ROOM, world, KEY)

    async def state(here: Scene) -> Any:
        return await here.stored(), list(here.fake.store.clients)

    assert await every_crash_point(anew_by(tmp_path, begun), drive, state) >= 2
