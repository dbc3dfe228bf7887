"""GET with watch: history since a revision, then changes as they become durable, never a silent gap.

Each watcher has a queue that is bounded in number and bytes. One that cannot keep up is cut with 410 and lists again;
it never blocks a writer. Encoded events are shared between watchers.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass
from random import uniform

from moorage.apiserver import present
from moorage.apiserver.api import Api
from moorage.apiserver.codec import Form, negotiate
from moorage.apiserver.errors import StatusError, invalid, rv_too_large, too_many
from moorage.apiserver.hub import Change, Collection, Entry, encode
from moorage.apiserver.options import read_version, timeout_of
from moorage.apiserver.request import Request, Response
from moorage.apiserver.selection import Selection, selection
from moorage.apiserver.served import ServedType
from moorage.apiserver.views import bytes_of, object_of
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError, forbidden, not_supported

_LIST_OPTIONS = ResourceType("meta.k8s.io", "v1", "ListOptions", "listoptions")
_MOST_EVENTS, _MOST_BYTES = 10_000, 16 * 1024 * 1024
_WRITE = 64 * 1024
_BOOKMARK_EVERY, _SHORT = 60.0, 2.0
"""Seconds between bookmarks; and of a watch that ends too soon to get one at its end."""
_END_OF_INITIAL = "k8s.io/initial-events-end"


class Watcher:
    """The queue between the hub and one watching client."""

    def __init__(self, collection: Collection, chosen: Selection, user: str = "") -> None:
        self._collection, self._chosen, self.user = collection, chosen, user
        self._queue: deque[Change] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self.overrun = False
        self.ended = False

    def __enter__(self) -> Watcher:
        self._collection.watchers.append(self._notice)
        return self

    def __exit__(self, *_: object) -> None:
        if self._notice in self._collection.watchers:
            self._collection.watchers.remove(self._notice)

    def _notice(self, change: Change) -> None:
        namespace = self._chosen.namespace
        if namespace and not change.entry.key.startswith(f"{namespace}/"):
            return
        self._bytes += len(change.entry.raw)
        if len(self._queue) >= _MOST_EVENTS or self._bytes > _MOST_BYTES:
            self.overrun = True
            self._queue.clear()
            self.__exit__()
        else:
            self._queue.append(change)
        self._wake.set()

    def watches(self, collection: Collection) -> bool:
        """Whether it is told of this collection's changes."""
        return collection is self._collection

    def end(self) -> None:
        """Let the client's stream end, after what has gathered."""
        self.ended = True
        self._wake.set()

    @property
    def over(self) -> bool:
        """Whether nothing more is to be sent."""
        return self.ended and not self._queue

    async def take(self, timeout: float) -> list[Change]:
        """What has gathered; empty when nothing came within `timeout` seconds."""
        if not self._queue and not self.overrun and not self.ended:
            # a change may come in the very turn of the loop in which the time runs out: it is taken, or a bookmark would pass it
            self._wake.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, timeout)):
                    await self._wake.wait()
        taken = list(self._queue)
        self._queue.clear()
        self._bytes = 0
        return taken


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """What a watch asks for; `initial`: None (as the version says), True or False."""

    since: int
    initial: bool
    announce_end: bool
    bookmarks: bool
    seconds: float


async def watch(api: Api, request: Request, served: ServedType) -> Response:
    """A stream of events.

    Raises:
        StatusError: 400, 406, 410, 422, 429, 504.
    """
    chosen = selection(api.registry, served, request)
    form = negotiate(request.headers, request.query)
    options = _options(api, request)
    if options.since > api.hub.revision:
        raise rv_too_large(options.since, api.hub.revision)
    mine = sum(watcher.user == request.user.name for watcher in api.watchers)
    if len(api.watchers) >= api.most_watchers or mine >= api.most_watchers_of_a_user:
        raise too_many("too many watches are open, please try again later")
    if not options.initial:
        api.hub.check_kept(options.since)
    stream = _Stream(api, request, served, chosen, form)
    return Response(200, b"", "application/json", stream=stream.events(options))


def _options(api: Api, request: Request) -> WatchOptions:
    query = request.query
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    asked = request.flag("sendInitialEvents") if "sendInitialEvents" in query else None
    bookmarks = request.flag("allowWatchBookmarks")
    errors = _errors(match, asked)
    if query.get("continue"):
        errors.append(forbidden("resourceVersionMatch", "resourceVersionMatch is forbidden when continue is provided"))
    if errors:
        raise invalid(_LIST_OPTIONS, "", errors)
    since = read_version(version)
    seconds = timeout_of(request, uniform(1800.0, 3600.0))  # noqa: S311 - spreads reconnects
    if asked is None:
        return WatchOptions(since, since == 0, False, bookmarks, seconds)
    fresh = asked or version in ("", "0")
    return WatchOptions(since or api.hub.revision, bool(asked and fresh), asked, bookmarks, seconds)


def _errors(match: str, asked: bool | None) -> list[FieldError]:
    path = "resourceVersionMatch"
    found: list[FieldError] = []
    if asked is None:
        if match:
            why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            found.append(forbidden(path, why))
            if match != "NotOlderThan":
                found.append(not_supported(path, match, ("NotOlderThan",)))
        return found
    if match != "NotOlderThan":
        found.append(forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match not in ("", "NotOlderThan"):
        found.append(not_supported(path, match, ("NotOlderThan",)))
    return found


class _Stream:
    """One client's stream."""

    def __init__(self, api: Api, request: Request, served: ServedType, chosen: Selection, form: Form) -> None:
        self._api, self._request, self._served, self._chosen, self._form = api, request, served, chosen, form
        self._columns_sent = False
        self._sent = 0

    async def events(self, options: WatchOptions) -> AsyncIterator[bytes]:
        """Encoded events, one JSON document a line."""
        hub = self._api.hub
        with Watcher(hub.collections[self._served.storage], self._chosen, self._request.user.name) as watcher:
            self._api.watchers.add(watcher)
            try:
                reached = hub.revision
                async for piece in self._beginning(options, reached):
                    yield piece
                self._sent = reached
                async for piece in self._live(watcher, options):
                    yield piece
            except StatusError as error:
                yield _line("ERROR", encode(error.to_wire()))
            finally:
                self._api.watchers.discard(watcher)

    async def _beginning(self, options: WatchOptions, reached: int) -> AsyncIterator[bytes]:
        hub = self._api.hub
        if options.initial:
            for entry in list(hub.collections[self._served.storage].select(self._chosen.namespace)):
                if self._chosen.matches(entry):
                    yield self._encode("ADDED", entry)
            if options.announce_end and options.bookmarks:
                yield self._bookmark(reached, {_END_OF_INITIAL: "true"})
            return
        for change in await hub.changes(self._served.storage, options.since, reached):
            if piece := self._event(change):
                yield piece

    async def _live(self, watcher: Watcher, options: WatchOptions) -> AsyncIterator[bytes]:
        clock = asyncio.get_running_loop().time
        ends = clock() + options.seconds
        due = clock() + _BOOKMARK_EVERY
        while not watcher.over:
            changes = await watcher.take(min(ends, due if options.bookmarks else ends) - clock())
            if watcher.overrun:
                raise StatusError(410, "Expired", "too old resource version: the watch could not keep up, list again")
            for batch in self._batches(changes):
                yield batch
            if changes:
                self._sent = changes[-1].rev
            now = clock()
            last = now >= ends and options.seconds > _SHORT
            if options.bookmarks and (now >= due or last) and not changes:
                due = now + _BOOKMARK_EVERY
                yield self._bookmark(self._api.hub.revision, {})
            if now >= ends:
                return

    def _batches(self, changes: list[Change]) -> Iterator[bytes]:
        """Events in writes of about 64 KiB, encoded one write at a time: a client that does not read holds one of them."""
        pieces: list[bytes] = []
        size = 0
        for change in changes:
            if change.rev <= self._sent or (piece := self._event(change)) is None:
                continue
            pieces.append(piece)
            size += len(piece)
            if size >= _WRITE:
                yield b"".join(pieces)
                pieces, size = [], 0
        if pieces:
            yield b"".join(pieces)

    def _event(self, change: Change) -> bytes | None:
        """The event as this selection sees it: an object may enter or leave what is selected."""
        chosen = self._chosen
        if chosen.everything:
            if chosen.namespace and not change.entry.key.startswith(f"{chosen.namespace}/"):
                return None
            return self._encode(change.type, change.entry)
        before = change.before is not None and chosen.matches(change.before)
        after = change.type != "DELETED" and chosen.matches(change.entry)
        if after:
            return self._encode("MODIFIED" if before else "ADDED", change.entry)
        return self._encode("DELETED", _last_selected(change)) if before else None

    def _encode(self, kind: str, entry: Entry) -> bytes:
        form = self._form
        if form.shape == "object":
            return _line(kind, bytes_of(self._api.registry, self._served, entry))
        obj = object_of(self._api.registry, self._served, entry)
        if form.shape == "partial":
            return _line(kind, encode(present.partial(obj, form)))
        return _line(kind, encode(self._table(obj)))

    def _table(self, obj: JsonObject) -> JsonObject:
        meta = {"resourceVersion": obj["metadata"]["resourceVersion"]}
        table = present.table(self._api, self._request, self._served, self._form, [obj], meta)
        if self._columns_sent:
            table["columnDefinitions"] = None
        self._columns_sent = True
        return table

    def _bookmark(self, revision: int, annotations: dict[str, str]) -> bytes:
        meta: JsonObject = {"resourceVersion": str(revision)}
        if annotations:
            meta["annotations"] = annotations
        rt = self._served.resource
        obj: JsonObject = {"kind": rt.kind, "apiVersion": rt.api_version, "metadata": meta}
        if self._form.shape == "partial":
            obj = present.partial(obj, self._form)
        elif self._form.shape == "table":
            row = {"cells": [None], "object": present.partial(obj, self._form)}
            obj = {
                "kind": "Table",
                "apiVersion": f"meta.k8s.io/{self._form.version}",
                "metadata": {"resourceVersion": str(revision)},
                "columnDefinitions": None,
                "rows": [row],
            }
        return _line("BOOKMARK", encode(obj))


def _last_selected(change: Change) -> Entry:
    """The state that was selected before, with the revision of the change that ended it."""
    if change.type == "DELETED" or change.before is None:
        return change.entry
    obj = change.before.parse()
    obj["metadata"]["resourceVersion"] = str(change.rev)
    return Entry(change.before.key, change.rev, encode(obj))


def _line(kind: str, obj: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), obj)
