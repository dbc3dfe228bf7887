"""The operator: everything that runs, wired together, started in order and stopped in order.

Enters: rooms, a client, options, and an event that says stop. Leaves: nothing but what the rooms write. Reflectors run from the
first moment on every replica, so that admission knows siblings and a new leader starts warm; controllers run while this
process leads.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import structlog

from moorage.core.addresses import Network
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube.client import Client
from moorage.kube.resources import SERVICES
from moorage.net.resolver import ServiceResolver
from moorage.net.sessions import Sessions
from moorage.schema.review import Admission

from . import health
from .admission import Handler, Webhooks
from .admission_http import serve
from .admission_server import AdmissionServer, CertificateSource
from .controller import Controller, Pace
from .events import Recorder
from .lease import Election, Terms
from .metrics import Metrics
from .reflector import Reflector
from .room import Room
from .serving import Listener
from .world import Caches, World

_log = structlog.get_logger("moorage.operator")


@dataclass(frozen=True, slots=True)
class Leadership:
    """The Lease by which one replica of several leads. `identity` empty: made from the host name."""

    lease: Key = Key("moorage-system", "moorage")  # noqa: RUF009  frozen
    identity: str = ""
    terms: Terms = Terms()  # noqa: RUF009  frozen


@dataclass(frozen=True, slots=True)
class WebhookServing:
    """Where webhooks listen and where their certificate comes from."""

    bind: str
    source: CertificateSource
    period: float = 10.0


@dataclass(frozen=True, slots=True)
class Options:
    """How an operator runs.

    Args:
        namespace: watch only this one; empty means all.
        local: one-machine mode; names of Services are resolved here.
        leadership: None means that this process is the only one.
        health_bind, metrics_bind: addresses; empty means no listener. Equal addresses share one.
        admissions: rules for the webhooks and for `Operator.handlers`.
        webhooks: None means that no webhooks are served here.
        grace: seconds that passes get to end at stop.
        allowed: networks from which metadata documents may be fetched besides public ones.
    """

    namespace: str = ""
    local: bool = False
    pace: Pace = Pace()  # noqa: RUF009  frozen
    leadership: Leadership | None = None
    health_bind: str = ""
    metrics_bind: str = ""
    admissions: Sequence[Admission] = ()
    webhooks: WebhookServing | None = None
    grace: float = 25.0
    allowed: tuple[Network, ...] = ()


_OPTIONS = Options()
_BY_MEETING = "meeting-siblings"
"""Index of the objects that `Admission.meets` brings together, by namespace and value."""


def _meeting(meets: Callable[[JsonObject], Iterable[str]], obj: JsonObject) -> Iterable[str]:
    namespace = obj["metadata"].get("namespace", "")
    return [f"{namespace}/{value}" for value in meets(obj)]


@dataclass
class Operator:
    """Runs rooms against one API server. `client` must be open; it is not closed here."""

    rooms: Sequence[Room[Any, Any]]
    client: Client
    options: Options = _OPTIONS
    metrics: Metrics = field(default_factory=Metrics)
    cache: Caches = field(init=False)
    world: World = field(init=False)
    controllers: dict[str, Controller] = field(default_factory=dict, init=False)
    working: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _reflectors: dict[ResourceType, Reflector] = field(default_factory=dict, init=False)
    _election: Election | None = field(init=False)
    _admission: AdmissionServer | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._election = self._candidate(self.options.leadership)
        for rt in self._cached_types():
            self._reflectors[rt] = Reflector(self.client, rt, namespace=self.options.namespace)
        for room in self.rooms:
            for index in room.indices:
                self._reflectors[index.resource].add_index(index.name, index.values, declared=index.declared)
        for item in self.options.admissions:
            if item.meets is not None:
                meeting = partial(_meeting, item.meets)
                self._reflectors[item.kind.resource].add_index(_BY_MEETING, meeting, declared=True)
        self.cache = Caches(self._reflectors)
        resolver = ServiceResolver(self._cluster_ip) if self.options.local else None
        http = Sessions(resolver=resolver, fence=self._may_write, allowed=self.options.allowed)
        client = self.client.fenced(self._leads, self._left)
        self.world = World(client, self.cache, http, local=self.options.local, leading=self._may_write)
        self.client.observe(self.metrics.client_observer(self.client.connection.server.partition("//")[2]))

    def _cached_types(self) -> Iterable[ResourceType]:
        for room in self.rooms:
            yield room.kind.resource
            yield from (watch.resource for watch in room.watches)
            yield from (index.resource for index in room.indices)
        yield from (item.kind.resource for item in self.options.admissions)
        if self.options.local:
            yield SERVICES

    def handlers(self) -> dict[str, Handler]:
        """Webhook path to handler, for an API server in this process."""
        return dict(Webhooks(self.options.admissions, self.siblings).handlers())

    def siblings(
        self, rt: ResourceType, namespace: str, shared: Collection[str] | None = None, /
    ) -> Sequence[JsonObject]:
        """Objects of a kind in a namespace, as last seen: all, or those that have one of the `shared` values."""
        if not self.cache.holds(rt):
            return ()
        if shared is None:
            return self.cache.list(rt, namespace)
        values = [f"{namespace}/{value}" for value in shared]
        found = {id(obj): obj for value in values for obj in self.cache.list(rt, index=_BY_MEETING, value=value)}
        return tuple(found.values())

    def _cluster_ip(self, namespace: str, name: str) -> str | None:
        service = self.cache.get(SERVICES, Key(namespace, name))
        address = ((service or {}).get("spec") or {}).get("clusterIP") or ""
        return None if address in ("", "None") else str(address)

    def _may_write(self) -> None:
        """Ask leadership, and whatever fences the client that was given, before a write to any server."""
        self.client.check_write()
        self._leads()

    def _left(self) -> float:
        return math.inf if self._election is None else self._election.left()

    def _leads(self) -> None:
        if self._election is not None:
            self._election.check()

    # --- running

    async def run(self, stop: asyncio.Event) -> None:
        """Run until `stop` is set, then let passes end, give leadership back, and close what was opened.

        Raises:
            EnvironmentError_: an address cannot be bound.
        """
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(self.world.http.close)
            for listener in self._listeners():
                await listener.start()
                stack.push_async_callback(listener.stop)
            if self.options.webhooks is not None:
                self._admission = self._admission_server(self.options.webhooks)
                await stack.enter_async_context(_background(self._admission.run(), "admission"))
            for rt, reflector in self._reflectors.items():
                await stack.enter_async_context(_background(reflector.run(), f"reflector-{rt.plural}"))
            await self._lead(stop)

    async def _lead(self, stop: asyncio.Event) -> None:
        """Work while leading, again and again, until `stop`."""
        await _first(stop.wait(), self._synced())
        if self._election is None:
            await self._work(stop.wait())
            return
        gauge = self.metrics.leading.labels(self._election.key.name)
        gauge.set(0)
        try:
            while not stop.is_set():
                await _first(stop.wait(), self._election.acquire())
                if self._election.leading:
                    gauge.set(1)
                    await self._term(self._election, stop)
                    gauge.set(0)
        finally:
            await self._election.release()

    async def _term(self, election: Election, stop: asyncio.Event) -> None:
        """One term. The claim is renewed until the last pass has ended."""
        async with _background(election.hold(), "lease", endless=False) as holding:
            await self._work(_first(stop.wait(), asyncio.shield(holding)))

    async def _synced(self) -> None:
        for reflector in self._reflectors.values():
            await reflector.synced.wait()

    def _candidate(self, leadership: Leadership | None) -> Election | None:
        if leadership is None:
            return None
        identity = leadership.identity or f"{socket.gethostname()}_{uuid.uuid4()}"
        return Election(self.client, leadership.lease, identity, leadership.terms)

    async def _work(self, until: Awaitable[Any]) -> None:
        """Run all controllers until `until` ends. While they stop, what they write is fenced, not trusted."""
        recorder = Recorder(self.world.client, "moorage", dropped=lambda c: self.metrics.events_dropped.labels(c).inc())
        async with _background(recorder.run(), "events"):
            for room in self.rooms:
                made = Controller(room, self.world, self.metrics, tell=recorder.tell, pace=self.options.pace)
                self.controllers[room.name] = made
                made.start()
            self.working.set()
            try:
                await until
            finally:
                self.working.clear()
                grace = self.options.grace if self._election is None or self._election.leading else 0.0
                await asyncio.gather(*(item.stop(grace) for item in self.controllers.values()))
                await recorder.drain()

    # --- listeners

    def _listeners(self) -> list[Listener]:
        options = self.options
        text: Callable[[], bytes] = self.metrics.text
        if options.health_bind and options.health_bind == options.metrics_bind:
            return [Listener(health.app(ready=self._checks(), metrics=text), options.health_bind)]
        found = []
        if options.health_bind:
            found.append(Listener(health.app(ready=self._checks()), options.health_bind))
        if options.metrics_bind:
            found.append(Listener(health.app(ready={}, metrics=text), options.metrics_bind))
        return found

    def _checks(self) -> dict[str, health.Check]:
        return {"caches": self._caches_ready, "webhooks": self._webhooks_ready}

    def _caches_ready(self) -> str:
        late = [rt.group_resource for rt, item in self._reflectors.items() if not item.synced.is_set()]
        return f"not listed yet: {', '.join(sorted(late))}" if late else ""

    def _webhooks_ready(self) -> str:
        waits = self._admission is not None and not self._admission.serving
        return "no certificate yet" if waits else ""

    def _admission_server(self, webhooks: WebhookServing) -> AdmissionServer:
        def counted(path: str, status: int) -> None:
            self.metrics.reviews.labels(path, str(status)).inc()

        app = serve(self.options.admissions, self.siblings, counted=counted)
        return AdmissionServer(app, webhooks.bind, webhooks.source, period=webhooks.period)


@contextlib.asynccontextmanager
async def _background(
    work: Coroutine[Any, Any, None], name: str, *, endless: bool = True
) -> AsyncIterator[asyncio.Task[None]]:
    """A task for as long as the block runs. An endless one that ends by itself is a bug and is logged."""
    task = asyncio.create_task(work, name=name)
    if endless:
        task.add_done_callback(_ended)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _ended(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        _log.error("a background task ended", task=task.get_name(), exc_info=task.exception())


async def _first(*works: Awaitable[Any]) -> None:
    """Wait for the first to end; the others are cancelled and awaited. Its exception is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            if not task.done():
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error
