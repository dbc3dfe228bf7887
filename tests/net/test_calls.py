"""Calls of the APIs that we administer: what goes over the wire, what may go again, what is refused."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver, ResolveResult

from moorage.calling.line import Broken, NotConnected, Stale, TooLarge
from moorage.net import calls
from moorage.net.calls import Call, Calls, Server
from moorage.net.resolver import ServiceResolver

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Names(AbstractResolver):
    """Stands for the system's resolver, and counts."""

    def __init__(self, *addresses: str) -> None:
        self.addresses, self.asked = addresses, 0

    async def resolve(self, host: str, port: int = 0, family: Any = socket.AF_INET) -> list[ResolveResult]:
        self.asked += 1
        if not self.addresses:
            raise OSError(None, f"nobody knows {host}")
        made = {"hostname": host, "port": port, "family": socket.AF_INET, "proto": 0, "flags": 0}
        return [ResolveResult(host=address, **made) for address in self.addresses]  # type: ignore[typeddict-item]

    async def close(self) -> None:
        return


@dataclass
class Heard:
    """What a server heard; `answers` are what it says, the last one again and again; None hangs up without a word."""

    answers: list[bytes | None]
    port: int = 0
    connections: int = 0
    requests: list[bytes] = field(default_factory=list)

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    (int(line[16:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length: ")), 0
                )
                self.requests.append(head + await reader.readexactly(length))
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if answer is None:
                    return
                writer.write(answer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def hearing(*answers: bytes | None) -> AsyncIterator[Heard]:
    """A server on loopback."""
    heard = Heard(list(answers))
    server = await asyncio.start_server(heard.connected, "127.0.0.1", 0)
    heard.port = server.sockets[0].getsockname()[1]
    try:
        yield heard
    finally:
        server.close()


@pytest.fixture
async def made() -> AsyncIterator[Callable[..., Server]]:
    """Servers by port, whose connections are closed in the end."""
    every: list[Calls] = []

    def make(port: int, host: str = "127.0.0.1", **more: Any) -> Server:
        every.append(Calls(**more))
        return every[-1].server(f"http://{host}:{port}/v3/")

    yield make
    for item in every:
        await item.close()


async def test_a_request_is_one_head_and_one_body(made: Callable[..., Server]) -> None:
    """The path of the address, the query, the length of a body; a write without one says so."""
    async with hearing(OK) as heard:
        server = made(heard.port)
        assert (await server.ask(Call("GET", "/domains?name=a%20b", (("X-Auth-Token", "t"),)), 10)).body == b"ok"
        await server.ask(Call("POST", "/x", body=b'{"a":1}'), 10)
        await server.ask(Call("PUT", "/y"), 10)
    first, second, third = heard.requests
    assert first.startswith(
        b"GET /v3/domains?name=a%20b HTTP/1.1\r\nHost: 127.0.0.1:" + str(heard.port).encode() + b"\r\n"
    )
    assert b"\r\nX-Auth-Token: t\r\n" in first
    assert b"Content-Length" not in first
    assert second.endswith(b'Content-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}')
    assert third.endswith(b"Content-Length: 0\r\n\r\n")
    assert heard.connections == 1


async def test_a_service_is_reached_by_its_name_and_writes_are_fenced(made: Callable[..., Server]) -> None:
    """Reads pass, and a login, which changes nothing that a person would miss; other writes ask the fence."""
    asked: list[int] = []

    def lookup(namespace: str, service: str) -> str | None:
        return "127.0.0.1" if (namespace, service) == ("default", "keystone") else None

    async with hearing(OK) as heard:
        resolver = ServiceResolver(lookup, Names())
        server = made(heard.port, "keystone.default.svc", resolver=resolver, fence=lambda: asked.append(1))
        for call in (Call("GET", "/"), Call("POST", "/", asking=True), Call("POST", "/"), Call("DELETE", "/")):
            assert (await server.ask(call, 10)).status == 200
    assert asked == [1, 1]
    elsewhere = made(heard.port, "other.default.svc", resolver=resolver)
    with pytest.raises(NotConnected) as told:
        await elsewhere.ask(Call("GET", "/"), 10)
    assert told.value.why == "Service other does not exist in namespace default"


async def test_many_requests_leave_room_for_others(made: Callable[..., Server]) -> None:
    """A server never has more than eight of ours at once, and waiting for a turn is not waiting for an answer."""
    here, most, count, eight = 0, 0, 40, asyncio.Barrier(8)

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal here, most
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                here += 1
                most = max(most, here)
                await eight.wait()  # nobody is answered before eight are here
                here -= 1
                writer.write(OK)
        writer.close()

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    server = made(listener.sockets[0].getsockname()[1])
    answers = await asyncio.gather(*(server.ask(Call("GET", f"/{n}"), 10) for n in range(count)))
    listener.close()
    assert [answer.status for answer in answers] == [200] * count
    assert most == 8


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_a_connection_that_the_server_ended_costs_an_idempotent_request_nothing(
    made: Callable[..., Server], method: str
) -> None:
    """It goes again, once, over a new connection."""
    async with hearing(OK, None, OK) as heard:
        server = made(heard.port)
        await server.ask(Call("GET", "/"), 10)
        assert (await server.ask(Call(method, "/"), 10)).body == b"ok"
    assert (heard.connections, len(heard.requests)) == (2, 3)


async def test_what_may_have_happened_is_not_asked_again(made: Callable[..., Server]) -> None:
    """A POST, and whatever breaks over a fresh connection or after the answer began."""
    async with hearing(OK, None) as heard:
        server = made(heard.port)
        await server.ask(Call("GET", "/"), 10)
        with pytest.raises(Stale):
            await server.ask(Call("POST", "/"), 10)
        with pytest.raises(Broken) as fresh:
            await server.ask(Call("GET", "/"), 10)
    assert not isinstance(fresh.value, Stale)
    assert len(heard.requests) == 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 201 Created\r\nContent-Length: 200\r\n\r\n" + b"x" * 200,
        b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\nc8\r\n" + b"x" * 200 + b"\r\n0\r\n\r\n",
        b"HTTP/1.1 201 Created\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b"
        % (len(gzip.compress(b"x" * 9999)), gzip.compress(b"x" * 9999)),
    ],
    ids=["with a length", "in chunks", "unpacked"],
)
async def test_an_answer_without_bound_is_given_up(
    made: Callable[..., Server], monkeypatch: pytest.MonkeyPatch, answer: bytes
) -> None:
    """However it comes; the connection goes with it."""
    monkeypatch.setattr(calls, "ANSWER_LIMIT", 100)
    async with hearing(answer, OK) as heard:
        server = made(heard.port)
        with pytest.raises(TooLarge, match="larger than 100 bytes") as told:
            await server.ask(Call("GET", "/"), 10)
        assert told.value.status == 201
        assert (await server.ask(Call("GET", "/"), 10)).body == b"ok"
    assert heard.connections == 2


async def test_addresses_are_tried_in_turn_and_believed_for_a_moment(made: Callable[..., Server]) -> None:
    """One that refuses is not the end; a name is not asked for with each connection."""
    async with hearing(OK.replace(b"OK\r\n", b"OK\r\nConnection: close\r\n")) as heard:
        names = Names("127.0.0.2", "127.0.0.1")
        server = made(heard.port, "keystone.example", resolver=names)
        for _ in range(3):
            assert (await server.ask(Call("GET", "/"), 10)).status == 200
    assert (heard.connections, names.asked) == (3, 1)


@pytest.mark.parametrize(
    "call",
    [Call("GET", "/a b"), Call("GET", "/\r\nX: y"), Call("GET", "/ä"), Call("GET", "/", (("X-A", "b\r\nX-C: d"),))],
)
async def test_what_no_head_carries_is_refused_before_anything_is_sent(made: Callable[..., Server], call: Call) -> None:
    """No value begins another line."""
    async with hearing(OK) as heard:
        with pytest.raises(ValueError, match=r"header|percent"):
            await made(heard.port).ask(call, 10)
    assert heard.connections == 0
