"""The shared memory of one resource type: list, then watch for ever.

Enters: a client and a scope. Leaves: objects by key and by index, and a call to each listener for each change. Objects are
kept without `managedFields` and must not be changed by readers. It survives 410, ERROR events, silence and server restarts;
what changed meanwhile reaches the listeners from the fresh list (case B76).

Revisions of one type are ordered, so `note` (the answer of our own write) counts until the stream has passed it, and an
older event never undoes it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable
from contextlib import aclosing
from typing import Any

import structlog

from moorage.core.backoff import Backoff
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.kube.client import Client
from moorage.kube.errors import ApiError, ConnectionFailed, Expired, NotFound
from moorage.kube.watch import WatchEvent, follow, scope

Listener = Callable[[JsonObject | None, JsonObject | None], None]
"""Called with (old, new): None, new is an addition; old, None a deletion. It must not block."""

_log = structlog.get_logger("moorage.reflector")


class Reflector:
    """One resource type, in one namespace or all."""

    def __init__(self, client: Client, resource: ResourceType, *, namespace: str = "") -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.backoff = Backoff(base=0.2, cap=30.0, jitter=0.5)
        self._client = client
        self._scope = scope(resource, namespace)
        self._objects: dict[Key, JsonObject] = {}
        self._namespaces: dict[str, dict[Key, JsonObject]] = {}
        self._indices: dict[str, _Index] = {}
        self._listeners: list[Listener] = []
        self._passed = 0
        self._gone: dict[Key, str] = {}

    # --- reading

    def get(self, key: Key) -> JsonObject | None:
        """The object as last seen."""
        return self._objects.get(key)

    def list(self, namespace: str | None = None, *, index: str = "", value: str = "") -> tuple[JsonObject, ...]:
        """Objects of an index value, a namespace, or all; in no promised order.

        Raises:
            KeyError: no such index.
        """
        if index:
            keys: Iterable[Key] = self._indices[index].keys(value)
            return tuple(self._objects[key] for key in keys if namespace is None or key.namespace == namespace)
        if namespace is None:
            return tuple(self._objects.values())
        return tuple(self._namespaces.get(namespace, {}).values())

    def __len__(self) -> int:
        return len(self._objects)

    # --- declaring

    def add_index(self, name: str, values: Callable[[JsonObject], Iterable[str]], *, declared: bool = False) -> None:
        """Make an index (`room.Index`); objects that are there already are put into it."""
        index = self._indices[name] = _Index(values, declared=declared)
        for key, obj in self._objects.items():
            index.put(key, obj)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear of every change from now on, and of all objects that are there as additions; the answer ends it."""
        self._listeners.append(listener)
        for obj in tuple(self._objects.values()):
            listener(None, obj)
        return lambda: self._listeners.remove(listener)

    # --- our own writes

    def note(self, obj: JsonObject) -> None:
        """Take the answer of our own write, so that the next pass reads it."""
        key, version = key_of(obj), _version(obj)
        known = self._objects.get(key)
        if version <= self._passed or (known is not None and version <= _version(known)):
            return
        self._store(key, obj)

    def forget(self, key: Key, uid: str) -> None:
        """Take the answer of our own delete: the object of this uid is gone."""
        known = self._objects.get(key)
        if known is not None and known["metadata"].get("uid", "") == uid:
            self._gone[key] = uid
            self._remove(key)

    # --- the loop

    async def run(self) -> None:
        """List and watch until cancelled.

        A type that the server provably does not serve (its CRD is not there yet) counts as synced and empty.
        """
        failures = 0
        while True:
            try:
                since = await self._list()
                failures = 0
                async with aclosing(follow(self._client, self._scope, since, trouble=self._trouble)) as events:
                    async for event in events:
                        self._take(event)
            except Expired as error:
                _log.info("watch expired, listing again", resource=self.resource.group_resource, why=error.message)
            except NotFound as error:
                failures += 1
                if not self.synced.is_set() and await self._is_absent():
                    self.synced.set()
                self._trouble(error)
            except (ApiError, ConnectionFailed) as error:
                self._trouble(error)
                failures += 1
            except Exception:  # noqa: BLE001  an answer that nobody foresaw must not end the reflector
                _log.exception("bug in a reflector", resource=self.resource.group_resource)
                failures += 1
            await asyncio.sleep(self.backoff.delay(failures, random.random()))  # noqa: S311

    async def _is_absent(self) -> bool:
        """Whether discovery says that the type is not served; a stray 404 of a proxy proves nothing."""
        group, version = self.resource.group, self.resource.version
        try:
            if not group:
                served = await self._client.raw("GET", f"/api/{version}")
            else:
                groups = await self._client.raw("GET", "/apis")
                if not any(item.get("name") == group for item in groups["groups"]):
                    return True
                served = await self._client.raw("GET", f"/apis/{group}/{version}")
            return not any(item.get("name") == self.resource.plural for item in served["resources"])
        except (ApiError, ConnectionFailed, KeyError, TypeError):
            return False

    def _trouble(self, error: Exception) -> None:
        _log.warning("cannot watch", resource=self.resource.group_resource, error=str(error))

    async def _list(self) -> str:
        listing = await self._client.list(self.resource, self._scope.namespace)
        self._replace(listing.items, _number(listing.resource_version))
        self.synced.set()
        return listing.resource_version

    def _replace(self, items: Iterable[JsonObject], version: int) -> None:
        """Take a fresh list. A list older than the stream means that the server's history began anew: it counts whole."""
        fresh = {key_of(item): item for item in items}
        began_anew = version < self._passed
        self._gone.clear()
        self._passed = version
        for key, obj in list(self._objects.items()):
            if key not in fresh and (began_anew or _version(obj) <= version):
                self._remove(key)
        for key, obj in fresh.items():
            known = self._objects.get(key)
            if known is None or began_anew or _version(obj) > _version(known):
                self._store(key, obj)

    def _take(self, event: WatchEvent) -> None:
        version = _number(event.resource_version)
        if event.type != "BOOKMARK" and (not version or version > self._passed):
            self._change(event, version)
        self._passed = max(self._passed, version)

    def _change(self, event: WatchEvent, version: int) -> None:
        key = key_of(event.object)
        known = self._objects.get(key)
        if event.type == "DELETED":
            if self._gone.get(key) == _uid(event.object):
                del self._gone[key]
            if known is not None and _version(known) <= version:
                self._remove(key)
        elif self._gone.get(key) != _uid(event.object) and (known is None or version > _version(known)):
            self._store(key, event.object)

    # --- the store

    def _store(self, key: Key, obj: JsonObject) -> None:
        obj = _slim(obj)
        old = self._objects.get(key)
        self._objects[key] = obj
        self._namespaces.setdefault(key.namespace, {})[key] = obj
        same = old is not None and _is_same_declaration(old, obj)
        for index in self._indices.values():
            if not (same and index.declared):
                index.put(key, obj)
        self._tell(old, obj)

    def _remove(self, key: Key) -> None:
        old = self._objects.pop(key)
        self._namespaces[key.namespace].pop(key)
        if not self._namespaces[key.namespace]:
            del self._namespaces[key.namespace]
        for index in self._indices.values():
            index.put(key, None)
        self._tell(old, None)

    def _tell(self, old: JsonObject | None, new: JsonObject | None) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(old, new)
            except Exception:  # noqa: BLE001  one listener's bug must not stop the others
                _log.exception("a listener failed", resource=self.resource.group_resource)


class _Index:
    """Which objects have a value; what each had before is kept, because finding it out may cost a whole parse."""

    def __init__(self, values: Callable[[JsonObject], Iterable[str]], *, declared: bool) -> None:
        self._values, self.declared = values, declared
        self._keys: dict[str, dict[Key, None]] = {}
        self._held: dict[Key, frozenset[str]] = {}

    def _of(self, obj: JsonObject) -> frozenset[str]:
        try:
            return frozenset(self._values(obj))
        except Exception:  # noqa: BLE001  a room's bug must not stop the shared reflector
            _log.exception("an index function failed", kind=obj.get("kind"))
            return frozenset()

    def keys(self, value: str) -> tuple[Key, ...]:
        return tuple(self._keys.get(value, ()))

    def put(self, key: Key, obj: JsonObject | None) -> None:
        """Take the object as it is now; None when it is gone."""
        before = self._held.get(key, frozenset())
        after = frozenset() if obj is None else self._of(obj)
        if before == after:
            return
        self._held.pop(key, None)
        if after:
            self._held[key] = after
        for value in before - after:
            found = self._keys[value]
            found.pop(key, None)
            if not found:
                del self._keys[value]
        for value in after - before:
            self._keys.setdefault(value, {})[key] = None


def _slim(obj: JsonObject) -> JsonObject:
    meta: dict[str, Any] = obj["metadata"]
    if "managedFields" not in meta:
        return obj
    return {**obj, "metadata": {name: value for name, value in meta.items() if name != "managedFields"}}


def _is_same_declaration(old: JsonObject, new: JsonObject) -> bool:
    """Whether both are one object with one spec; a type without generations never says so."""
    before, after = old["metadata"], new["metadata"]
    generation = after.get("generation", 0)
    return bool(generation) and before.get("generation") == generation and before.get("uid") == after.get("uid")


def _uid(obj: JsonObject) -> str:
    return str(obj["metadata"].get("uid", ""))


def _version(obj: JsonObject) -> int:
    return _number(obj["metadata"].get("resourceVersion", ""))


def _number(version: str) -> int:
    """Since Kubernetes 1.35 resourceVersions of a type are decimal numbers that grow; no number reads as 0."""
    return int(version) if version.isdecimal() else 0
