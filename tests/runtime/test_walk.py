"""The walk, on the embedded API server."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, cached_world, every_crash_point, passes

from moorage.apiserver.server import Server
from moorage.core.meta import JsonObject, Key, owner_reference, ref_of
from moorage.core.outcome import Done, Failed, Waiting
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import NotFound
from moorage.kube.resources import CONFIG_MAPS, CRDS, SECRETS
from moorage.runtime.room import Event, Report
from moorage.runtime.walk import Walk
from moorage.runtime.world import ForeignObject, World

from .conftest import find, served, until
from .widget import FINALIZER, KIND, ROOM, WIDGETS, Seen, widget

KEY = Key("default", "w")


async def created(client: Client, obj: JsonObject) -> JsonObject:
    return await client.create(WIDGETS, obj)


async def test_first_pass_writes_finalizer_child_and_one_status(client: Client) -> None:
    """API requests of a converged object are finalizer + children + 1 status."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        client.calls.clear()
        assert await Walk(ROOM, world)(KEY) == Done()
        writes = {call: count for call, count in client.calls.items() if call[0] not in ("GET", "WATCH")}
        assert writes == {("PATCH", "widgets"): 1, ("PATCH", "configmaps"): 1, ("PATCH", "widgets/status"): 1}
    stored = await client.get(WIDGETS, KEY)
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert stored["status"]["observedGeneration"] == 1
    assert stored["status"]["configMap"] == "w-child"
    assert stored["status"]["conditions"][0]["reason"] == "AllReady"


async def test_second_pass_makes_no_request_at_all(client: Client) -> None:
    """The same process reads its own writes; nothing is asked, nothing is written."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        before = client.calls.total()
        assert await walk(KEY) == Done()
        assert client.calls.total() == before


async def test_a_room_is_asked_once_more_for_an_object_that_is_gone(client: Client) -> None:
    """It drops what it remembers of it; without that, numbers of what was deleted would be shown for ever."""
    asked: list[Key] = []

    async def observe(world: World, key: Key) -> Seen | None:
        asked.append(key)
        return await ROOM.observe(world, key)

    async with cached_world(client, [ROOM]) as world:
        walk = Walk(replace(ROOM, observe=observe), world)
        before = client.calls.total()
        assert await walk(Key("default", "nobody")) == Done()
        assert (asked, client.calls.total()) == ([Key("default", "nobody")], before)


async def test_second_process_makes_no_write(client: Client) -> None:
    """A restart over an unchanged world writes nothing and tells no event again."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        await Walk(ROOM, world)(KEY)
    before, told = client.writes, list[Event]()
    async with cached_world(client, [ROOM]) as world:
        await Walk(ROOM, world, lambda _ref, event: told.append(event))(KEY)
    assert (client.writes, told) == (before, [])


async def test_an_event_is_told_once_while_it_stays_so(client: Client) -> None:
    """What the pass before told already is not told again."""
    await created(client, widget("w"))
    told: list[Event] = []
    async with cached_world(client, [ROOM]) as world:
        walk = Walk(ROOM, world, lambda _ref, event: told.append(event))
        await walk(KEY)
        await walk(KEY)
    assert [event.reason for event in told] == ["Applied"]


async def test_drift_of_a_child_is_mended(client: Client) -> None:
    """A value that somebody changed is put back; what somebody added stays."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        await client.patch(CONFIG_MAPS, Key("default", "w-child"), {"data": {"text": "no", "more": "mine"}})
        await until(lambda: "more" in world.cache.get(CONFIG_MAPS, Key("default", "w-child"))["data"])  # type: ignore[index]
        await walk(KEY)
    assert (await client.get(CONFIG_MAPS, Key("default", "w-child")))["data"] == {"text": "hello", "more": "mine"}


async def test_a_foreign_child_is_never_seized(client: Client) -> None:
    """An object of the wanted name that we do not control stops the pass with its name in the error."""
    await client.create(CONFIG_MAPS, {"metadata": {"name": "w-child", "namespace": "default"}, "data": {"text": "x"}})
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        with pytest.raises(Exception, match="ConfigMap default/w-child: it exists"):
            await Walk(ROOM, world)(KEY)
    assert (await client.get(CONFIG_MAPS, Key("default", "w-child")))["data"] == {"text": "x"}


@pytest.mark.case("B78")
async def test_foreign_finalizers_survive_ours(client: Client) -> None:
    """Only our own finalizer goes, though another controller edits the list between our look and our write."""
    await created(client, widget("w", finalizers=["other/one", "other/two"]))
    async with cached_world(client, [ROOM]) as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        await client.delete(WIDGETS, KEY)
        await until(lambda: world.cache.get(WIDGETS, KEY)["metadata"].get("deletionTimestamp"))  # type: ignore[index]
        stale = world.cache.get(WIDGETS, KEY)
        fresh = await client.get(WIDGETS, KEY)
        await client.patch(
            WIDGETS, KEY, {"metadata": {"finalizers": ["other/two", FINALIZER], "resourceVersion": _version(fresh)}}
        )
        await walk._without_finalizer(stale)  # type: ignore[arg-type]
        assert (await client.get(WIDGETS, KEY))["metadata"]["finalizers"] == ["other/two"]


def _version(obj: JsonObject) -> str:
    return str(obj["metadata"]["resourceVersion"])


@pytest.mark.case("B78")
async def test_a_terminating_object_still_gets_status_and_no_finalizer_is_added(client: Client) -> None:
    """An object that was deleted before we saw it is left without our finalizer, and says what it waits for."""
    waiting = replace(ROOM, decide=lambda seen: Waiting("Asked", after=1))
    await created(client, widget("w", finalizers=["other/one"]))
    await client.delete(WIDGETS, KEY)
    async with cached_world(client, [waiting]) as world:
        await Walk(waiting, world)(KEY)
    stored = await client.get(WIDGETS, KEY)
    assert stored["metadata"]["finalizers"] == ["other/one"]
    assert stored["status"]["conditions"][0]["reason"] == "NotYet"


@pytest.mark.case("B78")
async def test_an_object_that_vanishes_during_the_pass_is_done(client: Client) -> None:
    """404 on the status write ends the pass well; nothing is brought back."""

    async def observe(world: Any, key: Key) -> Seen | None:
        seen = await ROOM.observe(world, key)
        if seen is not None:
            await client.patch(WIDGETS, key, {"metadata": {"finalizers": None}})
            await client.delete(WIDGETS, key)
        return seen

    room = replace(ROOM, observe=observe)
    await created(client, widget("w"))
    async with cached_world(client, [room]) as world:
        assert await Walk(room, world)(KEY) == Done()
    with pytest.raises(NotFound):
        await client.get(WIDGETS, KEY)


@pytest.mark.case("B78")
async def test_status_goes_only_to_the_object_that_was_looked_at(client: Client) -> None:
    """An object of the same name that was made meanwhile does not get its predecessor's status."""

    async def observe(world: Any, key: Key) -> Seen | None:
        seen = await ROOM.observe(world, key)
        await client.patch(WIDGETS, key, {"metadata": {"finalizers": None}})
        await client.delete(WIDGETS, key)
        await client.create(WIDGETS, widget("w", "another"))
        return seen

    room = replace(ROOM, observe=observe, decide=lambda seen: Done())
    await created(client, widget("w"))
    async with cached_world(client, [room]) as world:
        with contextlib.suppress(Exception):
            await Walk(room, world)(KEY)
    assert not (await client.get(WIDGETS, KEY)).get("status")


async def test_deletion_ends(client: Client) -> None:
    """The child goes, then the finalizer, then the object; the farewell is told."""
    await created(client, widget("w"))
    told: list[Event] = []
    async with cached_world(client, [ROOM]) as world:
        walk = Walk(ROOM, world, lambda _ref, event: told.append(event))
        await walk(KEY)
        await client.delete(WIDGETS, KEY)
        await until(lambda: world.cache.get(WIDGETS, KEY)["metadata"].get("deletionTimestamp"))  # type: ignore[index]
        await walk(KEY)
    assert await find(client, WIDGETS, "w") is None
    assert await find(client, CONFIG_MAPS, "w-child") is None
    assert told[-1].reason == "Removed"


async def test_a_pass_without_end_fails_with_its_step_named(client: Client) -> None:
    """Rounds are bounded."""
    await created(client, widget("w", "endless"))
    async with cached_world(client, [ROOM]) as world:
        outcome = await Walk(ROOM, world)(KEY)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "TooManySteps"


async def test_a_null_in_a_report_removes_the_field_and_is_not_written_again(client: Client) -> None:
    """None means absent, at any depth."""
    room = replace(ROOM, report=lambda seen, outcome: Report((), {"configMap": None}))
    await created(client, widget("w"))
    async with cached_world(client, [room]) as world:
        await passes(room, world, KEY)
    assert "configMap" not in (await client.get(WIDGETS, KEY))["status"]


@pytest.mark.case("B77")
async def test_a_large_object_reconciles_and_annotations_hold_no_content(client: Client) -> None:
    """64 KiB of spec and a Secret pass through; no annotation and no status holds any of it."""
    text = "metadata-of-an-identity-provider " * 2000
    await created(client, widget("w", text))
    secret = {"metadata": {"name": "s", "namespace": "default"}, "stringData": {"password": "hunter2-hunter2"}}
    async with cached_world(client, [ROOM]) as world:
        await passes(ROOM, world, KEY)
        await world.ensure(SECRETS, secret)
    for rt in (WIDGETS, CONFIG_MAPS, SECRETS):
        for obj in (await client.list(rt)).items:
            noted = json.dumps(obj["metadata"].get("annotations", {})) + json.dumps(obj.get("status", {}))
            assert "identity-provider" not in noted
            assert "hunter2" not in noted
            assert len(noted) < 2000


@pytest.mark.case("B77")
async def test_a_changed_secret_value_is_applied_though_its_digest_knows_only_key_names(client: Client) -> None:
    """Contents are compared with the live object."""

    def secret(**data: str) -> JsonObject:
        return {"kind": "Secret", "metadata": {"name": "s", "namespace": "default"}, "data": data}

    room = replace(ROOM, watches=(replace(ROOM.watches[0], resource=SECRETS),))
    async with cached_world(client, [room]) as world:
        await world.ensure(SECRETS, secret(a="YQ==", b="Yg=="))
        await world.ensure(SECRETS, secret(a="Yg==", b="Yg=="))
        assert (await client.get(SECRETS, Key("default", "s")))["data"] == {"a": "Yg==", "b": "Yg=="}
        await world.ensure(SECRETS, secret(a="Yg=="))
        before = client.writes
        await world.ensure(SECRETS, secret(a="Yg=="))
        assert client.writes == before
    assert (await client.get(SECRETS, Key("default", "s")))["data"] == {"a": "Yg=="}


async def test_every_crash_point_of_attach_and_detach_heals(tmp_path: Path) -> None:
    """Killed after any write, the next start ends in the same state."""
    count = 0

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Client]:
        nonlocal count
        count += 1
        server = Server(tmp_path / str(count))
        await server.start()
        try:
            server.kubeconfig(tmp_path / f"{count}.kubeconfig")
            async with Client(load_kubeconfig(tmp_path / f"{count}.kubeconfig")) as client:
                await client.create(CRDS, KIND.crd())
                await until(lambda: served(client))
                await client.create(WIDGETS, widget("w"))
                yield client
        finally:
            await server.stop()

    async def attach_and_detach(client: Client, fence: Fence) -> None:
        async with cached_world(client, [ROOM], fence) as world:
            if world.cache.get(WIDGETS, KEY) is None:
                return
            await passes(ROOM, world, KEY)
            with contextlib.suppress(NotFound):
                await client.delete(WIDGETS, KEY)
            await until(lambda: _leaving(world.cache.get(WIDGETS, KEY)))
            await passes(ROOM, world, KEY)

    async def state(client: Client) -> Any:
        return await find(client, WIDGETS, "w"), await find(client, CONFIG_MAPS, "w-child")

    assert await every_crash_point(fresh, attach_and_detach, state) == 5


def _leaving(obj: JsonObject | None) -> bool:
    return obj is None or bool(obj["metadata"].get("deletionTimestamp"))


def deafen(world: World) -> None:
    """The world hears no events any more: a cache that lags behind."""
    for rt in (WIDGETS, CONFIG_MAPS):
        world.cache.reflector(rt)._take = lambda _event: None  # type: ignore[method-assign]


@pytest.mark.case("B78")
async def test_a_lagging_cache_keeps_foreign_finalizers_and_loses_no_status(client: Client) -> None:
    """Finalizer and status meet a conflict each, are computed again on what others wrote, and both arrive."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        deafen(world)
        await client.patch(WIDGETS, KEY, {"metadata": {"finalizers": ["other/one"]}})
        walk = Walk(ROOM, world)

        async def observe(world: World, key: Key) -> Seen | None:
            await client.patch(WIDGETS, key, {"metadata": {"labels": {"a": "b"}}})
            return await ROOM.observe(world, key)

        walk.room = replace(ROOM, observe=observe)
        await walk(KEY)
    stored = await client.get(WIDGETS, KEY)
    assert stored["metadata"]["finalizers"] == ["other/one", FINALIZER]
    assert stored["metadata"]["labels"] == {"a": "b"}
    assert stored["status"]["conditions"][0]["reason"] == "AllReady"


@pytest.mark.case("B78")
async def test_deletion_that_began_behind_our_back_gets_no_finalizer(client: Client) -> None:
    """The server refuses new finalizers on a terminating object; the pass goes on without."""
    await created(client, widget("w", finalizers=["other/one"]))
    async with cached_world(client, [ROOM]) as world:
        deafen(world)
        await client.delete(WIDGETS, KEY)
        await Walk(ROOM, world)(KEY)
    assert (await client.get(WIDGETS, KEY))["metadata"]["finalizers"] == ["other/one"]


async def test_an_object_that_went_behind_our_back_is_done(client: Client) -> None:
    """404 on the finalizer."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        deafen(world)
        await client.delete(WIDGETS, KEY)
        assert await Walk(ROOM, world)(KEY) == Done()
    assert await find(client, CONFIG_MAPS, "w-child") is None


async def test_a_lagging_cache_seizes_no_stranger_and_finds_its_own_child(client: Client) -> None:
    """A child that we believe absent is applied without force: a stranger's is refused, our own is taken up."""
    await created(client, widget("w"))
    async with cached_world(client, [ROOM]) as world:
        deafen(world)
        child = {"metadata": {"name": "w-child", "namespace": "default"}, "data": {"text": "theirs"}}
        await client.create(CONFIG_MAPS, child)
        other = Client.__new__(Client)
        other.__dict__.update(world.client.__dict__)
        other.field_manager = "somebody"
        with pytest.raises(ForeignObject):
            await Walk(ROOM, replace_client(world, other))(KEY)
        assert (await client.get(CONFIG_MAPS, Key("default", "w-child")))["data"] == {"text": "theirs"}
        await client.delete(CONFIG_MAPS, Key("default", "w-child"))
        await client.create(CONFIG_MAPS, {**child, "metadata": {**child["metadata"], **_owned(world)}})
        assert await Walk(ROOM, replace_client(world, other))(KEY) == Done()
    assert (await client.get(CONFIG_MAPS, Key("default", "w-child")))["data"] == {"text": "hello"}


def replace_client(world: World, client: Client) -> World:
    world.client = client
    return world


def _owned(world: World) -> JsonObject:
    obj = world.cache.get(WIDGETS, KEY)
    assert obj is not None
    return {"ownerReferences": [owner_reference(ref_of(obj))]}
