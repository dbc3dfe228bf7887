"""What observe and apply get: the cache to read, the client to write, and the answers of writes noted at once.

Enters: shared reflectors and a client whose writes are fenced by leadership. Leaves: objects. It decides nothing. Every
write goes through here, so a pass reads its own writes and a child is written only when it differs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from moorage.core.digest import json_digest
from moorage.core.meta import JsonObject, Key, ResourceType, key_of
from moorage.kube.client import Client, PatchType
from moorage.kube.errors import Conflict, NotFound

from .drift import APPLIED, contains, fingerprint
from .ownership import ForeignObject, refuse_foreign
from .reflector import Reflector

if TYPE_CHECKING:
    from moorage.net.sessions import Sessions

__all__ = ["Caches", "ForeignObject", "World"]


class Caches:
    """The reflectors of all watched types."""

    def __init__(self, reflectors: Mapping[ResourceType, Reflector]) -> None:
        self._reflectors = reflectors
        self.writing: set[tuple[ResourceType, Key]] = set()
        """Objects that passes are writing just now: a pass knows what it writes, and need not be woken by it."""

    def reflector(self, rt: ResourceType) -> Reflector:
        """The reflector of a type.

        Raises:
            KeyError: no room watches this type.
        """
        try:
            return self._reflectors[rt]
        except KeyError:
            raise KeyError(f"{rt.group_resource} is not cached: name it in the room's watches") from None

    def holds(self, rt: ResourceType) -> bool:
        """Whether the type is cached."""
        return rt in self._reflectors

    def get(self, rt: ResourceType, key: Key) -> JsonObject | None:
        """The object as last seen, own writes included, or None."""
        return self.reflector(rt).get(key)

    def list(
        self, rt: ResourceType, namespace: str | None = None, *, index: str = "", value: str = ""
    ) -> tuple[JsonObject, ...]:
        """Objects of an index value, a namespace, or all namespaces (None)."""
        return self.reflector(rt).list(namespace, index=index, value=value)

    def note(self, rt: ResourceType, obj: JsonObject) -> None:
        """Take the answer of a write; types that nobody watches are not kept."""
        if rt in self._reflectors:
            self._reflectors[rt].note(obj)

    def forget(self, rt: ResourceType, key: Key, uid: str) -> None:
        """Take the answer of a delete."""
        if rt in self._reflectors:
            self._reflectors[rt].forget(key, uid)


def _utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass
class World:
    """The doors to everything outside.

    Args:
        http: sessions for other servers (Keystone, LDAP needs none); they resolve Services in one-machine mode.
        local: one-machine mode.
        leading: raises when this process may not write (any more); rooms ask it before they write to other servers.
        wrote: called by rooms when they write to another server, so that the pass tells of it.
        wakers: by kind, how a key gets into the queue of its controller after some seconds; controllers put theirs in.
    """

    client: Client
    cache: Caches
    http: Sessions
    local: bool = False
    clock: Callable[[], datetime] = _utc_now
    leading: Callable[[], None] = lambda: None
    wrote: Callable[[], None] = lambda: None
    wakers: dict[ResourceType, Callable[[Key, float], None]] = field(default_factory=dict, repr=False)
    _settled: dict[tuple[ResourceType, Key], tuple[str, str]] = field(default_factory=dict, init=False, repr=False)

    def now(self) -> datetime:
        """The time, aware, UTC."""
        return self.clock()

    def wake(self, rt: ResourceType, key: Key, after: float = 0.0) -> None:
        """Have an object looked at in `after` seconds, because something besides the API server changed; nothing if no controller runs."""
        if waker := self.wakers.get(rt):
            waker(key, after)

    def counting(self, guard: Callable[[], None]) -> World:
        """The same world, whose writes ask `guard` too."""
        twin = object.__new__(World)
        twin.__dict__.update(self.__dict__)
        twin.client = self.client.fenced(guard)
        twin.wrote = guard
        return twin

    # --- children

    async def ensure(self, rt: ResourceType, wanted: JsonObject) -> JsonObject:
        """The live child, applied first when it is absent or differs; no request when it does not.

        It differs when another `wanted` was applied last (digest annotation `moorage.internal/applied`) or when it does
        not hold a value of `wanted` (drift). Foreign additions stay.

        Raises:
            ForeignObject: it exists and is not controlled by the controller that `wanted` names.
        """
        key, mark = key_of(wanted), fingerprint(wanted)
        live = await self._live(rt, key)
        if live is not None:
            refuse_foreign(rt, live, wanted)
            if self._is_current(rt, live, wanted, mark):
                return live
        answer = await self._apply(rt, _marked(wanted, mark), known=live is not None)
        self._settled[rt, key] = (json_digest(wanted), answer["metadata"]["resourceVersion"])
        return answer

    async def _live(self, rt: ResourceType, key: Key) -> JsonObject | None:
        if self.cache.holds(rt):
            return self.cache.get(rt, key)
        try:
            return await self.client.get(rt, key)
        except NotFound:
            return None

    def _is_current(self, rt: ResourceType, live: JsonObject, wanted: JsonObject, mark: str) -> bool:
        """Also current when nobody wrote since we applied just this: the server stores some values in another form.

        The mark says nothing of what a Secret holds; what is remembered here, in memory alone, does.
        """
        meta = live["metadata"]
        if (meta.get("annotations") or {}).get(APPLIED) != mark:
            return False
        if self._settled.get((rt, key_of(live))) == (json_digest(wanted), meta.get("resourceVersion")):
            return True
        return contains(live, wanted)

    async def _apply(self, rt: ResourceType, obj: JsonObject, *, known: bool) -> JsonObject:
        """Apply; one that we believe absent is not forced, so that a stranger's object is noticed, not seized."""
        try:
            answer = await self.client.apply(rt, obj, force=known)
        except Conflict:
            if known:
                raise
            refuse_foreign(rt, await self.client.get(rt, key_of(obj)), obj)
            answer = await self.client.apply(rt, obj)
        self.cache.note(rt, answer)
        return answer

    # --- plain writes

    async def create(self, rt: ResourceType, obj: JsonObject) -> JsonObject:
        """Create; AlreadyExists is the caller's to judge."""
        answer = await self.client.create(rt, obj)
        self.cache.note(rt, answer)
        return answer

    async def replace(self, rt: ResourceType, obj: JsonObject) -> JsonObject:
        """Replace; `metadata.resourceVersion` guards it."""
        answer = await self.client.replace(rt, obj)
        self.cache.note(rt, answer)
        return answer

    async def patch(
        self,
        rt: ResourceType,
        key: Key,
        patch: JsonObject,
        *,
        type: PatchType = PatchType.MERGE,
        subresource: str = "",
    ) -> JsonObject:
        """Patch an object or a subresource."""
        answer = await self.client.patch(rt, key, patch, type=type, subresource=subresource)
        self.cache.note(rt, answer)
        return answer

    async def delete(self, rt: ResourceType, obj: JsonObject, *, propagation: str | None = None) -> None:
        """Delete exactly this object (by uid); one that is gone, or was replaced by another, is done."""
        key, uid = key_of(obj), str(obj["metadata"].get("uid", ""))
        try:
            answer = await self.client.delete(rt, key, uid=uid or None, propagation=propagation)
        except (NotFound, Conflict):
            answer = None
        self._settled.pop((rt, key), None)
        if answer is not None and (answer.get("metadata") or {}).get("deletionTimestamp"):
            self.cache.note(rt, answer)
        else:
            self.cache.forget(rt, key, uid)

    async def refresh(self, rt: ResourceType, key: Key) -> JsonObject | None:
        """The object as the server has it now, noted; None when it is gone."""
        try:
            obj = await self.client.get(rt, key)
        except NotFound:
            return None
        self.cache.note(rt, obj)
        return obj


def _marked(wanted: JsonObject, mark: str) -> JsonObject:
    meta = wanted["metadata"]
    annotations = {**(meta.get("annotations") or {}), APPLIED: mark}
    return {**wanted, "metadata": {**meta, "annotations": annotations}}
