"""Disks that are full or cannot be written, folders that were there before, files that are mostly holes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, Client, config_map, limit_pages

from moorage.apiserver import Server, store
from moorage.apiserver import server as serving
from moorage.apiserver.hub import Hub
from moorage.apiserver.reserve import Reserve


async def test_a_disk_that_cannot_be_written_answers_503(client: Client) -> None:
    """Reads go on, the sentence says why, the client is told to come again, and writes work once the disk does."""
    await client.create(CONFIG_MAPS, config_map("before"))
    await client.server.hub.store._run(lambda connection: connection.execute("PRAGMA query_only = 1"))
    answer = await client.ask("POST", CONFIG_MAPS, config_map("after"))
    assert (answer.status, answer.body["reason"], answer.headers["Retry-After"]) == (503, "ServiceUnavailable", "1")
    assert "the store cannot be written" in answer.body["message"]
    assert (await client.ask("GET", f"{CONFIG_MAPS}/before")).status == 200
    assert (await client.ask("DELETE", f"{CONFIG_MAPS}/before")).status == 503
    await client.server.hub.store._run(lambda connection: connection.execute("PRAGMA query_only = 0"))
    assert (await client.ask("POST", CONFIG_MAPS, config_map("after"))).status == 201


async def test_on_a_full_disk_history_goes_so_that_deleting_works(client: Client) -> None:
    """What was replaced makes room; the reserve is given up and taken again."""
    server = client.server
    await client.create(CONFIG_MAPS, config_map("a", k="x" * 500_000))
    for text in "yz":
        await client.ask("PUT", f"{CONFIG_MAPS}/a", config_map("a", k=text * 500_000))
    await server.relieve()
    reserve = server._dir / "store.reserve"
    assert reserve.stat().st_size == 4 * 1024 * 1024
    await limit_pages(server.hub.store, 1)
    assert (await client.ask("POST", CONFIG_MAPS, config_map("b", k="x" * 900_000))).status == 507
    assert server.hub.store.full
    await server.relieve()
    assert not reserve.exists()
    assert (await client.ask("DELETE", f"{CONFIG_MAPS}/a")).status == 200
    assert not server.hub.store.full
    await server.relieve()
    assert reserve.exists()


async def test_a_full_disk_is_told_to_who_asks_and_the_server_stays_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also while nothing of ours wants to write: a Keystone on the same disk takes no new login."""
    assert (await client.ask("GET", "/readyz/disk")).body == {"full": False}
    with monkeypatch.context() as scarce:
        scarce.setattr(serving, "_SCARCE", 1 << 62)
        told = await client.ask("GET", "/readyz/disk")
        assert (told.status, told.body["reason"]) == (507, "InsufficientStorage")
        assert told.body["message"].startswith("the disk of the data folder is full: ")
        assert (await client.ask("GET", "/readyz")).status == 200
    await limit_pages(client.server.hub.store, 1)
    await client.ask("POST", CONFIG_MAPS, config_map("b", k="x" * 900_000))
    assert (await client.ask("GET", "/readyz/disk")).status == 507


def test_a_reserve_that_finds_no_room_leaves_nothing(tmp_path: Path) -> None:
    """It does not hold half of what it should."""
    reserve = Reserve(tmp_path / "reserve", size=1 << 60)
    assert not reserve.keep()
    assert not reserve.kept


async def test_a_folder_that_was_there_becomes_private(tmp_path: Path) -> None:
    """As packages and systemd make it: open to everybody, with a store of an earlier day."""
    folder = tmp_path / "data"
    folder.mkdir(mode=0o755)
    sqlite3.connect(folder / "store.db").close()
    (folder / "store.db").touch(mode=0o644)
    server = Server(folder)
    await server.start()
    try:
        modes = {path.name: path.stat().st_mode & 0o077 for path in (folder, *folder.glob("store.db*"))}
        assert set(modes.values()) == {0}, modes
    finally:
        await server.stop()


async def test_compaction_gives_a_file_of_holes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When more than half of a large file is free."""
    monkeypatch.setattr(store, "_WORTH_SHRINKING", 256 * 1024)
    hub = Hub(tmp_path / "store.db")
    hub.open()
    try:
        seen = 0
        for turn in range(20):
            entry = await hub.write("things", "n/a", {"metadata": {"name": "a"}, "text": str(turn) * 50_000}, seen)
            seen = entry.rev
        await hub.store._run(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)"))
        large = (tmp_path / "store.db").stat().st_size
        await hub.store.compact(hub.revision)
        assert (tmp_path / "store.db").stat().st_size < large / 4
        assert hub.get("things", "n/a").parse()["text"] == "19" * 50_000  # type: ignore[union-attr]
    finally:
        hub.close()
