"""Children, bundles, events, drift: the smaller parts that write."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.crashpoints import cached_world

from moorage.core.meta import JsonObject, Key, Ref, ref_of
from moorage.kube.client import Client
from moorage.kube.resources import CONFIG_MAPS, CORE_EVENTS, DEPLOYMENTS, SECRETS
from moorage.render.bundle import Bundle
from moorage.runtime import diff
from moorage.runtime.drift import contains
from moorage.runtime.events import Bounds, Recorder
from moorage.runtime.projection import ensure_bundle, prune, rolled_out
from moorage.runtime.room import Event, Watch, nobody
from moorage.runtime.world import ForeignObject

from .conftest import until
from .widget import ROOM, WIDGETS, widget

READING = replace(ROOM, watches=(Watch(SECRETS, nobody), Watch(CONFIG_MAPS, nobody), Watch(DEPLOYMENTS, nobody)))

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.text("ab~/", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab~/", max_size=2), inner, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(st.text("ab~/", max_size=2), json_values, max_size=4)


@given(objects, objects)
def test_a_json_patch_makes_the_new_of_the_old(old: JsonObject, new: JsonObject) -> None:
    """Applied by the API server's own engine."""
    from moorage.apiserver.patch import json_patch

    assert json_patch(old, list(diff.json_patch(old, new))) == new


@given(objects)
def test_equal_objects_need_no_patch(obj: JsonObject) -> None:
    """Neither kind."""
    assert not list(diff.json_patch(obj, obj))
    assert diff.merge_patch(obj, obj) == {}


@pytest.mark.parametrize(
    ("live", "wanted", "holds"),
    [
        ({"a": 1, "b": 2}, {"a": 1}, True),
        ({"a": 1}, {"a": 2}, False),
        ({}, {"a": {}, "b": [], "c": None}, True),
        ({"a": "1"}, {"a": "1000m"}, True),
        ({"a": "x"}, {"a": "1"}, False),
        ({"args": ["a", "b"]}, {"args": ["a"]}, False),
        ({"c": [{"name": "s"}, {"name": "a", "image": "i"}]}, {"c": [{"name": "a"}]}, True),
        ({"c": [{"name": "a"}, {"name": "b"}]}, {"c": [{"name": "b"}, {"name": "a"}]}, False),
        ({"c": [{"name": "a"}]}, {"c": [{"name": "a"}, {"name": "b"}]}, False),
    ],
)
def test_drift(live: JsonObject, wanted: JsonObject, holds: bool) -> None:
    """Defaults and foreign additions are no drift; changed or missing values of ours are."""
    assert contains(live, wanted) is holds


async def owner(client: Client, name: str = "w") -> Ref:
    return ref_of(await client.create(WIDGETS, widget(name)))


async def test_a_child_is_applied_once_and_a_removed_field_goes(client: Client) -> None:
    """Same wanted, no request; a field left out is removed from the live object."""
    async with cached_world(client, [READING]) as world:

        def child(**data: str) -> JsonObject:
            return {"metadata": {"name": "c", "namespace": "default"}, "data": data}

        await world.ensure(CONFIG_MAPS, child(a="1", b="2"))
        calls = client.calls.total()
        await world.ensure(CONFIG_MAPS, child(a="1", b="2"))
        assert client.calls.total() == calls
        await world.ensure(CONFIG_MAPS, child(a="1"))
    assert (await client.get(CONFIG_MAPS, Key("default", "c")))["data"] == {"a": "1"}


async def test_bundles_are_kept_newest_first_and_none_when_nothing_is_projected(client: Client) -> None:
    """Three old generations stay for a roll back; with keep=0 no copy of a secret lingers; strangers stay."""
    mine = await owner(client)
    await client.create(SECRETS, {"metadata": {"name": "conf-00000000", "namespace": "default"}})
    async with cached_world(client, [READING]) as world:
        names = []
        for number in range(6):
            bundle = Bundle("conf", {"f": b"%d" % number})
            await ensure_bundle(world, bundle.secret("default", mine, {}))
            await ensure_bundle(world, bundle.secret("default", mine, {}))
            names.append(bundle.name)
        gone = await prune(world, SECRETS, "conf", names[-1], owner=mine)
        assert len(gone) == 2
        assert {obj["metadata"]["name"] for obj in world.cache.list(SECRETS)} >= {names[-1], "conf-00000000"}
        await prune(world, SECRETS, "conf", None, owner=mine, keep=0)
    left = [obj["metadata"]["name"] for obj in (await client.list(SECRETS, "default")).items]
    assert left == ["conf-00000000"]


async def test_a_bundle_name_taken_by_a_stranger_is_an_error(client: Client) -> None:
    """AlreadyExists is only fine under the same owner."""
    mine, other = await owner(client), await owner(client, "other")
    bundle = Bundle("conf", {"f": b"x"})
    await client.create(CONFIG_MAPS, bundle.config_map("default", other, {}))
    async with cached_world(client, [READING]) as world:
        with pytest.raises(ForeignObject):
            await ensure_bundle(world, bundle.config_map("default", mine, {}))


def deployment(observed: int = 2, **status: int) -> JsonObject:
    counts = {"replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, **status}
    return {
        "metadata": {"generation": 2},
        "spec": {"replicas": 2},
        "status": {"observedGeneration": observed, **counts},
    }


def test_a_roll_has_ended_when_all_pods_are_new_and_ready() -> None:
    """And no other is left."""
    assert rolled_out(deployment())
    assert not rolled_out(deployment(observed=1))
    assert not rolled_out(deployment(replicas=3))
    assert not rolled_out(deployment(readyReplicas=1))
    assert not rolled_out(None)


async def test_an_event_told_again_counts_up_also_after_a_restart(client: Client) -> None:
    """Its name follows from its content."""
    about = await owner(client)
    event = Event("Warning", "Broken", "it is broken")
    for _ in range(2):
        recorder = Recorder(client, "moorage")
        task = asyncio.create_task(recorder.run())
        for _ in range(3):
            recorder.tell(about, event)
        await recorder.drain()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    [stored] = (await client.list(CORE_EVENTS, "default")).items
    assert (stored["count"], stored["message"], stored["type"]) == (6, "it is broken", "Warning")


async def test_events_are_bounded_and_a_refused_one_stops_nothing(client: Client) -> None:
    """Too many are dropped by object and in sum; a namespace that is gone is only logged."""
    dropped: list[str] = []
    recorder = Recorder(client, "moorage", bounds=Bounds(waiting=30), dropped=dropped.append)
    about = await owner(client)
    for number in range(40):
        recorder.tell(about, Event("Normal", "R", str(number)))
    for number in range(10):
        recorder.tell(about._replace(uid=str(number)), Event("Normal", "R", "x"))
    assert (dropped.count("spam"), dropped.count("full")) == (15, 5)
    recorder.tell(about, Event("Normal", "R", "one too many"))
    task = asyncio.create_task(recorder.run())
    await recorder.drain()
    recorder.tell(Ref("v1", "ConfigMap", Key("no-such-namespace", "x"), "u"), Event("Normal", "R", "x"))
    await until(lambda: "refused" in dropped)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
