"""The store: one SQLite file, an append-only log of revisions and a table that points to the current ones.

Enters: records with revisions already given, in order. Leaves: their durability, the current rows at start, and history.
One writer thread commits whatever has gathered (group commit, WAL, synchronous=FULL), so an acknowledged record
survives `kill -9` and a power cut. It knows nothing of Kubernetes objects; values are bytes.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path

from moorage.core.errors import StorageError

_BATCH = 1024
_SLOW = 0.003
"""Seconds of a commit from which it is worth gathering more for it. On a quicker disk the next requests are better worked on meanwhile."""
_PATIENCE = 8
"""So many commits' time a record waits at most for others."""
_GAP = 1.0
"""Commits' time without another record after which no more are waited for: who is not waited for waits a commit, too."""
_ROWS = (64, 16, 4, 1)
"""Sizes of statements: few, so that SQLite's compiled ones are found again."""
_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
  rev INTEGER PRIMARY KEY, storage TEXT NOT NULL, key TEXT NOT NULL, prev INTEGER NOT NULL,
  deleted INTEGER NOT NULL, at INTEGER NOT NULL, value BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS log_storage ON log (storage, rev);
CREATE TABLE IF NOT EXISTS current (storage TEXT NOT NULL, key TEXT NOT NULL, rev INTEGER NOT NULL,
  PRIMARY KEY (storage, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
"""
_FULL = {sqlite3.SQLITE_FULL}
_PAGES = ("page_count", "freelist_count", "page_size")
_WORTH_SHRINKING = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Record:
    """One revision of one object; `prev` is the revision that it replaces, 0 for none."""

    rev: int
    storage: str
    key: str
    prev: int
    deleted: bool
    value: bytes


@dataclass(frozen=True, slots=True)
class Past:
    """A record of the log with the value that it replaced (None when it created the object)."""

    record: Record
    before: bytes | None


class WriteRefused(StorageError):
    """The disk refused a commit; nothing of the batch was stored."""

    code = "write_refused"

    def __init__(self, error: sqlite3.Error) -> None:
        self.full = getattr(error, "sqlite_errorcode", 0) & 0xFF in _FULL
        super().__init__(str(error))


Committed = Callable[[list[Record], WriteRefused | None], None]


class Store:
    """The SQLite file of one server; opened by one process at a time.

    Args:
        path: the database file; its folder must exist.
        committed: called on the event loop with each batch, in revision order, once it is durable or refused.
    """

    def __init__(self, path: Path, committed: Committed) -> None:
        self._path, self._committed = path, committed
        self._queue: queue.SimpleQueue[list[Record] | Callable[[sqlite3.Connection], None] | None] = queue.SimpleQueue()
        self._gathered: list[Record] = []
        self._seen = self._expected = self._handed = 0
        self._until = self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._took: deque[float] = deque(maxlen=16)
        self._quickest = 0.0
        self._thread: threading.Thread | None = None
        self._reader: sqlite3.Connection | None = None
        self._reading = threading.Lock()
        self._lock = -1
        self.compacted = 0
        self.commits = 0
        self.full = False

    def open(self) -> tuple[int, list[tuple[str, str, int, bytes]]]:
        """Open the file and start the writer.

        Returns:
            The newest revision and the current rows (storage, key, revision, value).

        Raises:
            StorageError: another process holds the store, or the file cannot be opened.
        """
        self._take_lock()
        try:
            connection = self._connect()
            connection.executescript(_SCHEMA)
            self._reader = self._connect()
            rows = connection.execute(
                "SELECT c.storage, c.key, c.rev, l.value FROM current c JOIN log l ON l.rev = c.rev"
            ).fetchall()
            newest = connection.execute("SELECT COALESCE(MAX(rev), 0) FROM log").fetchone()[0]
            found = connection.execute("SELECT value FROM meta WHERE name = 'compacted'").fetchone()
        except sqlite3.Error as error:
            raise StorageError(str(self._path), f"the store cannot be opened: {error}") from error
        self.compacted = found[0] if found else 0
        self._thread = threading.Thread(
            target=self._write_forever, args=(connection, asyncio.get_running_loop()), name="store-writer", daemon=True
        )
        self._thread.start()
        return max(newest, self.compacted), rows

    def _take_lock(self) -> None:
        self._lock = os.open(self._path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock)
            raise StorageError(
                str(self._path), "another process holds this store", "Stop it, or choose another data folder"
            ) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=10)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA cache_size=-4096")
        return connection

    def append(self, record: Record) -> None:
        """Queue a record; `committed` tells when it is durable. Revisions must rise from call to call.

        What comes in one turn of the event loop is handed over together: fewer commits, and the writer wakes once. Where commits are slow,
        writers that were acknowledged together write together again.
        """
        self._gathered.append(record)
        loop = asyncio.get_running_loop()
        if self._quickest >= _SLOW:
            if len(self._gathered) == 1:
                self._until = loop.time() + _PATIENCE * self._quickest
            self._consider(loop)
        elif len(self._gathered) == 1:
            loop.call_soon(self._hand_over)

    def _consider(self, loop: asyncio.AbstractEventLoop) -> None:
        """Hand over when as many are there as wrote a moment ago, else look again; the end of a commit that is under way looks, too."""
        if self._handed:
            return
        many = len(self._gathered)
        if 0 < self._expected <= many or many >= _BATCH or loop.time() >= self._until:
            loop.call_soon(self._hand_over_if_idle)
        elif self._timer is None:
            self._seen = many
            self._due = loop.time() + self._quickest * _GAP
            self._timer = loop.call_at(self._due, self._look)

    def _look(self) -> None:
        """Hand over when nobody has come since the last look. A look that is late says nothing: this process slept, and what came is unread."""
        self._timer = None
        loop = asyncio.get_running_loop()
        was_asleep = loop.time() - self._due > self._quickest / 2
        if len(self._gathered) == self._seen and not was_asleep:
            self._hand_over_if_idle()
        elif self._gathered:
            self._consider(loop)

    def _hand_over_if_idle(self) -> None:
        if not self._handed:
            self._hand_over()

    def _hand_over(self) -> None:
        batch, self._gathered = self._gathered, []
        if batch:
            self._handed += len(batch)
            self._queue.put(batch)

    def _finished(self, batch: list[Record], refused: WriteRefused | None) -> None:
        """A commit has ended: whoever is told now, and whoever waits already, is likely to make up the next one."""
        loop = asyncio.get_running_loop()
        self._handed -= len(batch)
        self._expected = len(batch) + len(self._gathered)
        if self._gathered:
            self._until = loop.time() + _PATIENCE * self._quickest
            loop.call_soon(self._hand_over if self._quickest < _SLOW else partial(self._consider, loop))
        self._committed(batch, refused)

    async def compact(self, revision: int) -> None:
        """Drop what was replaced or deleted up to `revision`; what later records replaced is kept.

        Raises:
            WriteRefused: the disk refused.
        """
        if revision > self.compacted:
            await self._run(lambda connection: _compact(connection, revision))
            self.compacted = max(self.compacted, revision)

    async def revision_at(self, at: float) -> int:
        """The newest revision that was written at or before `at` (seconds since the epoch); 0 for none."""
        return await asyncio.to_thread(
            self._read_one, "SELECT COALESCE(MAX(rev), 0) FROM log WHERE at <= ?", (int(at),)
        )

    def _read_one(self, query: str, values: tuple[int | str, ...]) -> int:
        with self._reading:
            assert self._reader is not None
            found: int = self._reader.execute(query, values).fetchone()[0]
            return found

    async def older(self, storage: str, at: float) -> list[str]:
        """Keys of `storage` whose current record was written before `at` (seconds since the epoch)."""
        return await asyncio.to_thread(self._older, storage, int(at))

    def _older(self, storage: str, at: int) -> list[str]:
        with self._reading:
            assert self._reader is not None
            rows = self._reader.execute(
                "SELECT c.key FROM current c JOIN log l ON l.rev = c.rev WHERE c.storage = ? AND l.at < ?",
                (storage, at),
            ).fetchall()
        return [key for (key,) in rows]

    async def history(self, storage: str, since: int, until: int) -> list[Past]:
        """All records of `storage` with since < revision <= until, oldest first."""
        return await asyncio.to_thread(self._history, storage, since, until)

    def _history(self, storage: str, since: int, until: int) -> list[Past]:
        with self._reading:
            assert self._reader is not None
            rows = self._reader.execute(
                "SELECT l.rev, l.key, l.prev, l.deleted, l.value, p.value FROM log l LEFT JOIN log p ON p.rev = l.prev"
                " WHERE l.storage = ? AND l.rev > ? AND l.rev <= ? ORDER BY l.rev",
                (storage, since, until),
            ).fetchall()
        return [
            Past(Record(rev, storage, key, prev, bool(deleted), value), before)
            for rev, key, prev, deleted, value, before in rows
        ]

    async def _run(self, work: Callable[[sqlite3.Connection], object]) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[None] = loop.create_future()

        def job(connection: sqlite3.Connection) -> None:
            try:
                work(connection)
            except sqlite3.Error as error:
                loop.call_soon_threadsafe(_settle, done, WriteRefused(error))
            else:
                loop.call_soon_threadsafe(_settle, done, None)

        self._hand_over()
        self._queue.put(job)
        await done

    def _write_forever(self, connection: sqlite3.Connection, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            item = self._queue.get()
            batch: list[Record] = []
            while isinstance(item, list):
                batch += item
                if len(batch) >= _BATCH or self._queue.empty():
                    break
                item = self._queue.get()
            if batch:
                self._commit(connection, batch, loop)
            if item is None:
                connection.close()
                return
            if not isinstance(item, list):
                item(connection)

    def _commit(self, connection: sqlite3.Connection, batch: list[Record], loop: asyncio.AbstractEventLoop) -> None:
        refused: WriteRefused | None = None
        began = time.perf_counter()
        try:
            _store(connection, batch)
            self._took.append(time.perf_counter() - began)
            self._quickest = min(self._took)
            self.commits += 1
            self.full = False
        except sqlite3.Error as error:
            refused = WriteRefused(error)
            self.full = refused.full
            if connection.in_transaction:
                connection.execute("ROLLBACK")
        loop.call_soon_threadsafe(self._finished, batch, refused)

    def close(self) -> None:
        """Write what is queued, stop the writer, close the file."""
        if self._thread is not None:
            self._hand_over()
            self._queue.put(None)
            self._thread.join()
            self._thread = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def _settle(done: asyncio.Future[None], error: WriteRefused | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _store(connection: sqlite3.Connection, batch: list[Record]) -> None:
    at = int(time.time())
    connection.execute("BEGIN IMMEDIATE")
    log = [(item.rev, item.storage, item.key, item.prev, item.deleted, at, item.value) for item in batch]
    _insert(connection, "INSERT INTO log VALUES ", log)
    _insert(
        connection,
        "INSERT OR REPLACE INTO current VALUES ",
        [(item.storage, item.key, item.rev) for item in batch if not item.deleted],
    )
    dead = [(item.storage, item.key) for item in batch if item.deleted]
    if dead:
        connection.executemany("DELETE FROM current WHERE storage = ? AND key = ?", dead)
    connection.execute("COMMIT")


def _insert(connection: sqlite3.Connection, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
    """Insert rows, many in one statement: each statement that runs passes the interpreter's lock to and fro."""
    start = 0
    for size in _ROWS:
        while len(rows) - start >= size:
            chunk = rows[start : start + size]
            marks = f"({', '.join('?' * len(chunk[0]))})"
            connection.execute(statement + ", ".join([marks] * size), list(chain.from_iterable(chunk)))
            start += size


def _compact(connection: sqlite3.Connection, revision: int) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(
            "DELETE FROM log WHERE rev <= :rev AND rev NOT IN (SELECT rev FROM current)"
            " AND rev NOT IN (SELECT prev FROM log WHERE rev > :rev)",
            {"rev": revision},
        )
        connection.execute(
            "INSERT INTO meta VALUES ('compacted', :rev) ON CONFLICT (name) DO UPDATE SET value = MAX(value, :rev)",
            {"rev": revision},
        )
        connection.execute("COMMIT")
    except sqlite3.Error:
        connection.execute("ROLLBACK")
        raise
    _shrink(connection)


def _shrink(connection: sqlite3.Connection) -> None:
    """Give a large file that is mostly free pages back to the disk, when the disk has the room to do so."""
    pages, free, size = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _PAGES)
    if free * 2 > pages and pages * size > _WORTH_SHRINKING:
        with suppress(sqlite3.Error):  # it stays as large as it was
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
