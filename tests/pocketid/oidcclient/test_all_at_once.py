"""A namespace, or a folder of files, is deleted all at once: what is at the server goes, then the API key and the instance; it always ends.

Source: ADR 0018; spec/pocketid.md 3.13. The rooms of instance, client and group are walked, with real finalizers of the embedded API server.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, cached_world, every_crash_point, passes
from tests.fakes.pocketid import Fake, serving

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube.errors import NotFound
from moorage.kube.resources import NAMESPACES, SECRETS
from moorage.pocketid.instance.room import ROOM as INSTANCE_ROOM
from moorage.pocketid.instance.types import KEY_FINALIZER
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.pocketid.references import LEAVE
from moorage.pocketid.usergroup.room import ROOM as GROUP_ROOM
from moorage.pocketid.usergroup.types import KIND as USER_GROUP

from .hours import running
from .scene import INSTANCE_KEY, KEY, NAMESPACE, Scene, fresh, resource, scene

API_KEY = Key(NAMESPACE, "pocketid-key")
STAFF = Key(NAMESPACE, "staff")
ORDER = ((INSTANCE_ROOM, INSTANCE_KEY), (GROUP_ROOM, STAFF), (ROOM, KEY))
FOLDER = ((SECRETS, API_KEY), (INSTANCE.resource, INSTANCE_KEY), (USER_GROUP.resource, STAFF), (KIND.resource, KEY))
"""In the order in which kubectl deletes a folder."""


async def drive(here: Scene, fence: Fence | None = None) -> None:
    """What a process that just started makes of all of it, until nothing changes."""
    async with cached_world(here.client, [room for room, _ in ORDER], fence or Fence()) as world:
        world.clock = here.now
        for _ in range(8):
            await fresh(here, world)
            before = world.client.writes
            for room, key in ORDER:
                await passes(room, world, key, told=here.told)
            if world.client.writes == before:
                return
    raise AssertionError("no end")


async def furnished(here: Scene) -> tuple[str, str]:
    """A client and a group at the server; id and secret of the client."""
    await here.client.create(USER_GROUP.resource, resource(USER_GROUP, "staff", {}))
    await here.make(allowedUserGroups=[{"name": "staff"}])
    await drive(here)
    found = await here.credentials()
    assert await here.login(found["client_id"], found["client_secret"]) == 200
    return found["client_id"], found["client_secret"]


async def folder_deleted(here: Scene) -> None:
    """As kubectl deletes a folder of files: one object after the other, without waiting."""
    for rt, key in FOLDER:
        await here.client.delete(rt, key)


async def namespace_deleted(here: Scene) -> None:
    """The namespace, until its deletion reached everything."""
    await here.client.delete(NAMESPACES, Key("", NAMESPACE))
    async with asyncio.timeout(60):
        while not all([await _leaves(here, rt, key) for rt, key in FOLDER]):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def _leaves(here: Scene, rt: ResourceType, key: Key) -> bool:
    found = await _stored(here, rt, key)
    return found is None or bool(found["metadata"].get("deletionTimestamp"))


async def _stored(here: Scene, rt: ResourceType, key: Key) -> JsonObject | None:
    try:
        return await here.client.get(rt, key)
    except NotFound:
        return None


async def left(here: Scene) -> list[str]:
    """What of the folder is there."""
    return [key.name for rt, key in FOLDER if await _stored(here, rt, key) is not None]


DELETED = pytest.mark.parametrize("deleted", [folder_deleted, namespace_deleted], ids=lambda step: step.__name__)


@DELETED
async def test_what_is_at_the_server_goes_before_the_key_and_the_instance(here: Scene, deleted: Any) -> None:
    """The client's secret logs in no more, nothing is left at the server, and nothing in the namespace is held."""
    id, secret = await furnished(here)
    await deleted(here)
    assert await left(here) == ["pocketid-key", "pocketid", "staff", "wiki"]
    await drive(here)
    assert await left(here) == []
    assert (here.fake.store.clients, here.fake.store.groups) == ({}, {})
    assert await here.login(id, secret) == 401
    assert not {"ClientOrphaned", "ObjectsLeft"} & {event.reason for event in here.told}


@DELETED
@pytest.mark.timeout(900)
async def test_every_crash_point_heals(tmp_path: Path, deleted: Any) -> None:
    """Killed after any write: the next start ends with nothing left, here and at the server."""
    numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        async with scene(tmp_path / str(next(numbers))) as here:
            await furnished(here)
            await deleted(here)
            yield here

    async def state(here: Scene) -> Any:
        return await left(here), here.fake.store.clients, here.fake.store.groups

    assert await every_crash_point(anew, drive, state) >= 6


async def test_running_controllers_wake_each_other_to_the_end(here: Scene) -> None:
    """Nothing waits for a resync."""
    async with running(here, (INSTANCE_ROOM, ROOM)) as hours:
        await here.make()
        await hours.run(5)
        assert len(here.fake.store.clients) == 1
        for rt, key in FOLDER:
            with contextlib.suppress(NotFound):
                await here.client.delete(rt, key)
        await hours.run(10)
    assert await left(here) == []
    assert here.fake.store.clients == {}


async def test_a_server_that_is_down_holds_a_deletion_ten_minutes(here: Scene) -> None:
    """Then the instance goes, what is left there is told, and everything ends."""
    await furnished(here)
    here.fake.faults.add("status", method="DELETE", status=503, times=-1)
    await folder_deleted(here)
    await drive(here)
    found = await _stored(here, INSTANCE.resource, INSTANCE_KEY)
    assert found is not None
    (said,) = found["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("True", "DeletionBlocked")
    assert f"PocketIDOIDCClient {KEY}" in said["message"]
    assert LEAVE in said["message"]
    here.later(minutes=10)
    await drive(here)
    await drive(here)
    assert await left(here) == []
    assert len(here.fake.store.clients) == 1
    assert {"ClientOrphaned", "ObjectsLeft"} <= {event.reason for event in here.told}


async def test_an_annotation_ends_the_wait(here: Scene) -> None:
    await furnished(here)
    here.fake.faults.add("status", method="DELETE", status=503, times=-1)
    await folder_deleted(here)
    await drive(here)
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"annotations": {LEAVE: "true"}}})
    await drive(here)
    await drive(here)
    assert await left(here) == []


async def test_with_the_annotation_nothing_is_deleted_at_the_server_whatever_goes_first(here: Scene) -> None:
    """Client and group are deleted while the instance is still there: both stay at the server, and the client's secret works."""
    id, secret = await furnished(here)
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"annotations": {LEAVE: "true"}}})
    await here.client.delete(USER_GROUP.resource, STAFF)
    await here.client.delete(KIND.resource, KEY)
    await drive(here)
    await drive(here)
    assert sorted(await left(here)) == ["pocketid", "pocketid-key"]
    assert list(here.fake.store.clients) == [id]
    assert [group.name for group in here.fake.store.groups.values()] == ["staff"]
    assert await here.login(id, secret) == 200
    assert {"ClientRetained", "Retained"} <= {event.reason for event in here.told}


async def test_an_instance_that_is_deleted_alone_goes_after_a_moment_and_takes_nothing_along(here: Scene) -> None:
    """Its clients stay, and are as they were with the next instance of its name."""
    id, secret = await furnished(here)
    await here.client.delete(INSTANCE.resource, INSTANCE_KEY)
    await drive(here)
    assert (await here.ready())[0] == "False/InstanceNotReady"
    assert len(await left(here)) == 4
    here.later(seconds=30)
    await drive(here)
    assert await left(here) == ["pocketid-key", "staff", "wiki"]
    found = await _stored(here, SECRETS, API_KEY)
    assert found is not None
    assert KEY_FINALIZER not in (found["metadata"].get("finalizers") or ())
    await here.instance()
    await drive(here)
    assert (await here.ready())[0] == "True/Reconciled"
    assert (await here.credentials())["client_secret"] == secret
    assert await here.login(id, secret) == 200


async def test_clients_of_an_instance_that_is_deleted_move_to_another_that_is_meant(here: Scene) -> None:
    """Nothing is left at the old server, and the new one has the client."""
    await here.make()
    await drive(here)
    async with serving(Fake()) as url:
        await here.instance("new", url)
        await here.attach(Key(NAMESPACE, "new"))
        await drive(here)
        assert (await here.status())["instance"]["name"] == "pocketid"
        await here.client.delete(INSTANCE.resource, INSTANCE_KEY)
        await drive(here)
        await drive(here)
        assert (await here.status())["instance"]["name"] == "new"
        assert here.fake.store.clients == {}
        assert await _stored(here, INSTANCE.resource, INSTANCE_KEY) is None


async def test_a_key_that_is_deleted_alone_goes_after_a_moment(here: Scene) -> None:
    """Until then it works; a person who replaces it waits no longer than that."""
    await furnished(here)
    await here.client.delete(SECRETS, API_KEY)
    await drive(here)
    assert (await here.ready())[0] == "True/Reconciled"
    here.later(seconds=30)
    await drive(here)
    assert await _stored(here, SECRETS, API_KEY) is None


async def test_a_key_is_held_only_while_an_instance_names_it(here: Scene) -> None:
    """Two instances share it; then each gets another one."""
    await here.secret("other-key", token=here.fake.api_key)
    await here.instance("second", "http://127.0.0.1:1")
    second = Key(NAMESPACE, "second")
    await here.attach(second)
    other = {"spec": {"external": {"apiKeySecretRef": {"name": "other-key"}}}}
    for key, held in ((INSTANCE_KEY, True), (second, False)):
        await here.client.patch(INSTANCE.resource, key, other)
        await here.attach(key)
        found = await _stored(here, SECRETS, API_KEY)
        assert found is not None
        assert (KEY_FINALIZER in (found["metadata"].get("finalizers") or ())) is held
