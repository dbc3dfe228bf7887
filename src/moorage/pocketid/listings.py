"""Lists of a server that all passes share: one request a page for as long as a resync, however many objects ask.

Enters: who asks, how to fetch, the time, how old an answer may be. Leaves: items by id. It is a memory of a moment ago: a room looks at the one
object again before it writes, and notes what it wrote, so that an old list causes a look too many and never a wrong write.
Source: contracts of issue 5, one paged list an instance.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Generic, Protocol, TypeVar

from .rest_errors import PocketIDError, RateLimited, TooMuch

QUIET: Final = timedelta(seconds=2)
"""How long a failed fetch answers for the others of its reader: a server in trouble is not asked by every object in turn."""
LONG: Final = timedelta(seconds=30)
"""The same for a list that is too much: to find that out takes long."""
KNOWN: Final = timedelta(days=1)
"""How long a reader is remembered that asks no more: its key was exchanged, or its instance is gone."""


class Identified(Protocol):
    """Something with an id."""

    @property
    def id(self) -> str:
        """Its id at the server."""
        ...


T = TypeVar("T", bound=Identified)


@dataclass
class Listing(Generic[T]):
    """One list of one server.

    Args:
        called: what an item is found by beside its id.
        kept: of an item that is noted what is kept, by what was kept of it before.
    """

    called: Callable[[T], str] | None = None
    kept: Callable[[T, T], T] | None = None
    _items: dict[str, T] = field(default_factory=dict)
    _named: dict[str, dict[str, T]] = field(default_factory=dict)
    _fetched: dict[str, datetime] = field(default_factory=dict)
    _failures: dict[str, tuple[PocketIDError, datetime]] = field(default_factory=dict)
    _noted: dict[str, T | None] | None = None
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def get(
        self, reader: str, fetch: Callable[[], Awaitable[Iterable[T]]], now: datetime, max_age: float
    ) -> Mapping[str, T]:
        """Items by id, fetched again when the reader's last fetch is older than `max_age` seconds. It follows later answers: walk it before you wait.

        Args:
            reader: whose right to see the list the server has judged, such as a digest of a key: nobody reads by the right of another, nor fails by it.

        Raises:
            PocketIDError: the list could not be fetched, now or a moment ago.
        """
        async with self._lock:
            fetched, failure = self._fetched.get(reader), self._failures.get(reader)
            if fetched is not None and timedelta(0) <= now - fetched < timedelta(seconds=max_age):
                return self._items
            if failure is not None and now < failure[1]:
                raise failure[0]
            await self._fetch(reader, fetch, now)
            return self._items

    def named(self, name: str) -> tuple[T, ...]:
        """Items that are called so, of the last `get` and what was noted since."""
        return tuple(self._named.get(name, {}).values())

    def those(self, wanted: Callable[[T], bool]) -> tuple[T, ...]:
        """Items of which this holds, of the last `get` and what was noted since."""
        return tuple(item for item in self._items.values() if wanted(item))

    async def _fetch(self, reader: str, fetch: Callable[[], Awaitable[Iterable[T]]], now: datetime) -> None:
        self._noted = {}
        self._failures = {who: failure for who, failure in self._failures.items() if now < failure[1]}
        try:
            found = {item.id: item for item in await fetch()}
        except PocketIDError as error:
            wait = LONG if isinstance(error, TooMuch) else QUIET
            wait = timedelta(seconds=error.retry_after) if isinstance(error, RateLimited) else wait
            self._failures[reader] = (error, now + max(wait, QUIET))
            raise
        finally:
            noted, self._noted = self._noted or {}, None
        self._items, self._named = {}, {}
        self._fetched = {who: then for who, then in self._fetched.items() if now - then < KNOWN} | {reader: now}
        for id, item in {**found, **noted}.items():
            self._put(id, item)

    def note(self, item: T) -> None:
        """What the server answered about one item."""
        self._put(item.id, item)
        if self._noted is not None:
            self._noted[item.id] = item

    def forget(self, id: str) -> None:
        """The item is gone."""
        self._put(id, None)
        if self._noted is not None:
            self._noted[id] = None

    def expire(self) -> None:
        """Fetch it anew for the next who asks: a write was sent, and nobody knows what became of it."""
        self._fetched.clear()

    def let_go(self) -> None:
        """Keep nothing, and answer with nothing that was kept."""
        self._items, self._named, self._fetched = {}, {}, {}

    def _put(self, id: str, item: T | None) -> None:
        before = self._items.get(id)
        if item is not None and before is not None and self.kept is not None:
            item = self.kept(before, item)
        if item is None:
            self._items.pop(id, None)
        else:
            self._items[id] = item
        if self.called is None:
            return
        if before is not None:
            name = self.called(before)
            del self._named[name][id]
            if not self._named[name]:
                del self._named[name]
        if item is not None:
            self._named.setdefault(self.called(item), {})[id] = item
