"""Events that people read in `kubectl describe`: deduplicated, counted, never in the way of a pass.

Enters: a reference and an Event. Leaves: core/v1 Events, one for each distinct message about an object, with a count. Telling
never blocks and never raises; what cannot be written is logged and counted, not retried for ever. The name of an Event
follows from its content, so the count goes on after a restart.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from moorage.core.errors import MoorageError
from moorage.core.meta import JsonObject, Key, Ref
from moorage.kube.client import Client
from moorage.kube.errors import AlreadyExists, NotFound
from moorage.kube.resources import CORE_EVENTS

from .room import Event

_log = structlog.get_logger("moorage.events")

_MESSAGE = 1024
"""Longest message that the API takes; bytes."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """`waiting`: Events in memory at most. An object may say `burst` at once, then one each `refill` seconds."""

    waiting: int = 1000
    burst: int = 25
    refill: float = 30.0
    objects: int = 4096


_BOUNDS = Bounds()


class Recorder:
    """Writes Events in the background.

    Args:
        component: who speaks, such as `moorage`.
        dropped: called with a cause for each Event that is not written.
    """

    def __init__(
        self,
        client: Client,
        component: str,
        *,
        bounds: Bounds = _BOUNDS,
        dropped: Callable[[str], None] = lambda _cause: None,
    ) -> None:
        self._client, self._component = client, component
        self._bounds, self._dropped = bounds, dropped
        self._waiting: OrderedDict[tuple[Ref, Event], int] = OrderedDict()
        self._budgets = _Budgets(bounds)
        self._log = _log.bind()  # once: a lazy logger puts itself together for each line
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()

    def tell(self, regarding: Ref, event: Event) -> None:
        """Take an Event; one that waits already only counts up."""
        self._log.info("event", object=f"{regarding.kind} {regarding.key}", reason=event.reason, message=event.message)
        said = (regarding, event)
        if said in self._waiting:
            self._waiting[said] += 1
        elif len(self._waiting) >= self._bounds.waiting:
            self._dropped("full")
        elif not self._budgets.take(regarding):
            self._dropped("spam")
        else:
            self._waiting[said] = 1
            self._idle.clear()
            self._wake.set()

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                (regarding, event), count = self._waiting.popitem(last=False)
                await self._write(regarding, event, count)
            self._idle.set()

    async def drain(self, seconds: float = 5.0) -> None:
        """Wait until all that was told is written, at most `seconds`."""
        try:
            await asyncio.wait_for(self._idle.wait(), seconds)
        except TimeoutError:
            _log.warning("events were not written", waiting=len(self._waiting))

    async def _write(self, regarding: Ref, event: Event, count: int) -> None:
        try:
            await self._store(regarding, event, count)
        except MoorageError as error:
            self._dropped("refused")
            _log.warning("event not written", object=str(regarding.key), reason=event.reason, error=str(error))
        except Exception:  # noqa: BLE001  an Event is never worth a controller
            self._dropped("bug")
            _log.exception("event not written", object=str(regarding.key), reason=event.reason)

    async def _store(self, regarding: Ref, event: Event, count: int) -> None:
        key = Key(regarding.key.namespace or "default", _name(regarding, event))
        try:
            await self._client.create(CORE_EVENTS, self._wire(key, regarding, event, count))
        except AlreadyExists:
            await self._count(key, regarding, event, count)

    async def _count(self, key: Key, regarding: Ref, event: Event, count: int) -> None:
        try:
            stored = await self._client.get(CORE_EVENTS, key)
            total = int(stored.get("count") or 1) + count
            await self._client.patch(CORE_EVENTS, key, {"count": total, "lastTimestamp": _stamp()})
        except NotFound:
            await self._client.create(CORE_EVENTS, self._wire(key, regarding, event, count))

    def _wire(self, key: Key, regarding: Ref, event: Event, count: int) -> JsonObject:
        stamp = _stamp()
        involved = {
            "apiVersion": regarding.api_version,
            "kind": regarding.kind,
            "name": regarding.key.name,
            "namespace": regarding.key.namespace,
            "uid": regarding.uid,
        }
        return {
            "metadata": {"name": key.name, "namespace": key.namespace},
            "involvedObject": {name: value for name, value in involved.items() if value},
            "type": event.type,
            "reason": event.reason,
            "message": _shorten(event.message),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._component,
            "count": count,
            "firstTimestamp": stamp,
            "lastTimestamp": stamp,
        }


class _Budgets:
    """A token bucket for each object, least recently used ones forgotten."""

    def __init__(self, bounds: Bounds) -> None:
        self._bounds = bounds
        self._left: OrderedDict[Ref, tuple[float, float]] = OrderedDict()

    def take(self, ref: Ref) -> bool:
        now = time.monotonic()
        left, since = self._left.pop(ref, (float(self._bounds.burst), now))
        left = min(float(self._bounds.burst), left + (now - since) / self._bounds.refill)
        granted = left >= 1.0
        self._left[ref] = (left - 1.0 if granted else left, now)
        if len(self._left) > self._bounds.objects:
            self._left.popitem(last=False)
        return granted


def _stamp() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _name(regarding: Ref, event: Event) -> str:
    parts = (regarding.kind, regarding.uid, event.type, event.reason, event.message)
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    return f"{regarding.key.name[:230].rstrip('.-')}.{digest}"


def _shorten(message: str) -> str:
    data = message.encode()
    return message if len(data) <= _MESSAGE else data[: _MESSAGE - 4].decode(errors="ignore") + " ..."
