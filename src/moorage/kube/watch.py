"""Watching: one connection (`stream`), or for ever (`follow`).

Enters: a resourceVersion. Leaves: events in order, none twice by resourceVersion of the stream, none lost. `Expired` says
that only a fresh list helps. A silent connection is not a healthy one: after the inactivity limit it is made anew.
Source: Kubernetes API concepts, "Efficient detection of changes"; case B76.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from moorage.calling import wire
from moorage.calling.line import Flow
from moorage.core.backoff import Backoff
from moorage.core.meta import JsonObject, ResourceType

from .errors import ConnectionFailed, Expired, Forbidden, ServerError, TooManyRequests, Unauthorized, error_of
from .transport import BROKEN, Request, Transport

if TYPE_CHECKING:
    from .client import Client

EventType = Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One change. A BOOKMARK's object holds its kind and `metadata.resourceVersion` only."""

    type: EventType
    object: JsonObject

    @property
    def resource_version(self) -> str:
        return cast(str, self.object["metadata"].get("resourceVersion", ""))


@dataclass(frozen=True, slots=True)
class Scope:
    """What is watched; empty selectors and namespace mean all."""

    resource: ResourceType
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def query(self) -> dict[str, str]:
        """The selectors as query parameters."""
        named = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: value for name, value in named.items() if value}


_UNHURRIED = Backoff(base=0.2, cap=30.0, jitter=0.5)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a watch lives and how long it may be silent; seconds.

    kube-apiserver sends a bookmark about once a minute, so silence of two minutes is a dead connection.
    """

    silence: float = 120.0
    lifetime: float = 300.0
    backoff: Backoff = _UNHURRIED


async def stream(
    transport: Transport, scope: Scope, since: str, patience: Patience
) -> AsyncGenerator[WatchEvent, None]:
    """The events of one connection; ends when the server closes it, the line breaks or falls silent.

    Raises:
        Expired: `since` is too old, or the server sent an ERROR event.
        ApiError: the server refused the watch.
        ConnectionFailed: no connection could be made.
    """
    lifetime = int(patience.lifetime * (1.0 + random.random()))  # noqa: S311
    query = {**scope.query(), "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(max(1, lifetime))}
    if since:
        query["resourceVersion"] = since
    request = Request("GET", scope.resource.path(scope.namespace), scope.resource.plural, query)
    try:
        flow = await transport.flow(request, patience.silence)
    except BROKEN as error:
        raise ConnectionFailed(transport.connection.server, str(error) or "no answer in time") from error
    try:
        if flow.status >= 400:
            raise await _refusal(transport, flow)
        async for line in _lines(flow, patience.silence):
            yield _event(line)
    finally:
        flow.abort()


async def _refusal(transport: Transport, flow: Flow) -> Exception:
    if flow.status == 401:
        transport.connection.credentials.refused()
    try:
        body = wire.loads(await flow.read(transport.limits.timeout))
    except (ValueError, *BROKEN):
        body = ""
    return error_of(flow.status, body)


async def _lines(flow: Flow, silence: float) -> AsyncGenerator[bytes, None]:
    """Whole lines of any length; a line that the server did not finish is dropped, its event comes again."""
    rest = bytearray()
    try:
        while piece := await flow.more(silence):
            rest += piece
            if b"\n" in piece:
                *whole, tail = rest.split(b"\n")
                rest = bytearray(tail)
                for line in whole:
                    if line:
                        yield bytes(line)
    except BROKEN:
        return


async def text_lines(transport: Transport, request: Request) -> AsyncGenerator[str, None]:
    """The lines of a text that grows (a container's log), without their ends.

    Raises:
        ApiError: the server refused.
        ConnectionFailed: the line broke; what came so far was yielded.
    """
    rest = b""
    try:
        flow = await transport.flow(request, None)
        try:
            if flow.status >= 400:
                raise await _refusal(transport, flow)
            while piece := await flow.more():
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    yield line.decode(errors="replace")
        finally:
            flow.abort()
    except BROKEN as error:
        raise ConnectionFailed(transport.connection.server, str(error) or "the text ended early") from error
    if rest:
        yield rest.decode(errors="replace")


def _event(line: bytes) -> WatchEvent:
    try:
        event = wire.loads(line)
        type_, obj = event["type"], event["object"]
    except (ValueError, KeyError, TypeError) as error:
        raise Expired(410, "Expired", "the watch sent something that is no event") from error
    if type_ == "ERROR":
        raise Expired(int(obj.get("code") or 410), "Expired", str(obj.get("message") or "the watch ended in an error"))
    return WatchEvent(type_, obj)


async def follow(
    client: Client,
    scope: Scope,
    since: str,
    *,
    trouble: Callable[[Exception], None] = lambda _: None,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> AsyncGenerator[WatchEvent, None]:
    """Events for ever, each connection going on where the one before ended; `trouble` hears of each failure.

    Raises:
        Expired: list again and follow from there.
        ApiError: the server refuses for good (the type is gone, a bad request).
    """
    failures = 0
    while True:
        began = since
        try:
            async with aclosing(client.watch_scope(scope, since)) as events:
                async for event in events:
                    since = event.resource_version or since
                    failures = 0
                    yield event
        except (ConnectionFailed, ServerError, TooManyRequests, Forbidden, Unauthorized) as error:
            failures += 1
            trouble(error)
        if failures or since == began:
            await sleep(client.patience.backoff.delay(failures, random.random()))  # noqa: S311


def scope(resource: ResourceType, namespace: str = "", *, labels: str = "", fields: str = "") -> Scope:
    """A Scope; the namespace of a cluster-scoped type is ignored."""
    return Scope(resource, namespace if resource.namespaced else "", labels, fields)
