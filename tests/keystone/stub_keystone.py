"""A stub of Keystone's Identity API v3: password logins, domains, and what `stub_federation.py` adds, in memory, counting and recording.

It reproduces documented semantics only: 201 with X-Subject-Token, explicit_domain_id, 409 on a duplicate name or id, 403 on
deleting an enabled domain, 404, paging by marker, 401 on a wrong or revoked token. It is no proof that Keystone behaves so;
tests/real has the real one.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from aiohttp.abc import AbstractResolver, ResolveResult
from tests.keystone.stub_federation import Federated

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass
class Failure:
    """An answer in place of the real one, `times` times, for requests whose `METHOD /path` matches. `$TOKEN` in it is the request's own."""

    pattern: str
    status: int
    body: str
    times: int


@dataclass
class StubKeystone:
    """async with StubKeystone() as keystone: keystone.url"""

    password: str = "admin-password"
    page: int = 0
    case_blind: bool = True
    lifetime: timedelta = timedelta(hours=1)
    domains: dict[str, dict[str, Any]] = field(default_factory=dict)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    tokens: set[str] = field(default_factory=set)
    after: Callable[[str], None] = lambda _request: None

    def __post_init__(self) -> None:
        self.federated = Federated(self.domains)

    async def __aenter__(self) -> Self:
        self.add("Default", id="default")
        app = web.Application(middlewares=[self._recorded])
        app.router.add_post("/v3/auth/tokens", self._login)
        app.router.add_delete("/v3/auth/tokens", self._revoke)
        app.router.add_get("/v3/domains", self._list)
        app.router.add_post("/v3/domains", self._create)
        app.router.add_get("/v3/domains/{id}", self._get)
        app.router.add_patch("/v3/domains/{id}", self._update)
        app.router.add_delete("/v3/domains/{id}", self._delete)
        app.router.add_routes(self.federated.routes())
        self._runner = web.AppRunner(app, shutdown_timeout=1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.port = int(self._runner.addresses[0][1])
        return self

    async def __aexit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        await self._runner.cleanup()

    @property
    def url(self) -> str:
        """What a Login takes."""
        return f"http://127.0.0.1:{self.port}/v3"

    # --- for tests

    def add(self, name: str, *, id: str = "", enabled: bool = True, description: str = "") -> dict[str, Any]:
        """A domain that somebody else made."""
        id = id or uuid.uuid4().hex
        self.domains[id] = {"id": id, "name": name, "enabled": enabled, "description": description}
        return self.domains[id]

    def fail(self, pattern: str, status: int, message: str = "no", *, times: int = 1, body: str = "") -> None:
        """Answer the next matching requests with an error."""
        text = body or json.dumps({"error": {"code": status, "message": message, "title": "x"}})
        self.failures.append(Failure(pattern, status, text, times))

    def count(self) -> Counter[str]:
        """Requests by method; logins apart."""
        return Counter("login" if path.endswith("/auth/tokens") else method for method, path, _ in self.requests)

    def writes(self) -> list[tuple[str, str, Any]]:
        """Requests that change something, in order."""
        return [item for item in self.requests if item[0] != "GET" and not item[1].endswith("/auth/tokens")]

    # --- the API

    @web.middleware
    async def _recorded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        body = await request.json() if request.can_read_body else None
        self.requests.append((request.method, request.path_qs, body))
        for failure in self.failures:
            if failure.times and re.search(failure.pattern, f"{request.method} {request.path}"):
                failure.times -= 1
                echo = failure.body.replace("$TOKEN", request.headers.get("X-Auth-Token", ""))
                return web.Response(status=failure.status, text=echo, content_type="application/json")
        login = request.path.endswith("/auth/tokens")
        if not login and request.headers.get("X-Auth-Token") not in self.tokens:
            return _error(401, "The request you have made requires authentication.")
        answer = await handler(request)
        self.after(f"{request.method} {request.path}")
        return answer

    async def _login(self, request: web.Request) -> web.Response:
        user = (await request.json())["auth"]["identity"]["password"]["user"]
        if user["password"] != self.password:
            return _error(401, "The request you have made requires authentication.")
        token = uuid.uuid4().hex
        self.tokens.add(token)
        end = (datetime.now(UTC) + self.lifetime).strftime("%Y-%m-%dT%H:%M:%S.000000Z")
        body = {"token": {"expires_at": end, "methods": ["password"]}}
        return web.json_response(body, status=201, headers={"X-Subject-Token": token})

    async def _revoke(self, request: web.Request) -> web.Response:
        self.tokens.discard(request.headers["X-Subject-Token"])
        return web.Response(status=204)

    async def _list(self, request: web.Request) -> web.Response:
        wanted = request.query.get("name")
        found = [item for item in self.domains.values() if wanted is None or self._matches(item["name"], wanted)]
        start = int(request.query.get("marker", 0))
        size = self.page or len(found) or 1
        more = start + size < len(found)
        query = f"name={wanted}&" if wanted else ""
        following = f"https://public.example.org/v3/domains?{query}marker={start + size}" if more else None
        return web.json_response({"domains": found[start : start + size], "links": {"next": following}})

    def _matches(self, name: str, wanted: str) -> bool:
        """MySQL's collation compares without regard to case, SQLite's and PostgreSQL's with it."""
        return name.lower() == wanted.lower() if self.case_blind else name == wanted

    async def _create(self, request: web.Request) -> web.Response:
        wanted = (await request.json())["domain"]
        id = wanted.pop("explicit_domain_id", "") or uuid.uuid4().hex
        if not re.fullmatch(r"[0-9a-f]{32}", id):
            return _error(400, f"Invalid domain id {id}")
        if id in self.domains or self._named(wanted["name"]):
            return _error(409, f"Conflict occurred attempting to store domain - Duplicate entry: {wanted['name']}.")
        return web.json_response({"domain": self.add(id=id, **wanted)}, status=201)

    def _named(self, name: str) -> bool:
        return any(self._matches(item["name"], name) for item in self.domains.values())

    async def _get(self, request: web.Request) -> web.Response:
        found = self.domains.get(request.match_info["id"])
        return web.json_response({"domain": found}) if found else _missing(request)

    async def _update(self, request: web.Request) -> web.Response:
        found = self.domains.get(request.match_info["id"])
        if found is None:
            return _missing(request)
        changes = (await request.json())["domain"]
        if not self._matches(changes.get("name", found["name"]), found["name"]) and self._named(changes["name"]):
            return _error(409, "Conflict occurred attempting to store domain - Duplicate entry.")
        found.update(changes)
        return web.json_response({"domain": found})

    async def _delete(self, request: web.Request) -> web.Response:
        found = self.domains.get(request.match_info["id"])
        if found is None:
            return _missing(request)
        if found["enabled"]:
            return _error(403, "Cannot delete a domain that is enabled, please disable it first.")
        del self.domains[found["id"]]
        self.federated.forget_domain(found["id"])
        return web.Response(status=204)


def _missing(request: web.Request) -> web.Response:
    return _error(404, f"Could not find domain: {request.match_info['id']}.")


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"error": {"code": status, "message": message, "title": "x"}}, status=status)


@dataclass
class StubResolver(AbstractResolver):
    """Sends every name to the stub, whatever port was asked for; `names` holds what was asked for."""

    stub: StubKeystone
    names: list[str] = field(default_factory=list)

    async def resolve(self, host: str, port: int = 0, family: Any = 2) -> list[ResolveResult]:
        self.names.append(f"{host}:{port}")
        return [ResolveResult(hostname=host, host="127.0.0.1", port=self.stub.port, family=2, proto=0, flags=0)]

    async def close(self) -> None:
        """Nothing is held."""
