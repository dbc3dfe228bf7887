"""Fetched metadata documents of one process: when each is fetched, which one is the last good, who is woken.

Enters: a source and the time. Leaves: the last good document, or why there is none. Fetches run beside the passes: one for each URL and
set of roots, four in all. It writes nothing and judges no content itself. Source: decisions, Keystone 16; case B30.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from weakref import WeakKeyDictionary

import structlog

from moorage.core.backoff import Backoff
from moorage.core.meta import Key
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.net.guard import FetchFailed, UnusableRoots
from moorage.net.sessions import Sessions
from moorage.runtime.world import World

from .materials import DOCUMENT_LIMIT, Document, Fault
from .types import KIND

TTL: Final = timedelta(hours=1)
"""After a successful fetch; a provider may ask for less (cacheDuration), and half of what is left until validUntil is a bound, too."""
SHORTEST: Final = timedelta(minutes=1)
RETRY: Final = Backoff(base=15.0, cap=600.0)
HINT: Final = "; the operator's log says why (a private address needs --federation-metadata-allow-cidrs)"
"""The same for every failure, so it tells nothing about what stands at an address."""
_CONCURRENT: Final = 4
_log = structlog.get_logger("moorage.fetch")

Read = Callable[[bytes, datetime], Document | Fault]
"""Judges content at a time."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a document is fetched.

    Args:
        subject: whose document it is, such as an issuer; the last good one of another subject never stands in.
        read: the parser, with the subject in it.
        is_same: whether two accepted contents say the same.
        roots: PEM; None: the system's.
        asked: what a person wrote into an annotation; another value fetches at once.
    """

    url: str
    subject: str
    read: Read = field(compare=False)
    is_same: Callable[[bytes, bytes], bool] = field(compare=False)
    roots: bytes | None = field(default=None, repr=False)
    asked: str = ""


@dataclass
class _Entry:
    source: Source
    good: Document | None = None
    failure: Fault | None = None
    failures: int = 0
    due: datetime | None = None
    running: asyncio.Task[None] | None = None

    @property
    def is_idle(self) -> bool:
        return self.running is None or self.running.done()

    def answer(self, now: datetime) -> Document | Fault:
        if self.good is None:
            waits = Fault("MetadataUnavailable", f"{self.source.url} has not been fetched yet", pending=True)
            return self.failure or waits
        ends = self.good.expires
        if ends is not None and ends <= now:
            since = f"the metadata of {self.source.url} ended at {ends:%Y-%m-%dT%H:%M:%SZ}"
            return Fault("MetadataRefused", f"{since} (validUntil), and no newer one could be had")
        if self.failure is None:
            return self.good
        return replace(self.good, stale=True, why=self.failure.message)


class Memory:
    """The documents of all backends.

    Args:
        chance: a number from 0 to 1, so that backends of one age are not all fetched at once.
    """

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._entries: dict[Key, _Entry] = {}
        self._flights: dict[tuple[str, bytes | None], asyncio.Task[bytes]] = {}
        self._gate = asyncio.Semaphore(_CONCURRENT)

    def forget(self, key: Key) -> None:
        """The backend is gone, or its document is not fetched any more."""
        found = self._entries.pop(key, None)
        if found is not None and found.running is not None:
            found.running.cancel()

    def look(self, world: World, keys: tuple[Key, Key], source: Source, last_good: bytes | None) -> Document | Fault:
        """What is known now; a fetch begins beside it when one is due.

        Args:
            keys: of the backend and of its Keystone, which are woken.
        """
        now = world.now()
        entry = self._entry(keys[0], source, last_good, now)
        if entry.is_idle:
            if entry.due is None or entry.due <= now:
                entry.running = asyncio.create_task(self._refresh(world, keys, entry), name=f"metadata-{keys[0]}")
            else:
                _wake(world, keys, _next(entry, now))
        return entry.answer(now)

    def _entry(self, key: Key, source: Source, last_good: bytes | None, now: datetime) -> _Entry:
        known = self._entries.get(key)
        if known is not None and known.source == source:
            return known
        self.forget(key)
        made = self._entries[key] = _Entry(source)
        if known is not None and known.source.subject == source.subject:
            made.good = known.good
        elif last_good is not None and isinstance(found := source.read(last_good, now), Document):
            made.good = found
        return made

    async def _refresh(self, world: World, keys: tuple[Key, Key], entry: _Entry) -> None:
        before = entry.answer(world.now())
        found = await self._found(world, entry.source)
        now = world.now()
        if isinstance(found, Document):
            self._keep(entry, replace(found, fetched=now), now)
        else:
            entry.failure = found
            entry.due = now + timedelta(seconds=RETRY.delay(entry.failures, self._chance()))
            entry.failures += 1
        if _differs(before, entry.answer(now)):
            _wake(world, keys, 0.0)
        else:
            _wake(world, keys, _next(entry, now))

    def _keep(self, entry: _Entry, found: Document, now: datetime) -> None:
        if entry.good is not None and entry.source.is_same(entry.good.content, found.content):
            found = replace(found, content=entry.good.content)
        entry.good, entry.failure, entry.failures = found, None, 0
        spans = [
            TTL,
            *([found.max_age] if found.max_age else []),
            *([(found.expires - now) / 2] if found.expires else []),
        ]
        entry.due = now + max(SHORTEST, min(spans)) * (1.0 - 0.1 * self._chance())

    async def _found(self, world: World, source: Source) -> Document | Fault:
        try:
            content = await asyncio.shield(self._flight(world.http, source))
        except FetchFailed as error:
            return Fault("MetadataUnavailable", f"{error}{HINT}")
        except UnusableRoots as error:
            return Fault("CABundleUnavailable", f"the CA bundle for {source.url} cannot be used: {error}")
        except Exception:  # noqa: BLE001  a bug must neither end the fetching of a document nor stay unseen
            _log.exception("bug in a fetch", url=source.url)
            return Fault("MetadataUnavailable", f"{FetchFailed(source.url)}{HINT}")
        found = source.read(content, world.now())
        if isinstance(found, Fault):
            _log.warning("metadata refused", url=source.url, reason=found.reason, why=found.message)
        return found

    def _flight(self, http: Sessions, source: Source) -> asyncio.Task[bytes]:
        """The fetch of this URL that is under way, or a new one."""
        key = (source.url, source.roots)
        found = self._flights.get(key)
        if found is None:
            found = self._flights[key] = asyncio.create_task(self._fetch(http, source), name="metadata-fetch")
            found.add_done_callback(lambda flight: self._landed(key, flight))
        return found

    def _landed(self, key: tuple[str, bytes | None], flight: asyncio.Task[bytes]) -> None:
        self._flights.pop(key, None)
        if not flight.cancelled():
            flight.exception()  # seen, also when nobody waits for it any more

    async def _fetch(self, http: Sessions, source: Source) -> bytes:
        async with self._gate:
            return await http.fetch(source.url, limit=DOCUMENT_LIMIT, roots=source.roots)


def _differs(one: Document | Fault, other: Document | Fault) -> bool:
    """Whether a pass would make something else of it; when it was fetched does not count."""
    if isinstance(one, Document) and isinstance(other, Document):
        return replace(one, fetched=None, expires=None) != replace(other, fetched=None, expires=None)
    return one != other


def _next(entry: _Entry, now: datetime) -> float:
    """Seconds until the next fetch, or until the document ends if that is sooner."""
    moments = [entry.due or now]
    if entry.good is not None and entry.good.expires is not None and entry.good.expires > now:
        moments.append(entry.good.expires)
    return max(0.0, (min(moments) - now).total_seconds())


def _wake(world: World, keys: tuple[Key, Key], after: float) -> None:
    world.wake(KIND.resource, keys[0], after)
    world.wake(KEYSTONE.resource, keys[1], after)


_MEMORIES: WeakKeyDictionary[Sessions, Memory] = WeakKeyDictionary()


def memory_of(http: Sessions) -> Memory:
    """The memory that belongs to these sessions: one for all rooms of a process."""
    found = _MEMORIES.get(http)
    if found is None:
        found = _MEMORIES[http] = Memory()
    return found
