"""Watches: from any kept revision, without a gap, cut rather than held when too slow."""

from __future__ import annotations

import asyncio
import json

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, CRDS, MERGE, Client, config_map, crd

from moorage.apiserver import watch as watch_module
from moorage.apiserver.hub import Change, Collection, Entry
from moorage.apiserver.registry import Registry
from moorage.apiserver.selection import Selection
from moorage.core.selectors import LabelSelector


async def test_a_watch_from_a_list_sees_what_came_after_it(client: Client) -> None:
    """Created, changed, deleted, in order, from the list's revision on."""
    since = (await client.ask("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    await client.create(CONFIG_MAPS, config_map("a", k="v"))
    await client.ask("PATCH", f"{CONFIG_MAPS}/a", {"data": {"k": "w"}}, media=MERGE)
    await client.ask("DELETE", f"{CONFIG_MAPS}/a")
    events = await client.events(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}", 3)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    versions = [int(event["object"]["metadata"]["resourceVersion"]) for event in events]
    assert versions == sorted(versions)


async def test_no_gap_between_history_and_live_events(client: Client) -> None:
    """A hundred watchers that start amid 300 writes see every one of them exactly once."""
    since = (await client.ask("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    total = 300

    async def writer(number: int) -> None:
        for turn in range(total // 10):
            await client.create(CONFIG_MAPS, config_map(f"w-{number}-{turn}"))

    async def watcher() -> list[str]:
        events = await client.events(f"{CONFIG_MAPS}?watch=1&resourceVersion={since}", total)
        return [event["object"]["metadata"]["name"] for event in events]

    results = await asyncio.gather(*(watcher() for _ in range(100)), *(writer(number) for number in range(10)))
    seen = [names for names in results if names is not None]
    assert len(seen) == 100
    assert all(len(set(names)) == total for names in seen)
    assert len({tuple(names) for names in seen}) == 1


async def test_a_revision_that_is_no_longer_kept_is_410(client: Client) -> None:
    """After compaction an old watch, and an old continue token, are refused as expired."""
    for number in range(3):
        await client.create(CONFIG_MAPS, config_map(f"a{number}"))
    page = (await client.ask("GET", f"{CONFIG_MAPS}?limit=1")).body
    await client.create(CONFIG_MAPS, config_map("later"))
    await client.server.hub.store.compact(client.server.hub.revision)
    answer = await client.ask("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=1")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")
    answer = await client.ask("GET", f"{CONFIG_MAPS}?limit=1&continue={page['metadata']['continue']}")
    assert (answer.status, answer.body["reason"]) == (410, "Expired")


async def test_a_watch_ends_when_its_kind_goes(client: Client) -> None:
    """After the deletion of what was left of it; watches of other kinds go on."""
    await client.create(CRDS, crd())
    things = "/apis/example.test/v1/namespaces/default/things"
    await client.until(things, lambda answer: answer.status == 200)
    await client.create(things, {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": "a"}})
    async with (
        client.session.get(f"{client.server.url}{things}?watch=1") as stream,
        client.session.get(f"{client.server.url}{CONFIG_MAPS}?watch=1") as other,
    ):
        await client.ask("DELETE", f"{CRDS}/things.example.test")
        assert [json.loads(line)["type"] async for line in stream.content] == ["ADDED", "DELETED"]
        await client.create(CONFIG_MAPS, config_map("after"))
        while json.loads(await other.content.readline())["object"]["metadata"]["name"] != "after":
            continue
        other.close()


async def test_a_watcher_that_cannot_keep_up_is_cut_with_410(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its queue is bounded; it is told to list again, and the writer never waited for it."""
    monkeypatch.setattr(watch_module, "_MOST_EVENTS", 5)
    since = (await client.ask("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    async with client.session.get(f"{client.server.url}{CONFIG_MAPS}?watch=1&resourceVersion={since}") as stream:
        await client.until("/metrics", lambda _: bool(client.server.api.watchers))
        await asyncio.gather(*(client.create(CONFIG_MAPS, config_map(f"a{number}")) for number in range(50)))
        events = [json.loads(line) async for line in stream.content]
    last = events[-1]
    assert (last["type"], last["object"]["code"]) == ("ERROR", 410)


async def test_selector_transitions_are_added_and_deleted(client: Client) -> None:
    """An object enters the selection, and leaves it with its last selected state."""
    await client.create(CONFIG_MAPS, config_map("a"))
    since = (await client.ask("GET", CONFIG_MAPS)).body["metadata"]["resourceVersion"]
    for labels in ({"x": "y"}, {"x": None}):
        await client.ask("PATCH", f"{CONFIG_MAPS}/a", {"metadata": {"labels": labels}}, media=MERGE)
    events = await client.events(f"{CONFIG_MAPS}?watch=1&labelSelector=x%3Dy&resourceVersion={since}", 2)
    assert [event["type"] for event in events] == ["ADDED", "DELETED"]
    assert events[1]["object"]["metadata"]["labels"] == {"x": "y"}


async def test_initial_events_end_with_a_bookmark(client: Client) -> None:
    """`sendInitialEvents` lists through the watch and says where the list ends."""
    await client.create(CONFIG_MAPS, config_map("a"))
    query = "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
    events = await client.events(f"{CONFIG_MAPS}?{query}", 3)
    assert [event["type"] for event in events] == ["ADDED", "ADDED", "BOOKMARK"]
    assert events[2]["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}


async def test_tables_and_partial_metadata_are_watched(client: Client) -> None:
    """The forms that kubectl and metadata informers ask for."""
    await client.create(CONFIG_MAPS, config_map("a", k="v"))
    accepts = {
        "Table": "application/json;as=Table;v=v1;g=meta.k8s.io",
        "PartialObjectMetadata": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    }
    for kind, accept in accepts.items():
        url = f"{client.server.url}{CONFIG_MAPS}?watch=1&fieldSelector=metadata.name%3Da"
        async with client.session.get(url, headers={"Accept": accept}) as stream:
            event = json.loads(await stream.content.readline())
            stream.close()
        assert (event["type"], event["object"]["kind"]) == ("ADDED", kind)


async def test_stopping_the_server_ends_watches(client: Client) -> None:
    """A watch ends cleanly, without an error event."""
    async with client.session.get(f"{client.server.url}{CONFIG_MAPS}?watch=1&resourceVersion=1") as stream:
        await client.until("/metrics", lambda _: bool(client.server.api.watchers))
        for watcher in client.server.api.watchers:
            watcher.end()
        lines = [json.loads(line) async for line in stream.content]
    assert all(line["type"] != "ERROR" for line in lines)


async def test_a_change_that_comes_as_the_time_runs_out_is_not_left_behind() -> None:
    """A bookmark would pass it, and the client would drop it afterwards: a silent gap."""
    registry = Registry()
    served = next(item for item in registry.types() if item.resource.plural == "configmaps")
    collection = Collection()
    change = Change("ADDED", served.storage, Entry("default/a", 7, b"{}"), None)
    chosen = Selection(registry, served, "", "", LabelSelector(()), ())
    with watch_module.Watcher(collection, chosen) as watcher:
        (notice,) = collection.watchers
        asyncio.get_running_loop().call_soon(notice, change)
        assert await watcher.take(0) == [change]
