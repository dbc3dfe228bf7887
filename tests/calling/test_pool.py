"""Connections to one server: kept, counted, dropped, and never mixed up."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from moorage.calling.line import Broken, Flow, NotConnected
from moorage.calling.pool import Door, Pool
from moorage.core.errors import InputError
from moorage.kube.config import Connection
from moorage.kube.transport import Transport

ASK = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Stand:
    """A pool in front of a server that says what the test says."""

    pool: Pool
    connections: int = 0
    asked: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def standing(talk: Talk) -> AsyncIterator[Stand]:
    """`talk` is called for each request with its connection."""

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        stand.connections += 1
        try:
            while True:
                stand.asked.append(await reader.readuntil(b"\r\n\r\n"))
                await talk(reader, writer)
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    stand = Stand(Pool("127.0.0.1", server.sockets[0].getsockname()[1]))
    try:
        yield stand
    finally:
        await stand.pool.close()
        server.close()


def saying(*pieces: bytes, end: bool = False) -> Talk:
    """Writes these pieces, a turn of the loop apart; `end` closes the connection then."""

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if end:
            writer.close()
            raise ConnectionResetError

    return talk


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def test_requests_one_after_the_other_share_a_connection() -> None:
    """The pool opens one connection for twenty requests, and one for each of those that run at once."""
    async with standing(saying(OK)) as stand:
        for _ in range(20):
            assert (await stand.pool.exchange(ASK, Door())).body == b"ok"
        assert stand.connections == 1
        await asyncio.gather(*(stand.pool.exchange(ASK, Door()) for _ in range(5)))
        assert stand.connections == 5


@pytest.mark.parametrize(
    "pieces",
    [
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab", b"c\r\n1\r\nd\r\n0\r\n\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"ab", b"cd"),
        (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 24\r\n\r\n" + gzip.compress(b"abcd", mtime=0),),
    ],
    ids=["chunked", "after a 100", "gzip"],
)
async def test_bodies_are_whole_however_they_come(pieces: tuple[bytes, ...]) -> None:
    """Chunks, interim answers and gzip are read, and the connection is good for another request."""
    async with standing(saying(*pieces)) as stand:
        for _ in range(2):
            assert (await stand.pool.exchange(ASK, Door())).body == b"abcd"
        assert stand.connections == 1


async def test_a_body_without_a_length_ends_with_its_connection() -> None:
    """As servers of HTTP/1.0 answer."""
    async with standing(saying(b"HTTP/1.0 200 OK\r\n\r\nab", b"cd", end=True)) as stand:
        assert (await stand.pool.exchange(ASK, Door())).body == b"abcd"


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nha",
        b"SSH-2.0\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nabcd",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * 300_000 + b"\r\n\r\n",
    ],
    ids=["nothing", "half", "half a chunk", "no HTTP", "no gzip", "an endless head"],
)
async def test_half_an_answer_is_none(said: bytes) -> None:
    """What is not whole, or is nonsense, is an error that says so; its connection is not used again."""
    async with standing(saying(said, end=True)) as stand:
        with pytest.raises(Broken):
            await stand.pool.exchange(ASK, Door())
        with pytest.raises(Broken):
            await stand.pool.exchange(ASK, Door())
        assert stand.connections == 2


async def test_a_connection_that_the_server_ended_is_not_used_again() -> None:
    """`Connection: close`, and one that was closed while nobody used it."""
    closing = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
    async with standing(saying(closing, end=True)) as stand:
        for _ in range(3):
            assert (await stand.pool.exchange(ASK, Door())).body == b"ok"
    async with standing(saying(OK, end=True)) as stand:
        for _ in range(3):
            assert (await stand.pool.exchange(ASK, Door())).body == b"ok"
            async with asyncio.timeout(10):
                while stand.pool.lines:  # noqa: ASYNC110  its connection_lost is what is waited for
                    await asyncio.sleep(0)
        assert stand.connections == 3


async def test_a_cancelled_request_takes_its_connection_along() -> None:
    """Its late answer reaches nobody; the next request has a connection of its own."""
    asked, release = asyncio.Event(), asyncio.Event()

    async def late(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not asked.is_set():
            asked.set()
            await release.wait()
            writer.write(OK.replace(b"ok", b"!!"))
        else:
            writer.write(OK)

    async with standing(late) as stand:
        first = asyncio.create_task(stand.pool.exchange(ASK, Door()))
        await asked.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        release.set()
        assert (await stand.pool.exchange(ASK, Door())).body == b"ok"
        assert stand.connections == 2


async def test_a_request_that_is_cancelled_with_its_answer_there_harms_no_other() -> None:
    """The connection went back to the pool with the answer, and may be another's already."""
    async with standing(saying(OK)) as stand:
        kept = stand.pool.keep

        def cancel(line: Any) -> None:
            kept(line)
            first.cancel()

        stand.pool.keep = cancel  # type: ignore[method-assign]
        first = asyncio.create_task(stand.pool.exchange(ASK, Door()))
        await asyncio.wait({first})
        assert first.cancelled()
        stand.pool.keep = kept  # type: ignore[method-assign]
        assert (await stand.pool.exchange(ASK, Door())).body == b"ok"
        assert stand.connections == 1


async def test_a_request_has_so_long_and_no_longer() -> None:
    """Its connection goes with it; one that was answered in time is not touched by the clock any more."""
    silent = asyncio.Event()

    async def never(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await silent.wait()

    async with standing(never) as stand:
        for ask in (stand.pool.exchange, stand.pool.flow):
            with pytest.raises(TimeoutError):
                await ask(ASK, Door(), 0.01)
        assert stand.connections == 2
        silent.set()
    async with standing(saying(OK)) as stand:
        assert (await stand.pool.exchange(ASK, Door(), 60)).body == b"ok"
        (line,) = stand.pool.lines
        line.expire()
        assert (await stand.pool.exchange(ASK, Door(), 60)).body == b"ok"
        assert stand.connections == 1


async def test_a_flow_gives_pieces_as_they_come_and_the_end() -> None:
    """A reader that is slow stops the server, not the loop; a silent server is given up."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    big = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    async with standing(saying(head, big, b"0\r\n\r\n")) as stand:
        flow = await stand.pool.flow(ASK, Door())
        assert len(await flow.read()) == 0x100000
        flow.abort()
    async with standing(saying(head, b"1\r\nx\r\n")) as stand:
        flow = await stand.pool.flow(ASK, Door())
        assert await flow.more(10) == b"x"
        with pytest.raises(TimeoutError):
            await flow.more(0.01)
        flow.abort()
    async with standing(saying(head, b"1\r\nx\r\n", end=True)) as stand:
        flow = await stand.pool.flow(ASK, Door())
        with pytest.raises(Broken):
            await flow.read()


async def test_what_was_never_connected_has_sent_nothing() -> None:
    """Told apart from a broken connection, because it may be repeated."""
    async with standing(saying(OK)) as stand:
        port = stand.pool.port
    with pytest.raises(NotConnected, match="cannot connect"):
        await Pool("127.0.0.1", port).exchange(ASK, Door())


async def test_a_header_never_begins_another_line() -> None:
    """A user name of a kubeconfig with a line end in it is refused before anything is sent."""
    with pytest.raises(InputError, match="Impersonate-User"):
        Transport(Connection("http://x", headers=(("Impersonate-User", "a\r\nAuthorization: b"),)))


class Clock:
    """A loop whose time stands until the test says otherwise."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []

    def time(self) -> float:
        return self.now

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.get_running_loop().create_future()

    def call_at(self, when: float, call: Callable[[], None]) -> Any:
        self.timers.append((when, call))
        return SimpleNamespace(when=lambda: when, cancel=lambda: self.timers.remove((when, call)))

    def ring(self) -> None:
        """The one timer that is set goes off."""
        [(self.now, call)] = self.timers
        self.timers.clear()
        call()


async def test_silence_counts_from_the_last_piece_and_costs_one_timer() -> None:
    """A timer that goes off while pieces come looks again later; nobody is given up before the time is over."""
    clock = Clock()
    line: Any = SimpleNamespace(pool=SimpleNamespace(loop=clock), resume=lambda: None, abort=lambda: None)
    flow = Flow(line, 200, {})
    for clock.now in (0.0, 4.0, 8.0):
        waiting = asyncio.create_task(flow.more(10.0))
        await asyncio.sleep(0)
        flow.feed(b"x")
        assert await waiting == b"x"
    assert [when for when, _ in clock.timers] == [10.0]
    waiting = asyncio.create_task(flow.more(10.0))
    await asyncio.sleep(0)
    clock.ring()
    assert [when for when, _ in clock.timers] == [18.0]
    clock.ring()
    with pytest.raises(TimeoutError):
        await waiting
    flow.abort()
    assert clock.timers == []
