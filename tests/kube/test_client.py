"""The client towards servers that are busy, break connections or answer nonsense; well-behaved ones: tests/runtime."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
from aiohttp import web

from moorage.core.meta import Key
from moorage.core.secret import SecretText
from moorage.kube.client import Client, PatchType
from moorage.kube.config import Connection
from moorage.kube.credentials import Credential
from moorage.kube.errors import (
    AlreadyExists,
    ApiError,
    BadRequest,
    Conflict,
    ConnectionFailed,
    Expired,
    Forbidden,
    Invalid,
    MethodNotSupported,
    NotFound,
    ServerError,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    error_of,
)
from moorage.kube.resources import CONFIG_MAPS, NAMESPACES, PODS
from moorage.kube.watch import follow, scope
from moorage.schema import Kind, Resource

Serving = Any
KEY = Key("default", "x")
OBJ = {"metadata": {"name": "x", "namespace": "default"}}


def failure(status: int, reason: str, headers: dict[str, str] | None = None, **details: Any) -> web.Response:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": status,
        "reason": reason,
        "message": reason,
        "details": details,
    }
    return web.json_response(body, status=status, headers=headers)


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_retry_after_is_honoured_for_reads_and_writes(serving: Serving, status: int) -> None:
    """The server says when; the body goes again unchanged."""
    bodies: list[Any] = []

    async def handler(request: web.Request) -> web.Response:
        bodies.append(await request.json())
        if len(bodies) < 3:
            return failure(status, "Busy", {"Retry-After": "0"})
        return web.json_response(OBJ)

    async with serving(handler) as client:
        assert await client.create(CONFIG_MAPS, {**OBJ, "data": {"a": "b"}}) == OBJ
    assert len(bodies) == 3
    assert bodies[0] == bodies[2]
    assert client.calls["POST", "configmaps"] == 1


async def test_a_server_that_asks_for_ever_is_given_up(serving: Serving) -> None:
    """Ten times; the last answer is the error. A wait of an hour is not waited for."""
    count = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return failure(429, "TooManyRequests", {"Retry-After": "3600" if "long" in request.path else "0"})

    async with serving(handler) as client:
        with pytest.raises(TooManyRequests):
            await client.get(CONFIG_MAPS, KEY)
        assert count == 11
        with pytest.raises(TooManyRequests):
            await client.get(CONFIG_MAPS, Key("default", "long"))
        assert count == 12


async def test_an_error_without_retry_after_is_not_retried(serving: Serving) -> None:
    """500 is an answer."""
    count: Counter[str] = Counter()

    async def handler(request: web.Request) -> web.Response:
        count[request.method] += 1
        return failure(500, "InternalError")

    async with serving(handler) as client:
        with pytest.raises(ServerError):
            await client.get(CONFIG_MAPS, KEY)
    assert count == {"GET": 1}


async def test_a_reset_is_retried_only_for_what_may_happen_twice(serving: Serving) -> None:
    """Reads, guarded replaces, applies and merge patches go again; a create, a JSON patch and an unguarded delete do not."""
    count: Counter[str] = Counter()

    async def handler(request: web.Request) -> web.Response:
        name = request.headers.get("Content-Type", request.method)
        count[name] += 1
        if count[name] == 1:
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(OBJ)

    async with serving(handler) as client:
        await client.get(CONFIG_MAPS, KEY)
        await client.apply(CONFIG_MAPS, OBJ)
        await client.patch(CONFIG_MAPS, KEY, {})
        assert set(count.values()) == {2}
        with pytest.raises(ConnectionFailed):
            await client.create(CONFIG_MAPS, OBJ)
        with pytest.raises(ConnectionFailed):
            await client.patch(CONFIG_MAPS, KEY, [], type=PatchType.JSON)
    assert count["application/json"] == 1
    assert count["application/json-patch+json"] == 1


async def test_a_server_that_is_not_there_is_named() -> None:
    """Nothing listens: ConnectionFailed with the address, after a few attempts, for writes too."""
    async with Client(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectionFailed, match=r"127\.0\.0\.1:1"):
            await client.create(CONFIG_MAPS, OBJ)


async def test_nonsense_is_an_error_and_not_a_crash(serving: Serving) -> None:
    """A proxy's page instead of JSON."""

    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="<html>", status=200 if "x" in request.path else 502)

    async with serving(handler) as client:
        with pytest.raises(ConnectionFailed, match="not JSON"):
            await client.get(CONFIG_MAPS, KEY)
        with pytest.raises(ServerError, match="<html>"):
            await client.get(CONFIG_MAPS, Key("default", "y"))


async def test_redirects_are_not_followed(serving: Serving) -> None:
    """Credentials go nowhere else."""

    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=307, headers={"Location": "http://127.0.0.1:1/"})

    async with serving(handler) as client:
        with pytest.raises(ConnectionFailed):
            await client.get(CONFIG_MAPS, KEY)


async def test_a_refused_credential_is_renewed_once(serving: Serving) -> None:
    """401 asks the source for another one; a second 401 is the answer."""

    class Source:
        made = 0

        async def current(self) -> Credential:
            return Credential(SecretText(f"Bearer {self.made}"))

        def refused(self) -> bool:
            self.made += 1
            return True

    async def handler(request: web.Request) -> web.Response:
        return (
            web.json_response(OBJ) if request.headers["Authorization"] == "Bearer 1" else failure(401, "Unauthorized")
        )

    async with serving(handler) as stub, Client(Connection(stub.connection.server, credentials=Source())) as client:
        assert await client.get(CONFIG_MAPS, KEY) == OBJ
        client.connection.credentials.refused()
        with pytest.raises(Unauthorized):
            await client.get(CONFIG_MAPS, KEY)


async def test_lists_are_read_page_by_page(serving: Serving) -> None:
    """All pages, one resourceVersion, kinds filled in."""

    async def handler(request: web.Request) -> web.Response:
        assert request.query["labelSelector"] == "a=b"
        page = int(request.query.get("continue", "0"))
        meta = {"resourceVersion": "7", **({"continue": str(page + 1)} if page < 2 else {})}
        return web.json_response({"metadata": meta, "items": [{"metadata": {"name": f"n{page}"}}]})

    async with serving(handler) as client:
        listing = await client.list(NAMESPACES, labels="a=b")
    assert [item["metadata"]["name"] for item in listing.items] == ["n0", "n1", "n2"]
    assert (listing.resource_version, listing.items[0]["kind"]) == ("7", "Namespace")


async def test_typed_kinds_give_typed_objects(serving: Serving) -> None:
    """The same verbs, with models."""
    kind: Kind[Resource] = Kind("x.io", "v1", "Thing", "things", Resource, "A thing.")

    async def handler(request: web.Request) -> web.Response:
        if request.method == "POST":
            return web.json_response(await request.json())
        obj = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "x", "namespace": "default"}}
        return web.json_response(
            {"metadata": {"resourceVersion": "1"}, "items": [obj]} if "x" not in request.path[-2:] else obj
        )

    async with serving(handler) as client:
        thing = await client.get(kind, KEY)
        assert thing.key == KEY
        assert [item.key for item in (await client.list(kind)).items] == [KEY]
        assert (await client.create(kind, thing)).kind == "Thing"


async def test_a_write_asks_all_guards_and_a_read_none(serving: Serving) -> None:
    """Fencing."""

    async def handler(request: web.Request) -> web.Response:
        return web.json_response(OBJ)

    def refuse() -> None:
        raise RuntimeError("not leading")

    async with serving(handler) as client:
        asked: list[int] = []
        fenced = client.fenced(lambda: asked.append(1)).fenced(refuse)
        await fenced.get(CONFIG_MAPS, KEY)
        for write in (fenced.create(CONFIG_MAPS, OBJ), fenced.apply(CONFIG_MAPS, OBJ), fenced.delete(CONFIG_MAPS, KEY)):
            with pytest.raises(RuntimeError):
                await write
        assert asked == [1, 1, 1]
        await client.create(CONFIG_MAPS, OBJ)
        assert fenced.writes == client.writes == 1


async def test_a_retry_asks_the_guards_again(serving: Serving) -> None:
    """Leadership that ended while the server made us wait does not write."""
    count = 0

    async def handler(request: web.Request) -> web.Response:
        nonlocal count
        count += 1
        return failure(503, "ServiceUnavailable", {"Retry-After": "0"})

    def leading() -> None:
        if count:
            raise RuntimeError("no longer leading")

    async with serving(handler) as client:
        with pytest.raises(RuntimeError):
            await client.fenced(leading).create(CONFIG_MAPS, OBJ)
    assert count == 1


async def test_a_write_that_hangs_is_given_up_before_the_claim_ends(serving: Serving) -> None:
    """A request on its way must not arrive in another leader's time; a read may take its time."""
    hanging = asyncio.Event()

    async def handler(request: web.Request) -> web.Response:
        if request.method == "PUT":
            await hanging.wait()
        return web.json_response(OBJ)

    claim = [1.0]

    def leading() -> None:
        if not claim:
            raise RuntimeError("no longer leading")

    def left() -> float:
        claim.clear()
        return 0.05

    async with serving(handler) as client:
        guarded = {"metadata": {**OBJ["metadata"], "resourceVersion": "1"}}
        with pytest.raises(RuntimeError):
            await client.fenced(leading, left).replace(CONFIG_MAPS, guarded)
        assert await client.get(CONFIG_MAPS, KEY) == OBJ


def test_errors_have_the_type_of_their_code_and_reason() -> None:
    """Reason before code where they differ; the cause is readable."""
    table: dict[tuple[int, str], type[ApiError]] = {
        (400, "BadRequest"): BadRequest, (401, ""): Unauthorized, (403, "Forbidden"): Forbidden, (404, "NotFound"): NotFound,
        (405, "MethodNotAllowed"): MethodNotSupported, (409, "Conflict"): Conflict, (409, "AlreadyExists"): AlreadyExists,
        (410, "Expired"): Expired, (410, "Gone"): Expired, (413, ""): TooLarge, (422, "Invalid"): Invalid,
        (429, ""): TooManyRequests, (503, ""): ServerError, (418, ""): ApiError,
    }  # fmt: skip
    for (status, reason), wanted in table.items():
        found = error_of(status, {"reason": reason, "message": "m", "details": {"causes": [{"field": "spec.a"}]}})
        assert type(found) is wanted
        assert found.causes[0]["field"] == "spec.a"
    assert str(error_of(502, "bad gateway")) == "bad gateway"


# --- watches


async def stream(request: web.Request, *lines: Any, end: bool = True) -> web.StreamResponse:
    response = web.StreamResponse()
    await response.prepare(request)
    for line in lines:
        data = line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n"
        for start in range(0, len(data), 50_000):
            await response.write(data[start : start + 50_000])
    if not end:
        await asyncio.sleep(3600)
    return response


def event(type_: str, version: int, size: int = 0) -> dict[str, Any]:
    return {"type": type_, "object": {"metadata": {"name": "x", "resourceVersion": str(version)}, "data": "y" * size}}


async def test_a_watch_takes_lines_of_any_size_and_drops_an_unfinished_one(serving: Serving) -> None:
    """A megabyte in one event; half an event at the end comes again with the next connection."""

    async def handler(request: web.Request) -> web.StreamResponse:
        assert request.query["allowWatchBookmarks"] == "true"
        return await stream(request, event("ADDED", 1, 1_200_000), b'{"type": "MODI')

    async with serving(handler) as client:
        found = [item async for item in client.watch(CONFIG_MAPS, since="0")]
    assert [(item.type, item.resource_version) for item in found] == [("ADDED", "1")]


@pytest.mark.case("B76")
@pytest.mark.parametrize("how", ["status", "event", "nonsense"])
async def test_410_error_events_and_nonsense_are_expired(serving: Serving, how: str) -> None:
    """Whatever the form: only a fresh list helps."""
    error = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}}

    async def handler(request: web.Request) -> web.StreamResponse:
        if how == "status":
            return failure(410, "Expired")
        return await stream(request, error if how == "event" else b"nonsense\n")

    async with serving(handler) as client:
        with pytest.raises(Expired):
            async for _ in follow(client, scope(CONFIG_MAPS), "1"):
                pass


@pytest.mark.case("B76")
async def test_a_silent_watch_goes_on_from_the_last_version(serving: Serving) -> None:
    """Bookmarks count; nothing for the inactivity limit means a new connection; trouble is told, not raised."""
    asked: list[str] = []

    async def handler(request: web.Request) -> web.StreamResponse:
        asked.append(request.query["resourceVersion"])
        if len(asked) == 1:
            return await stream(request, event("ADDED", 5), event("BOOKMARK", 9), end=False)
        if len(asked) == 2:
            return failure(503, "ServiceUnavailable")
        return await stream(request, event("MODIFIED", 10), end=False)

    trouble: list[Exception] = []
    async with serving(handler) as client:
        found = []
        async for item in follow(client, scope(CONFIG_MAPS), "1", trouble=trouble.append):
            found.append((item.type, item.resource_version))
            if len(found) == 3:
                break
    assert found == [("ADDED", "5"), ("BOOKMARK", "9"), ("MODIFIED", "10")]
    assert asked == ["1", "9", "9"]
    assert [type(item) for item in trouble] == [ServerError]


async def test_logs_are_lines(serving: Serving) -> None:
    """The last one needs no end; options are passed on."""

    async def handler(request: web.Request) -> web.Response:
        assert dict(request.query) == {"container": "c", "previous": "true", "tailLines": "5"}
        return web.Response(body=b"one\ntwo\nthree")

    async with serving(handler) as client:
        lines = [line async for line in client.logs(KEY, container="c", previous=True, tail=5)]
    assert lines == ["one", "two", "three"]
    assert PODS.path("default", "x", "log") == "/api/v1/namespaces/default/pods/x/log"
