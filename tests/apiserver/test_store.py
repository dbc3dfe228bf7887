"""The store: group commit, order, refusals of the disk, history and compaction."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.conftest import limit_pages

from moorage.apiserver import store
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Hub, Stale
from moorage.core.errors import StorageError


@pytest.fixture
async def hub(tmp_path: Path) -> AsyncIterator[Hub]:
    hub = Hub(tmp_path / "store.db")
    hub.open()
    yield hub
    hub.close()


def thing(name: str, size: int = 0) -> dict[str, object]:
    return {"metadata": {"name": name}, "data": "x" * size}


async def test_writes_that_come_together_share_commits(hub: Hub) -> None:
    """Two hundred concurrent writers need far fewer than two hundred syncs."""
    await asyncio.gather(*(hub.write("things", f"n/{number}", thing(str(number)), 0) for number in range(200)))
    assert len(hub.collections["things"].entries) == 200
    assert hub.store.commits <= 20


async def a_turn_apart(hub: Hub, count: int) -> list[asyncio.Task[object]]:
    """Writers that come one a turn of the loop, as requests of connections do that are read one after the other."""
    writers: list[asyncio.Task[object]] = []
    for number in range(count):
        writers.append(asyncio.ensure_future(hub.write("things", f"n/{number}", thing(str(number)), 0)))
        await asyncio.sleep(0)
    return writers


async def test_where_a_sync_is_slow_writers_that_come_one_after_the_other_share_it(hub: Hub) -> None:
    """64 writers, a turn of the loop apart, need one sync; the next one begins when no more come."""
    hub.store._took.extend([1.0] * 16)
    hub.store._quickest = 1.0
    await asyncio.gather(*await a_turn_apart(hub, 64))
    assert hub.store.commits == 1


async def test_where_a_sync_is_slow_those_who_wrote_together_are_waited_for(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of eight who comes fifty turns later shares the commit; when the others stay away, a lone writer waits once and then no more."""
    quick = store._store

    def slow(*batch: Any) -> None:
        quick(*batch)
        time.sleep(0.2)

    async def write(name: str, turns: int = 0) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await hub.write("things", f"n/{name}", thing(name), 0)

    monkeypatch.setattr(store, "_store", slow)
    await asyncio.gather(*(write(f"a{number}") for number in range(8)))
    await asyncio.gather(*(write(f"b{number}", 50 if number == 7 else 0) for number in range(8)))
    assert hub.store.commits == 2
    await write("c")
    lone = asyncio.ensure_future(write("d"))
    await asyncio.sleep(0)
    assert hub.store._timer is None
    await lone
    assert hub.store.commits == 4


async def test_where_a_sync_is_slow_a_late_look_is_none(hub: Hub) -> None:
    """A process that slept has not read what came meanwhile, so it looks again."""
    kept = hub.store
    kept._took.extend([1.0] * 16)
    kept._quickest, kept._expected = 1.0, 2
    [first] = await a_turn_apart(hub, 1)
    assert kept._timer is not None
    kept._timer.cancel()
    kept._due -= 9.0
    kept._look()
    assert kept._timer is not None
    second = asyncio.ensure_future(hub.write("things", "second", thing("s"), 0))
    await asyncio.gather(first, second)
    assert kept.commits == 1


async def test_where_a_sync_is_slow_a_record_waits_for_others_only_so_long(
    hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers that never end do not keep the first one waiting for ever."""
    monkeypatch.setattr("moorage.apiserver.store._PATIENCE", 0)
    hub.store._took.extend([1.0] * 16)
    hub.store._quickest = 1.0
    first, *others = await a_turn_apart(hub, 2)
    while not first.done():
        others += [asyncio.ensure_future(hub.write("things", f"m/{len(others)}", thing("m"), 0))]
        await asyncio.sleep(0)
    await asyncio.gather(first, *others)
    assert hub.store.commits > 1


async def test_changes_are_told_in_revision_order(hub: Hub) -> None:
    """A watcher sees rising revisions only, each once."""
    seen: list[int] = []
    hub.collections["things"].watchers.append(lambda change: seen.append(change.rev))
    await asyncio.gather(*(hub.write("things", f"n/{number}", thing(str(number)), 0) for number in range(100)))
    assert len(seen) == 100
    assert seen == sorted(set(seen))


async def test_a_write_over_another_revision_is_stale(hub: Hub) -> None:
    """Optimistic concurrency: the second of two writers that saw the same revision loses."""
    first = await hub.write("things", "n/a", thing("a"), 0)
    results = await asyncio.gather(
        *(hub.write("things", "n/a", thing("a"), first.rev) for _ in range(2)), return_exceptions=True
    )
    assert sorted(type(result).__name__ for result in results) == ["Entry", "Stale"]


async def test_creating_twice_is_stale(hub: Hub) -> None:
    """A create sees revision 0, which is gone once the object stands."""
    await hub.write("things", "n/a", thing("a"), 0)
    with pytest.raises(Stale):
        await hub.write("things", "n/a", thing("a"), 0)


async def test_a_restart_shows_what_was_acknowledged(tmp_path: Path) -> None:
    """Objects, revisions and deletions survive; revisions go on rising."""
    hub = Hub(tmp_path / "store.db")
    hub.open()
    kept = await hub.write("things", "n/kept", thing("kept"), 0)
    gone = await hub.write("things", "n/gone", thing("gone"), 0)
    await hub.write("things", "n/gone", thing("gone"), gone.rev, delete=True)
    newest = hub.revision
    hub.close()
    again = Hub(tmp_path / "store.db")
    again.open()
    try:
        assert list(again.collections["things"].entries) == ["n/kept"]
        assert again.get("things", "n/kept").raw == kept.raw  # type: ignore[union-attr]
        assert again.revision == newest
        assert (await again.write("things", "n/new", thing("new"), 0)).rev > newest
    finally:
        again.close()


async def test_a_full_disk_refuses_writes_and_reads_go_on(hub: Hub) -> None:
    """507 with a sentence; what was stored is still read; writes work again when there is room."""
    entry = await hub.write("things", "n/a", thing("a"), 0)
    await limit_pages(hub.store, 1)
    with pytest.raises(StatusError) as refused:
        await hub.write("things", "n/b", thing("b", 900_000), 0)
    assert refused.value.code == 507
    assert "the disk that holds the store is full" in refused.value.message
    assert hub.get("things", "n/a") is entry
    await limit_pages(hub.store, 0)
    assert (await hub.write("things", "n/b", thing("b", 900_000), 0)).rev > entry.rev


async def test_a_refused_batch_leaves_nothing_behind(hub: Hub) -> None:
    """After a refusal the object does not exist, in memory or on the disk, and its name is free."""
    await limit_pages(hub.store, 1)
    with pytest.raises(StatusError):
        await hub.write("things", "n/b", thing("b", 900_000), 0)
    assert hub.get("things", "n/b") is None
    assert await hub.changes("things", 0, 10**9) == []


async def test_one_process_holds_the_store(hub: Hub, tmp_path: Path) -> None:
    """A second server on the same folder is told so."""
    other = Hub(tmp_path / "store.db")
    with pytest.raises(StorageError, match="another process holds this store"):
        other.open()


async def test_history_gives_each_change_with_what_it_replaced(hub: Hub) -> None:
    """Created, changed, deleted: three changes with their befores."""
    first = await hub.write("things", "n/a", thing("a"), 0)
    second = await hub.write("things", "n/a", thing("a", 1), first.rev)
    await hub.write("things", "n/a", thing("a", 1), second.rev, delete=True)
    changes = await hub.changes("things", 0, hub.revision)
    assert [change.type for change in changes] == ["ADDED", "MODIFIED", "DELETED"]
    assert [change.before and change.before.rev for change in changes] == [None, first.rev, second.rev]


async def test_compaction_keeps_what_is_current_and_what_later_changes_replaced(hub: Hub) -> None:
    """Reading from before the mark is 410; from the mark on nothing is missing."""
    first = await hub.write("things", "n/a", thing("a"), 0)
    second = await hub.write("things", "n/a", thing("a", 1), first.rev)
    await hub.store.compact(second.rev)
    third = await hub.write("things", "n/a", thing("a", 2), second.rev)
    with pytest.raises(StatusError) as gone:
        await hub.changes("things", first.rev, hub.revision)
    assert gone.value.code == 410
    (change,) = await hub.changes("things", second.rev, hub.revision)
    assert (change.rev, change.before and change.before.raw) == (third.rev, second.raw)


async def test_revisions_are_not_given_twice_after_compacting_all(tmp_path: Path) -> None:
    """Even when the newest records were deletions that compaction took away."""
    hub = Hub(tmp_path / "store.db")
    hub.open()
    entry = await hub.write("things", "n/a", thing("a"), 0)
    gone = await hub.write("things", "n/a", thing("a"), entry.rev, delete=True)
    await hub.store.compact(gone.rev)
    hub.close()
    again = Hub(tmp_path / "store.db")
    again.open()
    try:
        assert (await again.write("things", "n/b", thing("b"), 0)).rev > gone.rev
    finally:
        again.close()


async def test_a_list_of_the_past_is_what_stood_then(hub: Hub) -> None:
    """Later changes, deletions and creations are undone in the answer."""
    first = await hub.write("things", "n/a", thing("a"), 0)
    gone = await hub.write("things", "n/b", thing("b"), 0)
    then = hub.revision
    await hub.write("things", "n/a", thing("a", 5), first.rev)
    await hub.write("things", "n/b", thing("b"), gone.rev, delete=True)
    await hub.write("things", "n/c", thing("c"), 0)
    entries = await hub.at("things", "n", then)
    assert [(entry.key, entry.raw) for entry in entries] == [("n/a", first.raw), ("n/b", gone.raw)]


async def test_a_writer_that_goes_away_leaves_its_write_and_the_turn_of_others(hub: Hub) -> None:
    """The write under way is told to watchers; who waited for its key then sees it."""
    first = asyncio.ensure_future(hub.write("things", "a", thing("a"), 0))
    await asyncio.sleep(0)
    second = asyncio.ensure_future(hub.settled("things", "a"))
    third = asyncio.ensure_future(hub.settled("things", "a"))
    await asyncio.sleep(0)
    first.cancel()
    third.cancel()
    entry = await asyncio.wait_for(second, 30)
    assert entry is not None
    assert hub.get("things", "a") is entry
    await hub.write("things", "a", thing("a"), entry.rev)


async def test_a_large_batch_with_deletions_is_stored_whole(tmp_path: Path) -> None:
    """Many rows go in with one statement: all of them, and none that was deleted, are there after a restart."""
    hub = Hub(tmp_path / "store.db")
    hub.open()
    made = await asyncio.gather(*(hub.write("things", f"{at:03}", thing(f"{at:03}"), 0) for at in range(150)))
    again = [hub.write("things", f"{at:03}", thing("x"), made[at].rev, delete=at % 2 == 0) for at in range(150)]
    await asyncio.gather(*again)
    hub.close()
    hub = Hub(tmp_path / "store.db")
    hub.open()
    found = list(hub.collections["things"].select(""))
    assert [entry.key for entry in found] == [f"{at:03}" for at in range(1, 150, 2)]
    assert {entry.parse()["metadata"]["name"] for entry in found} == {"x"}
    hub.close()
