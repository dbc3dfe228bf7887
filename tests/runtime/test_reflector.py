"""The reflector on bad days, against the embedded API server behind a TCP proxy."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.kube.tcpproxy import TcpProxy, tcp_proxy

from moorage.apiserver.server import Server
from moorage.core.backoff import Backoff
from moorage.core.meta import JsonObject, Key
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import Expired
from moorage.kube.resources import CONFIG_MAPS, CRDS
from moorage.kube.watch import Patience, WatchEvent
from moorage.runtime.reflector import Reflector

from .conftest import until
from .widget import KIND, WIDGETS

QUICK = Backoff(base=0.01, cap=0.05)


def config_map(name: str, **data: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


@contextlib.asynccontextmanager
async def running(reflector: Reflector) -> AsyncIterator[Reflector]:
    reflector.backoff = QUICK
    task = asyncio.create_task(reflector.run())
    try:
        await reflector.synced.wait()
        yield reflector
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@contextlib.asynccontextmanager
async def behind_proxy(server: Server, folder: Path, silence: float) -> AsyncIterator[tuple[Client, TcpProxy]]:
    """A client whose connections go through a proxy; short patience."""
    server.kubeconfig(folder / "direct")
    direct = load_kubeconfig(folder / "direct")
    host, port = direct.server.removeprefix("https://").rsplit(":", 1)
    async with tcp_proxy(host, int(port)) as proxy:
        connection = replace(direct, server=f"https://127.0.0.1:{proxy.port}")
        async with Client(connection, patience=Patience(silence=silence, backoff=QUICK)) as client:
            yield client, proxy


def names(reflector: Reflector) -> set[str]:
    return {key["metadata"]["name"] for key in reflector.list("default")} - {"kube-root-ca.crt"}


@pytest.mark.case("B76")
async def test_a_silent_watch_is_made_anew_and_what_happened_meanwhile_arrives(server: Server, tmp_path: Path) -> None:
    """TCP stays up, nothing comes: after the inactivity limit the reflector watches again from where it was."""
    async with (
        behind_proxy(server, tmp_path, silence=0.3) as (client, proxy),
        direct_client(tmp_path) as direct,
        running(Reflector(client, CONFIG_MAPS)) as reflector,
    ):
        await direct.create(CONFIG_MAPS, config_map("before"))
        await until(lambda: "before" in names(reflector))
        proxy.silence()
        await direct.create(CONFIG_MAPS, config_map("during"))
        await asyncio.sleep(0)
        accepted = proxy.accepted
        await until(lambda: proxy.accepted > accepted)
        proxy.resume()
        await until(lambda: "during" in names(reflector))


@contextlib.asynccontextmanager
async def direct_client(folder: Path) -> AsyncIterator[Client]:
    async with Client(load_kubeconfig(folder / "direct")) as client:
        yield client


async def test_a_cut_connection_loses_nothing(server: Server, tmp_path: Path) -> None:
    """The stream goes on from the last resourceVersion; no list is made for it."""
    async with (
        behind_proxy(server, tmp_path, silence=30) as (client, proxy),
        direct_client(tmp_path) as direct,
        running(Reflector(client, CONFIG_MAPS)) as reflector,
    ):
        for number in range(5):
            await direct.create(CONFIG_MAPS, config_map(f"c{number}"))
            await until(lambda: f"c{number}" in names(reflector))  # noqa: B023
            proxy.cut()
        await direct.delete(CONFIG_MAPS, Key("default", "c0"))
        await until(lambda: "c0" not in names(reflector))
        assert client.calls["GET", "configmaps"] == 1


@pytest.mark.case("B76")
async def test_an_object_made_while_the_server_is_away_is_seen(tmp_path: Path) -> None:
    """The server restarts on the same store and port; the reflector lives through it."""
    server = Server(tmp_path / "data")
    await server.start()
    server.kubeconfig(tmp_path / "direct")
    connection = load_kubeconfig(tmp_path / "direct")
    port = int(connection.server.rsplit(":", 1)[1])
    async with (
        Client(connection, patience=Patience(silence=30, backoff=QUICK)) as client,
        running(Reflector(client, CONFIG_MAPS)) as reflector,
    ):
        await client.create(CONFIG_MAPS, config_map("before"))
        await server.stop()
        server = Server(tmp_path / "data", port=port)
        await server.start()
        async with direct_client(tmp_path) as other:
            await other.create(CONFIG_MAPS, config_map("after"))
        await until(lambda: {"before", "after"} <= names(reflector))
    await server.stop()


@pytest.mark.case("B76")
@pytest.mark.parametrize("where", ["at once", "in the stream"])
async def test_410_means_a_fresh_list_and_changes_of_the_gap_reach_listeners(client: Client, where: str) -> None:
    """After Expired the listeners hear what was made, changed and deleted meanwhile; no expired version is pinned."""
    cut = asyncio.Event()
    versions: list[str] = []

    async def expired(_scope: Any, since: str) -> AsyncIterator[WatchEvent]:
        versions.append(since)
        if where == "in the stream":
            yield WatchEvent("BOOKMARK", {"metadata": {"resourceVersion": since}})
        await cut.wait()
        client.watch_scope = original  # type: ignore[method-assign]
        raise Expired(410, "Expired", "too old resource version")

    original = client.watch_scope
    for name in ("stays", "changes", "goes"):
        await client.create(CONFIG_MAPS, config_map(name))
    client.watch_scope = expired  # type: ignore[method-assign, assignment]
    heard: list[tuple[str, str]] = []
    reflector = Reflector(client, CONFIG_MAPS, namespace="default")
    async with running(reflector):
        reflector.subscribe(lambda old, new: heard.append(_named(old, new)))
        heard.clear()
        await client.create(CONFIG_MAPS, config_map("comes"))
        await client.patch(CONFIG_MAPS, Key("default", "changes"), {"data": {"a": "b"}})
        await client.delete(CONFIG_MAPS, Key("default", "goes"))
        cut.set()
        await until(lambda: len(heard) >= 3)
    assert sorted(heard) == [("added", "comes"), ("changed", "changes"), ("deleted", "goes")]
    assert client.calls["GET", "configmaps"] == 2


def _named(old: JsonObject | None, new: JsonObject | None) -> tuple[str, str]:
    kind = "added" if old is None else "deleted" if new is None else "changed"
    return kind, str((new or old or {})["metadata"]["name"])


async def test_a_note_is_read_at_once_and_older_events_do_not_undo_it(client: Client) -> None:
    """Read your own writes; each change is told once."""
    reflector = Reflector(client, CONFIG_MAPS, namespace="default")
    async with running(reflector):
        told: list[str] = []
        reflector.subscribe(lambda old, new: told.append(_named(old, new)[0]))
        told.clear()
        made = await client.create(CONFIG_MAPS, config_map("x", a="1"))
        reflector.note(made)
        changed = await client.patch(CONFIG_MAPS, Key("default", "x"), {"data": {"a": "2"}})
        reflector.note(changed)
        reflector.note(made)
        assert reflector.get(Key("default", "x"))["data"] == {"a": "2"}  # type: ignore[index]
        await client.create(CONFIG_MAPS, config_map("y"))
        await until(lambda: reflector.get(Key("default", "y")))
        assert told == ["added", "changed", "added"]


async def test_an_own_delete_is_read_at_once_and_late_events_do_not_bring_the_object_back(client: Client) -> None:
    """The ghost of a deleted object does not return with an event that was on its way."""
    reflector = Reflector(client, CONFIG_MAPS, namespace="default")
    made = await client.create(CONFIG_MAPS, config_map("x"))
    async with running(reflector):
        late = await client.patch(CONFIG_MAPS, Key("default", "x"), {"data": {"a": "2"}})
        await client.delete(CONFIG_MAPS, Key("default", "x"))
        reflector.forget(Key("default", "x"), made["metadata"]["uid"])
        reflector._take(WatchEvent("MODIFIED", late))
        assert reflector.get(Key("default", "x")) is None
        again = await client.create(CONFIG_MAPS, config_map("x"))
        await until(lambda: reflector.get(Key("default", "x")))
        assert reflector.get(Key("default", "x"))["metadata"]["uid"] == again["metadata"]["uid"]  # type: ignore[index]


async def test_an_index_follows_its_objects(client: Client) -> None:
    """Objects are found by value, leave with their value, and a broken index function harms nobody."""

    def color(obj: JsonObject) -> Iterable[str]:
        return [obj["data"]["color"]]

    reflector = Reflector(client, CONFIG_MAPS, namespace="default")
    reflector.add_index("color", color)
    async with running(reflector):
        for name, value in (("a", "red"), ("b", "red"), ("c", "blue")):
            await client.create(CONFIG_MAPS, config_map(name, color=value))
        await until(lambda: len(reflector.list(index="color", value="red")) == 2)
        await client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"color": "blue"}})
        await until(lambda: len(reflector.list(index="color", value="blue")) == 2)
        await client.delete(CONFIG_MAPS, Key("default", "b"))
        await until(lambda: not reflector.list(index="color", value="red"))


async def test_an_index_asks_for_the_values_of_an_object_once(client: Client) -> None:
    """Each version of an object is looked into once: what it had before is remembered. One that comes later holds what is there."""
    asked: list[str] = []

    def color(obj: JsonObject) -> Iterable[str]:
        asked.append(obj["metadata"]["resourceVersion"])
        return [obj["data"]["color"]]

    reflector = Reflector(client, CONFIG_MAPS, namespace="default")
    reflector.add_index("color", color)
    async with running(reflector):
        await client.create(CONFIG_MAPS, config_map("a", color="red"))
        for value in ("blue", "green"):
            await client.patch(CONFIG_MAPS, Key("default", "a"), {"data": {"color": value}})
        await until(lambda: len(reflector.list(index="color", value="green")) == 1)
        await client.delete(CONFIG_MAPS, Key("default", "a"))
        await until(lambda: not reflector.list(index="color", value="green"))
        assert len(asked) == len(set(asked))
        await client.create(CONFIG_MAPS, config_map("b", color="red"))
        await until(lambda: reflector.get(Key("default", "b")) is not None)
        reflector.add_index("late", color)
        assert len(reflector.list(index="late", value="red")) == 1


async def test_a_type_that_is_not_served_counts_as_empty_until_it_is(server: Server, tmp_path: Path) -> None:
    """A CRD that comes later is noticed."""
    server.kubeconfig(tmp_path / "k")
    async with Client(load_kubeconfig(tmp_path / "k")) as client, running(Reflector(client, WIDGETS)) as reflector:
        assert len(reflector) == 0
        await client.create(CRDS, KIND.crd())
        await until(lambda: client.calls["WATCH", "widgets"])


async def test_cached_objects_hold_no_managed_fields(client: Client) -> None:
    """They are half of an object's size and nobody reads them."""
    await client.apply(CONFIG_MAPS, config_map("x", a="1"))
    async with running(Reflector(client, CONFIG_MAPS)) as reflector:
        assert all("managedFields" not in obj["metadata"] for obj in reflector.list())


async def test_a_server_whose_history_began_anew_is_believed(client: Client) -> None:
    """A list with a smaller resourceVersion than the stream had: what it does not hold is gone, what it holds counts."""
    reflector = Reflector(client, CONFIG_MAPS)

    def stored(name: str, version: int) -> JsonObject:
        return {
            "metadata": {"name": name, "namespace": "default", "resourceVersion": str(version), "uid": f"u{version}"}
        }

    reflector._replace([stored("old", 900), stored("both", 901)], 1000)
    reflector._replace([stored("both", 7)], 8)
    assert names(reflector) == {"both"}
    reflector._take(WatchEvent("ADDED", stored("new", 9)))
    assert names(reflector) == {"both", "new"}
