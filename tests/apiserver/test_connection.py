"""HTTP/1.1 as connection.py speaks it, byte by byte, with an application of our own behind it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from tests.apiserver.conftest import CONFIG_MAPS, Client

from moorage.serving.connection import Connection, Exchange, Response, Shared


class Peer:
    """A client that sends what it is told, and reads one answer at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, *pieces: bytes) -> None:
        self.writer.writelines(pieces)

    async def head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(30):
            lines = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        pairs = [line.split(": ", 1) for line in lines[1:] if line]
        return int(lines[0].split()[1]), dict(pairs)

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        return status, headers, await self.reader.readexactly(int(headers["content-length"]))

    async def chunk(self) -> bytes:
        async with asyncio.timeout(30):
            size = int(await self.reader.readline(), 16)
            piece = await self.reader.readexactly(size)
            await self.reader.readexactly(2)
            return piece

    async def end(self) -> bytes:
        """What is left until the server closes."""
        async with asyncio.timeout(30):
            return await self.reader.read()


class House:
    """A server with one application, which tests replace."""

    def __init__(self) -> None:
        self.seen: list[Exchange] = []
        self.app: Callable[[Exchange], Awaitable[Response]] = self.echo
        self.shared = Shared(self.serve, 3)
        self.peers: list[Peer] = []

    async def serve(self, exchange: Exchange) -> Response:
        self.seen.append(exchange)
        return await self.app(exchange)

    async def echo(self, exchange: Exchange) -> Response:
        return Response(
            200, f"{exchange.path}|{exchange.query}|{exchange.fault}|".encode() + exchange.body, "text/plain"
        )

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        self.server = await loop.create_server(lambda: Connection(self.shared), "127.0.0.1", 0)

    async def peer(self) -> Peer:
        found = Peer(*await asyncio.open_connection(*self.server.sockets[0].getsockname(), limit=2**22))
        self.peers.append(found)
        return found

    def check(self, later: float) -> None:
        """As the listener does now and then, `later` seconds from now."""
        for connection in list(self.shared.connections):
            connection.check(asyncio.get_running_loop().time() + later)


async def until(holds: Callable[[], bool]) -> None:
    """Let the loop turn until something holds."""
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110 - the server under test tells nobody
            await asyncio.sleep(0)


@pytest.fixture
async def house() -> AsyncIterator[House]:
    made = House()
    await made.open()
    yield made
    made.server.close()
    for peer in made.peers:
        peer.writer.close()


async def test_a_connection_serves_many_requests(house: House) -> None:
    """Keep-alive: one request after the other, and one write an answer, so that a client wakes once."""
    peer = await house.peer()
    for number in range(3):
        peer.send(b"GET /a%%20b?x=%d&y HTTP/1.1\r\nHost: h\r\n\r\n" % number)
        status, headers, body = await peer.answer()
        assert (status, body) == (200, b"/a%%20b|x=%d&y||" % number)
        assert headers["content-type"] == "text/plain"
        assert "connection" not in headers


async def test_requests_sent_ahead_are_answered_in_order(house: House) -> None:
    """Pipelining: the second waits for the first, even when it could be answered earlier."""
    first = asyncio.Event()

    async def slow(exchange: Exchange) -> Response:
        if exchange.path == "/1":
            await first.wait()
        return await house.echo(exchange)

    house.app = slow
    peer = await house.peer()
    peer.send(*(b"POST /%d HTTP/1.1\r\nContent-Length: 1\r\n\r\n%d" % (number, number) for number in (1, 2, 3)))
    await until(lambda: bool(house.seen))
    assert [exchange.path for exchange in house.seen] == ["/1"]
    first.set()
    assert [(await peer.answer())[2] for _ in range(3)] == [b"/1|||1", b"/2|||2", b"/3|||3"]


async def test_bodies_in_chunks_and_in_pieces_are_joined(house: House) -> None:
    """A chunked body, and one that comes byte by byte, reach the application whole."""
    peer = await house.peer()
    peer.send(b"POST /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert (await peer.answer())[2] == b"/c|||abcde"
    for byte in b"PUT /d HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz":
        peer.send(bytes([byte]))
        await asyncio.sleep(0)
    assert (await peer.answer())[2] == b"/d|||xyz"


async def test_a_client_that_asks_before_sending_is_told_to_go_on(house: House) -> None:
    """Expect: 100-continue is answered at once; for a body that is too large the refusal comes instead."""
    peer = await house.peer()
    peer.send(b"POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
    assert (await peer.head())[0] == 100
    peer.send(b"ok")
    assert (await peer.answer())[2] == b"/e|||ok"
    peer.send(b"POST /e HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 999999999\r\n\r\n")
    assert (await peer.answer())[2] == b"/e||large|"


@pytest.mark.parametrize("told", [True, False], ids=["content-length", "chunked"])
async def test_a_body_over_the_limit_is_reported_and_dropped(house: House, told: bool) -> None:
    """The application hears of it before the body is in; the rest is dropped and the connection stays usable."""
    house.shared.limit = 1000
    peer = await house.peer()
    body = b"x" * 3000
    if told:
        peer.send(b"POST /f HTTP/1.1\r\nContent-Length: 3000\r\n\r\n")
    else:
        peer.send(b"POST /f HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", *[b"3e8\r\n%b\r\n" % body[:1000]] * 2)
    assert (await peer.answer())[2] == b"/f||large|"
    peer.send(body if told else b"3e8\r\n%b\r\n0\r\n\r\n" % body[:1000])
    peer.send(b"GET /g HTTP/1.1\r\n\r\n")
    assert (await peer.answer())[2] == b"/g|||"


async def test_head_has_the_length_and_no_body(house: House) -> None:
    """HEAD: headers as for GET, and the next answer follows directly."""
    peer = await house.peer()
    peer.send(b"HEAD /h HTTP/1.1\r\n\r\n", b"GET /i HTTP/1.1\r\n\r\n")
    assert (await peer.head())[1]["content-length"] == str(len("/h|||"))
    assert (await peer.answer())[2] == b"/i|||"


@pytest.mark.parametrize("text", [b"GET /j HTTP/1.0\r\n\r\n", b"GET /j HTTP/1.1\r\nConnection: close\r\n\r\n"])
async def test_a_client_that_wants_no_more_gets_no_more(house: House, text: bytes) -> None:
    """HTTP/1.0 and Connection: close end with the answer."""
    peer = await house.peer()
    peer.send(text, text)
    _, headers, body = await peer.answer()
    assert headers["connection"] == "close"
    assert body == b"/j|||"
    assert await peer.end() == b""


async def test_headers_are_read_as_kubernetes_reads_them(house: House) -> None:
    """Names in any case; every Accept and Impersonate-Group counts, of others the last; control characters never leave."""

    async def app(exchange: Exchange) -> Response:
        return Response(200, b"", headers=[("Warning", "a\r\nx: y")])

    house.app = app
    peer = await house.peer()
    peer.send(
        b"GET / HTTP/1.1\r\nACCEPT: a\r\naccept: b\r\nX-One: 1\r\nx-one: 2\r\n",
        b"Impersonate-Group: g\r\nimpersonate-group: h\r\n\r\n",
    )
    _, headers, _ = await peer.answer()
    (seen,) = house.seen
    assert (seen.headers, seen.groups) == ({"accept": "a,b", "x-one": "2"}, ("g", "h"))
    assert headers["warning"] == "a  x: y"
    assert "x" not in headers


async def test_the_absolute_form_is_read(house: House) -> None:
    """As a proxy would ask."""
    peer = await house.peer()
    peer.send(b"GET http://host/k?l=1 HTTP/1.1\r\nHost: host\r\n\r\n")
    assert (await peer.answer())[2] == b"/k|l=1||"


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"BREW / HTTP/1.1\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nX: " + b"y" * 70_000, 431),
    ],
    ids=["no HTTP", "no such method", "two lengths", "no length", "endless header"],
)
async def test_what_is_no_request_ends_the_connection(house: House, sent: bytes, status: int) -> None:
    """The refusal says so, the application is not asked."""
    peer = await house.peer()
    peer.send(sent)
    assert (await peer.answer())[0] == status
    assert await peer.end() == b""
    assert house.seen == []


async def test_an_upgrade_that_is_not_offered_is_a_plain_request(house: House) -> None:
    """The request is answered, then the connection ends: what follows might be another protocol."""
    peer = await house.peer()
    peer.send(b"GET /m HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\nnoise")
    assert (await peer.answer())[2] == b"/m|||"
    assert await peer.end() == b""


async def test_streams_are_chunked_and_end(house: House) -> None:
    """Pieces arrive as they are made; the connection is good for more; HTTP/1.0 gets them bare."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one"
        yield b""
        yield b"two"

    async def app(exchange: Exchange) -> Response:
        return Response(200, stream=pieces()) if exchange.path == "/s" else await house.echo(exchange)

    house.app = app
    peer = await house.peer()
    peer.send(b"GET /s HTTP/1.1\r\n\r\nGET /n HTTP/1.1\r\n\r\n")
    assert (await peer.head())[1]["transfer-encoding"] == "chunked"
    assert [await peer.chunk() for _ in range(3)] == [b"one", b"two", b""]
    assert (await peer.answer())[2] == b"/n|||"
    peer.send(b"GET /s HTTP/1.0\r\n\r\n")
    assert "transfer-encoding" not in (await peer.head())[1]
    assert await peer.end() == b"onetwo"


async def test_a_stream_waits_for_a_slow_reader_and_ends_with_it(house: House) -> None:
    """Backpressure: a client that does not read stops the source; when it goes, the source is closed."""
    made, closed = 0, asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        nonlocal made
        try:
            while True:
                made += 1
                yield b"x" * 100_000
                await asyncio.sleep(0)
        finally:
            closed.set()

    async def app(_: Exchange) -> Response:
        return Response(200, stream=endless())

    house.app = app
    peer = await house.peer()
    peer.send(b"GET / HTTP/1.1\r\n\r\n")
    await peer.head()
    before = -1
    while before != made:
        before = made
        for _ in range(100):
            await asyncio.sleep(0)
    peer.writer.transport.abort()
    async with asyncio.timeout(30):
        await closed.wait()


async def test_a_request_is_finished_although_its_client_went(house: House) -> None:
    """A write that began is not given up half-way."""
    go, done = asyncio.Event(), asyncio.Event()

    async def app(exchange: Exchange) -> Response:
        await go.wait()
        done.set()
        return Response(200)

    house.app = app
    peer = await house.peer()
    peer.send(b"POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n")
    await until(lambda: bool(house.seen))
    peer.writer.transport.abort()
    await until(lambda: not house.shared.connections)
    go.set()
    async with asyncio.timeout(30):
        await done.wait()


async def test_idle_and_slow_clients_are_given_up(house: House) -> None:
    """Idle: closed. A head that never ends: closed. A body that never ends: the application says 408, then closed."""
    peers = [await house.peer() for _ in range(3)]
    _, two, three = peers
    two.send(b"GET / HT")
    three.send(b"POST /o HTTP/1.1\r\nContent-Length: 5\r\n\r\nx")
    await until(lambda: sum(connection.receiving for connection in house.shared.connections) == 2)
    house.check(10.0)
    assert len(house.shared.connections) == 3
    house.check(200.0)
    assert (await three.answer())[2] == b"/o||late|"
    assert [await peer.end() for peer in peers] == [b"", b"", b""]


async def test_beyond_the_limit_of_connections_clients_are_told(house: House) -> None:
    """503 and the end, so that they come again; those that are in are served."""
    peers = [await house.peer() for _ in range(4)]
    for peer in peers:
        peer.send(b"GET /p HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0)
    found = sorted([(await peer.answer())[0] for peer in peers])
    assert found == [200, 200, 200, 503]


async def test_a_bug_in_the_application_cuts_the_connection(house: House) -> None:
    """No half answers."""

    async def app(_: Exchange) -> Response:
        raise RuntimeError("a bug")

    house.app = app
    peer = await house.peer()
    peer.send(b"GET / HTTP/1.1\r\n\r\n")
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        await peer.head()


async def test_closing_lets_running_requests_finish(house: House) -> None:
    """Idle connections close at once, a busy one after its answer, which says so."""
    go = asyncio.Event()

    async def app(exchange: Exchange) -> Response:
        await go.wait()
        return await house.echo(exchange)

    house.app = app
    idle, busy = await house.peer(), await house.peer()
    busy.send(b"GET /q HTTP/1.1\r\n\r\n")
    await until(lambda: bool(house.seen))
    for connection in list(house.shared.connections):
        connection.finish()
    assert await idle.end() == b""
    go.set()
    _, headers, body = await busy.answer()
    assert headers["connection"] == "close"
    assert body == b"/q|||"
    assert await busy.end() == b""


async def test_the_client_certificate_is_the_user(client: Client) -> None:
    """Over TLS: with the administrator's certificate a list, without one 401, on a connection that stays open."""
    bare = ssl.create_default_context(cadata=client.authority)
    port = int(client.server.url.rpartition(":")[2])
    peer = Peer(*await asyncio.open_connection("127.0.0.1", port, ssl=bare))
    for _ in range(2):
        peer.send(b"GET %b HTTP/1.1\r\nHost: h\r\n\r\n" % CONFIG_MAPS.encode())
        assert (await peer.answer())[0] == 401
    peer.writer.close()
    assert (await client.ask("GET", CONFIG_MAPS)).status == 200
