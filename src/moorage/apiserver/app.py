"""From HTTP to verbs and back: the ASGI application.

Enters: ASGI scopes of TLS connections. Leaves: answers of the verb files, each refused request with its metav1.Status.
Order as in Kubernetes: who asks (401), may they (403), does it exist (404), may this method (405).
"""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from time import perf_counter
from typing import Any

import structlog

from moorage.apiserver import discovery, routes
from moorage.apiserver.access import Access
from moorage.apiserver.api import Api
from moorage.apiserver.audit import Audit, Audited
from moorage.apiserver.auth import Authenticator, impersonated
from moorage.apiserver.codec import quoted_warnings
from moorage.apiserver.errors import (
    NoSuchPage,
    StatusError,
    internal,
    method_not_allowed,
    no_such_resource,
    too_large,
    too_many,
)
from moorage.apiserver.hub import encode
from moorage.apiserver.pages import Pages
from moorage.apiserver.request import ANONYMOUS, Request, Response, User, parse_query, parse_target

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_BODY_LIMIT = 3 * 1024 * 1024
_BODY_SECONDS = 60.0
_OPEN_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version", "/version/"})
_OPEN_PREFIXES = ("/healthz/", "/livez/", "/readyz/")
_IN_FLIGHT = 800
log = structlog.get_logger(__name__)


class App:
    """The ASGI application of one server."""

    def __init__(self, api: Api, authenticator: Authenticator, access: Access, pages: Pages, audit: Audit) -> None:
        self._api, self._authenticator, self._access = api, authenticator, access
        self._pages, self._audit = pages, audit
        self._in_flight = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = perf_counter()
        headers, groups = _headers(scope)
        query = parse_query(scope["query_string"].decode("latin-1"))
        target = parse_target(scope["method"], scope["raw_path"].decode("latin-1").partition("?")[0], query)
        request = Request(scope["method"], target, query, headers, peer=_peer(scope))
        self._in_flight += 1
        try:
            answer = await self._answer(request, scope, receive, groups)
        except StatusError as error:
            answer = _plain(error) if isinstance(error, NoSuchPage) else _refusal(error)
        except Exception:  # noqa: BLE001 - a bug in one request must not end the server
            log.error("request_failed", method=request.method, path=target.path, trace=traceback.format_exc(limit=-12))
            answer = _refusal(internal("the request failed for a reason of the server's own; its log has the cause"))
        finally:
            self._in_flight -= 1
        self._audit.write(Audited(request, answer.status, perf_counter() - started))
        self._pages.count(request, answer.status, perf_counter() - started)
        await _send(request, answer, send, receive)

    async def _answer(self, request: Request, scope: Scope, receive: Receive, groups: tuple[str, ...]) -> Response:
        target = request.target
        if target.path in _OPEN_PATHS or target.path.startswith(_OPEN_PREFIXES):
            request.user = ANONYMOUS
            if target.verb != "get":
                raise method_not_allowed()
            return self._pages.open(target.path, request.query)
        peer: User | None = scope["state"].get("peer")
        user = self._authenticator.user(request.headers, peer)
        request.user = impersonated(user, request.headers, groups, self._access.may)
        self._access.require(request)
        if self._in_flight > _IN_FLIGHT and target.verb != "watch":
            raise too_many("too many requests are under way, please try again later")
        if not target.is_resource:
            if target.verb != "get":
                raise method_not_allowed()
            return self._page(request)
        request.body = await _body(receive, request.headers)
        return await routes.serve(self._api, request)

    def _page(self, request: Request) -> Response:
        path = request.target.path
        if path.startswith(("/api", "/apis")):
            host = request.headers.get("host", "")
            found = discovery.answer(self._api.registry, path, request.headers, host)
            if found is None and self._api.registry.serves_group_of(path):
                raise no_such_resource()
        else:
            found = self._pages.page(path, request.headers.get("accept", ""))
        if found is None:
            raise NoSuchPage
        return found


def _headers(scope: Scope) -> tuple[dict[str, str], tuple[str, ...]]:
    """Headers by lower-case name, and the values of Impersonate-Group, which may repeat."""
    found: dict[str, str] = {}
    groups: list[str] = []
    for name, value in scope["headers"]:
        key = name.decode("latin-1")
        if key == "impersonate-group":
            groups.append(value.decode("latin-1"))
        elif key == "accept" and key in found:
            found[key] += "," + value.decode("latin-1")
        else:
            found[key] = value.decode("latin-1")
    return found, tuple(groups)


def _peer(scope: Scope) -> str:
    client = scope.get("client")
    return client[0] if client else ""


async def _body(receive: Receive, headers: Mapping[str, str]) -> bytes:
    """The whole body.

    Raises:
        StatusError: 413, over 3 MiB; 408, too slow.
    """
    told = headers.get("content-length", "")
    if told.isdigit() and int(told) > _BODY_LIMIT:
        raise too_large(f"Request entity too large: limit is {_BODY_LIMIT}")
    message = await receive()
    if not message.get("more_body", False):
        return _within(message.get("body", b""))
    parts, size = [message.get("body", b"")], len(message.get("body", b""))
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            while message.get("more_body", False):
                message = await receive()
                part = message.get("body", b"")
                size += len(part)
                if size > _BODY_LIMIT:
                    break
                parts.append(part)
    except TimeoutError:
        raise StatusError(408, "Timeout", "the body did not come in time") from None
    if size > _BODY_LIMIT:
        raise too_large(f"Request entity too large: limit is {_BODY_LIMIT}")
    return b"".join(parts)


def _within(body: bytes) -> bytes:
    if len(body) > _BODY_LIMIT:
        raise too_large(f"Request entity too large: limit is {_BODY_LIMIT}")
    return body


def _plain(error: StatusError) -> Response:
    return Response(error.code, f"{error.message}\n".encode(), "text/plain; charset=utf-8")


def _refusal(error: StatusError) -> Response:
    answer = Response(error.code, encode(error.to_wire()))
    wait = (error.details or {}).get("retryAfterSeconds")
    if wait and error.code in (429, 503, 504):
        answer.headers.append(("Retry-After", str(wait)))
    return answer


async def _send(request: Request, answer: Response, send: Send, receive: Receive) -> None:
    headers = [(b"content-type", answer.content_type.encode()), (b"cache-control", b"no-cache, private")]
    extra = answer.headers + (quoted_warnings(request.warnings) if request.warnings else [])
    headers += [(name.encode(), value.encode("utf-8", "replace")) for name, value in extra]
    if answer.stream is None:
        body = b"" if request.method == "HEAD" else answer.body
        headers.append((b"content-length", str(len(answer.body)).encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})
        return
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await _send_stream(answer, send, receive)


async def _send_stream(answer: Response, send: Send, receive: Receive) -> None:
    """Pass the stream on until it ends or the client goes."""
    assert answer.stream is not None
    stream = answer.stream
    await send({"type": "http.response.body", "body": b"", "more_body": True})

    async def pump() -> None:
        async for piece in stream:
            await send({"type": "http.response.body", "body": piece, "more_body": True})

    pumping, leaving = asyncio.ensure_future(pump()), asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((pumping, leaving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (pumping, leaving):
            task.cancel()
        await asyncio.gather(pumping, leaving, return_exceptions=True)
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
    if not pumping.cancelled() and (error := pumping.exception()) is not None:
        log.error("stream_failed", error=repr(error))
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
