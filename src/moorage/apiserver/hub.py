"""Current objects in memory, optimistic writes through the store, and the fan-out of changes.

Enters: whole objects with the revision that the writer saw. Leaves: entries (bytes as served), lists at any kept
revision, and changes to watchers and listeners, only after they are durable, in revision order. It must not know kinds.
"""

from __future__ import annotations

import asyncio
import json
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Literal

from pydantic_core import PydanticSerializationError, to_json

from moorage.apiserver.errors import StatusError, storage_refused, too_large
from moorage.apiserver.store import Past, Record, Store, WriteRefused
from moorage.core.meta import JsonObject

LARGEST = 1536 * 1024
"""Bytes of a stored object at most."""
EventType = Literal["ADDED", "MODIFIED", "DELETED"]
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)


def encode(value: object) -> bytes:
    """JSON as it is stored and sent."""
    try:
        return to_json(value)
    except PydanticSerializationError:  # lone surrogates become U+FFFD, as Go decodes them
        text = _encoder.encode(value)
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


class Entry:
    """One object at one revision: the bytes as served, and what selectors ask for."""

    __slots__ = ("_labels", "key", "raw", "read", "rev")

    def __init__(self, key: str, rev: int, raw: bytes) -> None:
        self.key, self.rev, self.raw = key, rev, raw
        self.read: tuple[object, bytes] | None = None  # the bytes as another schema or group shows them, and for whom
        self._labels: dict[str, str] | None = None

    def parse(self) -> JsonObject:
        """A fresh copy of the object."""
        found: JsonObject = json.loads(self.raw)
        return found

    @property
    def labels(self) -> dict[str, str]:
        if self._labels is None:
            self._labels = (
                self.parse()["metadata"].get("labels") or _NO_LABELS if b'"labels":' in self.raw else _NO_LABELS
            )
        return self._labels


_NO_LABELS: dict[str, str] = {}


class Change:
    """One durable change: `entry` is the object after it (its last state, with the new revision, for DELETED)."""

    __slots__ = ("before", "entry", "storage", "type")

    def __init__(self, type_: EventType, storage: str, entry: Entry, before: Entry | None) -> None:
        self.type, self.storage, self.entry, self.before = type_, storage, entry, before

    @property
    def rev(self) -> int:
        return self.entry.rev


class Stale(Exception):
    """The object is not at the revision that the writer saw."""


class Collection:
    """The current objects of one storage name, in key order."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.order: list[str] = []
        self.last = 0
        self.watchers: list[Callable[[Change], None]] = []

    def put(self, entry: Entry) -> Entry | None:
        before = self.entries.get(entry.key)
        if before is None:
            insort(self.order, entry.key)
        self.entries[entry.key] = entry
        self.last = entry.rev
        return before

    def drop(self, key: str, rev: int) -> Entry | None:
        self.last = rev
        before = self.entries.pop(key, None)
        if before is not None:
            del self.order[bisect_left(self.order, key)]
        return before

    def select(self, namespace: str) -> Iterable[Entry]:
        """Entries of one namespace, or all for the empty one."""
        if not namespace:
            return [self.entries[key] for key in self.order]
        start = bisect_left(self.order, f"{namespace}/")
        end = bisect_left(self.order, f"{namespace}0")  # "0" follows "/" in ASCII
        return [self.entries[key] for key in self.order[start:end]]


class Hub:
    """The server's world: what is current, what is being written, who watches."""

    def __init__(self, path: Path) -> None:
        self.store = Store(path, self._committed)
        self.collections: defaultdict[str, Collection] = defaultdict(Collection)
        self.listeners: list[Callable[[Change], None]] = []
        self.revision = 0
        self._given = 0
        self._pending: dict[tuple[str, str], list[asyncio.Future[Entry | None]]] = {}

    def open(self) -> None:
        """Load the current objects.

        Raises:
            StorageError: the store cannot be opened.
        """
        newest, rows = self.store.open()
        self.revision = self._given = max(newest, 1)
        for storage, key, rev, value in rows:
            self.collections[storage].entries[key] = Entry(key, rev, value)
        for collection in self.collections.values():
            collection.order = sorted(collection.entries)
            collection.last = self.revision
        self.collections.default_factory = self._forgotten

    def _forgotten(self) -> Collection:
        """A collection of which nothing is left: what was deleted before the start is still history to its watchers."""
        made = Collection()
        made.last = self.revision
        return made

    def close(self) -> None:
        """Finish queued writes and close the store."""
        self.store.close()

    def get(self, storage: str, key: str) -> Entry | None:
        """The current durable object."""
        return self.collections[storage].entries.get(key)

    async def settled(self, storage: str, key: str) -> Entry | None:
        """The current object once no write of it is under way: what a writer must look at."""
        while (waiting := self._pending.get((storage, key))) is not None:
            turn = asyncio.get_running_loop().create_future()
            waiting.append(turn)
            await turn
        return self.get(storage, key)

    async def write(self, storage: str, key: str, obj: JsonObject, seen: int, *, delete: bool = False) -> Entry:
        """Store `obj` over revision `seen` (0: it must not exist); its resourceVersion is set.

        Raises:
            Stale: somebody else wrote it meanwhile.
            StatusError: the disk refused (507, 503).
        """
        before = await self.settled(storage, key)
        if (before.rev if before else 0) != seen:
            raise Stale
        revision = self._given + 1
        obj["metadata"]["resourceVersion"] = str(revision)
        value = encode(obj)
        if len(value) > LARGEST and not delete:
            raise too_large(f"the object has {len(value)} bytes as it would be stored; at most {LARGEST} are")
        self._given = revision
        record = Record(revision, storage, key, seen, delete, value)
        done: asyncio.Future[Entry | None] = asyncio.get_running_loop().create_future()
        self._pending[storage, key] = [done]  # the writer; those who wait for their turn follow
        self.store.append(record)
        entry = await done
        assert entry is not None
        return entry

    def _committed(self, batch: list[Record], refused: WriteRefused | None) -> None:
        for record in batch:
            entry = self._apply(record) if refused is None else None
            done, *waiting = self._pending.pop((record.storage, record.key))
            if refused is not None and not done.cancelled():
                done.set_exception(storage_refused(refused.full, str(refused)))
            for turn in (done, *waiting):
                if not turn.done():  # neither refused, nor given up by a client that went away
                    turn.set_result(entry)

    def _apply(self, record: Record) -> Entry:
        collection = self.collections[record.storage]
        entry = Entry(record.key, record.rev, record.value)
        before = collection.drop(record.key, record.rev) if record.deleted else collection.put(entry)
        kind: EventType = "DELETED" if record.deleted else "MODIFIED" if before else "ADDED"
        self.revision = record.rev
        change = Change(kind, record.storage, entry, before)
        if collection.watchers:
            for watcher in tuple(collection.watchers):
                watcher(change)
        for listener in self.listeners:
            listener(change)
        return entry

    async def changes(self, storage: str, since: int, until: int) -> list[Change]:
        """Durable changes with since < revision <= until, oldest first.

        Raises:
            StatusError: 410, `since` lies before what is kept.
        """
        self.check_kept(since)
        if self.collections[storage].last <= since:
            return []
        found = [_change(past) for past in await self.store.history(storage, since, until)]
        self.check_kept(since)
        return found

    def check_kept(self, since: int) -> None:
        """Raises 410 when `since` lies before what is kept."""
        if since < self.store.compacted:
            raise StatusError(410, "Expired", f"too old resource version: {since} ({self.store.compacted + 1})")

    async def at(self, storage: str, namespace: str, revision: int) -> list[Entry]:
        """The entries of a namespace (or all) as they stood at `revision`, in key order.

        Raises:
            StatusError: 410, the revision is no longer kept.
        """
        until = self.revision
        now = {entry.key: entry for entry in self.collections[storage].select(namespace)}
        changed: set[str] = set()
        for change in await self.changes(storage, revision, until):
            key = change.entry.key
            if key in changed or (namespace and not key.startswith(f"{namespace}/")):
                continue
            changed.add(key)
            now.pop(key, None)
            if change.before is not None:
                now[key] = change.before
        return [now[key] for key in sorted(now)]


def _change(past: Past) -> Change:
    record = past.record
    kind: EventType = "DELETED" if record.deleted else "ADDED" if past.before is None else "MODIFIED"
    before = None if past.before is None else Entry(record.key, record.prev, past.before)
    return Change(kind, record.storage, Entry(record.key, record.rev, record.value), before)
