"""Garbage collection by owner references: Background, Foreground, Orphan.

Enters: changes of any kind. Leaves: dependents deleted or freed, finalizers of the two waiting policies removed. Owners are
found by their coordinates and compared by uid. What cannot be looked up is never deleted. Source: Kubernetes, "Garbage Collection".
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Literal

import structlog

from moorage.apiserver.api import Api
from moorage.apiserver.delete import FOREGROUND, ORPHAN, collect, let_go
from moorage.apiserver.errors import StatusError
from moorage.apiserver.hub import Change, Entry, Stale
from moorage.apiserver.options import DeleteOptions
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

Item = tuple[str, str]
Standing = Literal["solid", "dangling", "waiting"]
_RETRY = 1.0
_OWNED = b'"ownerReferences":['
_GOING = b'"deletionTimestamp":'
log = structlog.get_logger(__name__)


class Collector:
    """Watches owners and dependents of one server."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._dependents: defaultdict[str, set[Item]] = defaultdict(set)
        self._owners: dict[Item, frozenset[str]] = {}
        self._queue: asyncio.Queue[Item] = asyncio.Queue()
        self._queued: set[Item] = set()
        api.hub.listeners.append(self._notice)

    def load(self) -> None:
        """Look at what is stored."""
        for storage, collection in self._api.hub.collections.items():
            for entry in collection.select(""):
                self._index(storage, entry)

    def _index(self, storage: str, entry: Entry) -> None:
        item = (storage, entry.key)
        if _OWNED in entry.raw:
            owners = entry.parse()["metadata"].get("ownerReferences") or ()
            uids = frozenset(owner["uid"] for owner in owners)
            for uid in self._owners.get(item, frozenset()) - uids:
                self._dependents[uid].discard(item)
            for uid in uids:
                self._dependents[uid].add(item)
            self._owners[item] = uids
            self._enqueue(item)
        elif item in self._owners:
            self._forget(item)
        if _GOING in entry.raw and (b'"foregroundDeletion"' in entry.raw or b'"orphan"' in entry.raw):
            self._enqueue(item)

    def _forget(self, item: Item) -> frozenset[str]:
        uids = self._owners.pop(item, frozenset())
        for uid in uids:
            self._dependents[uid].discard(item)
            if not self._dependents[uid]:
                del self._dependents[uid]
        return uids

    def _enqueue(self, item: Item) -> None:
        if item not in self._queued:
            self._queued.add(item)
            self._queue.put_nowait(item)

    def _notice(self, change: Change) -> None:
        item = (change.storage, change.entry.key)
        if change.type != "DELETED":
            self._index(change.storage, change.entry)
            if _GOING in change.entry.raw and self._dependents:
                self._wake_dependents(change.entry)
            return
        if item in self._owners:
            self._wake_owners(change.entry)
            self._forget(item)
        if self._dependents:
            self._wake_dependents(change.entry)

    def _wake_dependents(self, entry: Entry) -> None:
        for dependent in tuple(self._dependents.get(entry.parse()["metadata"]["uid"], ())):
            self._enqueue(dependent)

    def _wake_owners(self, entry: Entry) -> None:
        """A dependent went: an owner in foreground deletion may go on."""
        meta = entry.parse()["metadata"]
        for owner in meta.get("ownerReferences") or ():
            found = self._owner(owner, meta.get("namespace", ""))
            if found is not None and found[1] is not None:
                self._enqueue((found[0].storage, found[1].key))

    def _owner(self, owner: JsonObject, namespace: str) -> tuple[ServedType, Entry | None] | None:
        """The kind and the object that an owner reference names; None when it cannot be looked up."""
        served = self._api.registry.of_group_kind(owner["apiVersion"], owner["kind"])
        if served is None or (served.resource.namespaced and not namespace):
            return None
        key = f"{namespace}/{owner['name']}" if served.resource.namespaced else owner["name"]
        return served, self._api.hub.get(served.storage, key)

    async def run(self) -> None:
        """Work through what was noticed."""
        while True:
            item = await self._queue.get()
            self._queued.discard(item)
            try:
                await self._process(item)
            except Stale:
                self._enqueue(item)
            except StatusError as error:
                if error.code != 404:
                    log.info("collection_delayed", key=item[1], kind=item[0], why=error.message)
                    asyncio.get_running_loop().call_later(_RETRY, self._enqueue, item)

    async def _process(self, item: Item) -> None:
        storage, key = item
        served = self._api.registry.of_storage(storage)
        entry = await self._api.hub.settled(storage, key)
        if served is None or entry is None:
            return
        obj = entry.parse()
        finalizers = obj["metadata"].get("finalizers") or ()
        going = obj["metadata"].get("deletionTimestamp") is not None
        if going and ORPHAN in finalizers:
            await self._orphan(served, obj, entry)
        elif going and FOREGROUND in finalizers:
            await self._foreground(served, obj, entry)
        elif obj["metadata"].get("ownerReferences"):
            await self._dependent(served, obj, entry)

    def _standing(self, owner: JsonObject, namespace: str) -> Standing:
        found = self._owner(owner, namespace)
        if found is None:
            return "solid"
        entry = found[1]
        meta = entry.parse()["metadata"] if entry else {}
        if entry is None or meta["uid"] != owner["uid"]:
            return "dangling"
        going = meta.get("deletionTimestamp") and FOREGROUND in (meta.get("finalizers") or ())
        return "waiting" if going else "solid"

    async def _dependent(self, served: ServedType, obj: JsonObject, entry: Entry) -> None:
        meta = obj["metadata"]
        owners = meta["ownerReferences"]
        standings = [self._standing(owner, meta.get("namespace", "")) for owner in owners]
        if "solid" in standings:
            kept = [owner for owner, standing in zip(owners, standings, strict=True) if standing == "solid"]
            if len(kept) != len(owners):
                await self._set_owners(served, obj, entry, kept)
            return
        if meta.get("deletionTimestamp"):
            return
        policy = "Foreground" if "waiting" in standings and self._dependents.get(meta["uid"]) else "Background"
        finalizers = meta.get("finalizers") or ()
        policy = "Orphan" if ORPHAN in finalizers else "Foreground" if FOREGROUND in finalizers else policy
        options = DeleteOptions(policy, uid=meta["uid"], version=meta["resourceVersion"])
        await collect(self._api, served, entry.key, options)

    async def _set_owners(self, served: ServedType, obj: JsonObject, entry: Entry, kept: list[JsonObject]) -> None:
        meta = {**obj["metadata"], "ownerReferences": kept}
        if not kept:
            del meta["ownerReferences"]
        await self._api.commit(served, entry.key, {**obj, "metadata": meta}, entry.rev)

    async def _orphan(self, served: ServedType, obj: JsonObject, entry: Entry) -> None:
        """Free all dependents, then let the owner go."""
        uid = obj["metadata"]["uid"]
        for storage, key in tuple(self._dependents.get(uid, ())):
            kind = self._api.registry.of_storage(storage)
            dependent = await self._api.hub.settled(storage, key)
            if kind is None or dependent is None:
                continue
            wire = dependent.parse()
            kept = [owner for owner in wire["metadata"].get("ownerReferences") or () if owner["uid"] != uid]
            await self._set_owners(kind, wire, dependent, kept)
        await let_go(self._api, served, entry, ORPHAN)

    async def _foreground(self, served: ServedType, obj: JsonObject, entry: Entry) -> None:
        """Let the owner go when nothing that blocks it is left."""
        uid = obj["metadata"]["uid"]
        blocking = False
        for storage, key in tuple(self._dependents.get(uid, ())):
            dependent = self._api.hub.get(storage, key)
            owners = dependent.parse()["metadata"].get("ownerReferences") or () if dependent else ()
            if any(owner["uid"] == uid for owner in owners):
                self._enqueue((storage, key))
                blocking |= any(owner["uid"] == uid and owner.get("blockOwnerDeletion") for owner in owners)
        if not blocking:
            await let_go(self._api, served, entry, FOREGROUND)
