"""The fake over real HTTP: from bytes on a connection to a handler and back, faults and journal included.

Enters: a Fake, a port. Leaves: a served URL for the time of a `with`. Loopback only. `/_fake/...` is the remote control of a fake in another process.
"""

from __future__ import annotations

import asyncio
import inspect
import ssl
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from email.utils import formatdate
from urllib.parse import parse_qsl, unquote

from aiohttp import web

from .clock import SECOND
from .control import PREFIX, controlled
from .exchange import Answer, Call, Request, json_answer
from .fake import Fake
from .faults import Fault
from .model import User, new_id
from .reading import Problem
from .routes import Route, Who, route_of

NO_ROUTE = Answer(404, b"404 page not found", {"Content-Type": "text/plain"})


async def answered(fake: Fake, request: Request) -> tuple[Answer, Fault | None]:
    """The answer to one request, and the fault that struck it."""
    if request.path.startswith(PREFIX):
        return controlled(fake, request), None
    fault = fake.faults.strike(request)
    user, how = fake.identify(request)
    met = route_of(request.method, request.path)
    number = new_id()
    if fault is not None and fault.kind == "drop_before":
        answer = NO_ROUTE
    else:
        answer = await _guarded(fake, request, met, (user, how, fault), number)
    fake.journal.note(request, met[0].template if met else "", how, answer.status)
    return answer, fault


async def _guarded(
    fake: Fake,
    request: Request,
    met: tuple[Route, dict[str, str]] | None,
    facts: tuple[User | None, str, Fault | None],
    number: str,
) -> Answer:
    user, how, fault = facts
    try:
        if fault is not None and (instead := await fault.before()) is not None:
            return instead
        if not fake.limiter.request():
            raise Problem(429, "rate_limited")
        if met is None:
            return _no_route(request)
        _admit(met[0], user, how)
        answer = met[0].handler(Call(fake, request, met[1], user))
        answer = await answer if inspect.isawaitable(answer) else answer
        if fault is not None and fault.kind == "status":
            raise Problem(fault.status, fault.code)
        return answer
    except Problem as problem:
        return _envelope(problem, number, fault)


def _admit(route: Route, user: User | None, how: str) -> None:
    if route.who is Who.ANYBODY:
        return
    if user is None:
        raise Problem(401, "not_signed_in")
    if user.settings["disabled"]:
        raise Problem(403, "user_disabled")
    if route.who is Who.SESSION and how != "session":
        raise Problem(403, "api_key_auth_not_allowed")
    if route.who is Who.ADMIN and not user.settings["isAdmin"]:
        raise Problem(403, "forbidden")


def _envelope(problem: Problem, number: str, fault: Fault | None) -> Answer:
    body = {"error": problem.text, "code": problem.code} | ({"details": problem.details} if problem.details else {})
    answer = json_answer(body | {"request_id": number}, problem.status)
    wait = {"Retry-After": fault.retry_after if fault else "10"} if problem.status == 429 else {}
    return Answer(problem.status, answer.body, {**answer.headers, "X-Request-ID": number, **wait})


def _no_route(request: Request) -> Answer:
    """A slash too much is redirected; the rest is unknown. So does a build without web UI."""
    bare = request.path.rstrip("/")
    if bare != request.path and bare and route_of(request.method, bare):
        page = f'<a href="{bare}">Moved Permanently</a>.\n\n'.encode()
        kind = {"Location": bare, "Content-Type": "text/html; charset=utf-8"}
        return Answer(301 if request.method == "GET" else 307, page, kind)
    return NO_ROUTE


async def _serve(fake: Fake, raw: web.BaseRequest) -> web.StreamResponse:
    target, _, query = raw.raw_path.partition("?")
    headers = {name.lower(): value for name, value in raw.headers.items()}
    asked = dict(parse_qsl(query, keep_blank_values=True))
    request = Request(raw.method, unquote(target), asked, headers, await raw.content.read())
    answer, fault = await answered(fake, request)
    if fault is not None and fault.kind in ("drop_before", "drop_after") and raw.transport is not None:
        raw.transport.abort()
    date = formatdate(fake.clock.now() / SECOND, usegmt=True)
    number = {} if "X-Request-ID" in answer.headers else {"X-Request-ID": new_id()}
    response = web.Response(
        status=answer.status, body=answer.content or None, headers={"Date": date, **number, **answer.headers}
    )
    if not answer.content:
        response.headers.pop("Content-Type", None)
    return response


@asynccontextmanager
async def serving(
    fake: Fake, port: int = 0, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[str]:
    """Serve on the running loop; yields `http://HOST:PORT` (https with a context), which is the fake's own address unless it has one."""

    async def handle(raw: web.BaseRequest) -> web.StreamResponse:
        return await _serve(fake, raw)

    runner = web.ServerRunner(web.Server(handle, access_log=None), shutdown_timeout=0.5)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port, ssl_context=tls).start()
        url = f"{'https' if tls else 'http'}://{host}:{runner.addresses[0][1]}"
        fake.app_url = fake.app_url or url
        yield url
    finally:
        for rule in fake.faults.rules:
            rule.release()
        await runner.cleanup()


@contextmanager
def running(fake: Fake, port: int = 0, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve in a thread of its own, for tests without a loop, or with another."""
    loop, ready, told = asyncio.new_event_loop(), threading.Event(), list[str]()
    stop = asyncio.Event()

    async def serve() -> None:
        async with serving(fake, port, host, tls) as url:
            told.append(url)
            ready.set()
            await stop.wait()

    def work() -> None:
        try:
            loop.run_until_complete(serve())
        finally:
            ready.set()
            loop.close()

    thread = threading.Thread(target=work, name="fake-pocketid", daemon=True)
    thread.start()
    ready.wait()
    if not told:
        raise OSError("the fake Pocket-ID does not come up")
    try:
        yield told[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
