"""From HTTP to verbs and back: the application.

Enters: requests of TLS connections. Leaves: answers of the verb files, each refused request with its metav1.Status.
Order as in Kubernetes: who asks (401), may they (403), does it exist (404), may this method (405).
"""

from __future__ import annotations

import traceback
from time import perf_counter

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
from moorage.apiserver.request import ANONYMOUS, Request, Response, parse_query, parse_target
from moorage.serving.connection import BODY_LIMIT, Exchange

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

    async def __call__(self, exchange: Exchange) -> Response:
        """The answer to one request; never raises but when it is cancelled."""
        started = perf_counter()
        query = parse_query(exchange.query) if exchange.query else {}
        target = parse_target(exchange.method, exchange.path, query)
        request = Request(exchange.method, target, query, exchange.headers, peer=exchange.address)
        self._in_flight += 1
        try:
            answer = await self._answer(request, exchange)
        except StatusError as error:
            answer = _plain(error) if isinstance(error, NoSuchPage) else _refusal(error)
        except Exception:  # noqa: BLE001 - a bug in one request must not end the server
            log.error("request_failed", method=request.method, path=target.path, trace=traceback.format_exc(limit=-12))
            answer = _refusal(internal("the request failed for a reason of the server's own; its log has the cause"))
        finally:
            self._in_flight -= 1
        seconds = perf_counter() - started
        self._audit.write(Audited(request, answer.status, seconds))
        self._pages.count(request, answer.status, seconds)
        if request.warnings:
            answer.headers = answer.headers + quoted_warnings(request.warnings)
        return answer

    async def _answer(self, request: Request, exchange: Exchange) -> Response:
        target = request.target
        if target.path in _OPEN_PATHS or target.path.startswith(_OPEN_PREFIXES):
            request.user = ANONYMOUS
            if target.verb != "get":
                raise method_not_allowed()
            return self._pages.open(target.path, request.query)
        user = self._authenticator.user(request.headers, exchange.peer)
        request.user = user
        request.user = impersonated(user, request.headers, exchange.groups, self._access.require)
        request.actor = user if request.user is not user else None
        self._access.require(request.user, target)
        if self._in_flight > _IN_FLIGHT and target.verb != "watch":
            raise too_many("too many requests are under way, please try again later")
        if not target.is_resource:
            if target.verb != "get":
                raise method_not_allowed()
            return self._page(request)
        request.body = _body(exchange)
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


def _body(exchange: Exchange) -> bytes:
    """The whole body.

    Raises:
        StatusError: 413, over the limit; 408, too slow.
    """
    if exchange.fault == "large":
        raise too_large(f"Request entity too large: limit is {BODY_LIMIT}")
    if exchange.fault == "late":
        raise StatusError(408, "Timeout", "the body did not come in time")
    return exchange.body


def _plain(error: StatusError) -> Response:
    return Response(error.code, f"{error.message}\n".encode(), "text/plain; charset=utf-8")


def _refusal(error: StatusError) -> Response:
    answer = Response(error.code, encode(error.to_wire()))
    wait = (error.details or {}).get("retryAfterSeconds")
    if wait and error.code in (429, 503, 504):
        answer.headers.append(("Retry-After", str(wait)))
    return answer
