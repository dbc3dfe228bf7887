"""The guarded fetch against real servers on loopback: what is followed, what is refused, what is told."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp.abc import AbstractResolver
from aiohttp.resolver import ResolveResult
from structlog.testing import capture_logs
from tests.real.certificates import Authority
from tests.real.ports import free_port

from moorage.core.addresses import parse_networks
from moorage.core.urls import without_user
from moorage.net.guard import FetchFailed, Guard, UnusableRoots, unusable
from moorage.net.resolver import ServiceResolver
from moorage.net.sessions import Sessions

LIMIT = 262144
HERE = parse_networks("127.0.0.0/8,::1/128")
Answer = Callable[[asyncio.StreamWriter], Awaitable[None]]


def head(status: str = "200 OK", *lines: str) -> bytes:
    """A response head."""
    return "\r\n".join((f"HTTP/1.1 {status}", *lines, "", "")).encode()


def whole(body: bytes = b"{}", *lines: str, status: str = "200 OK") -> Answer:
    """A complete answer."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(head(status, f"Content-Length: {len(body)}", *lines) + body)

    return answer


@dataclass
class Web:
    """A server that answers every request the same way, and remembers the requests."""

    answer: Answer = field(default_factory=whole)
    requests: list[str] = field(default_factory=list)
    connections: int = 0
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            self.requests.append((await reader.readuntil(b"\r\n\r\n")).decode())
            await self.answer(writer)
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def web(
    answer: Answer | None = None, *, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Web]:
    """The server, as long as the block runs."""
    made = Web(answer or whole())
    server = await asyncio.start_server(made.serve, host, 0, ssl=tls)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()


class Names(AbstractResolver):
    """Gives one list of addresses after the other for whatever is asked, the last one again and again."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self._answers = list(answers)

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
        found = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [
            ResolveResult(hostname=host, host=item, port=port, family=10 if ":" in item else 2, proto=6, flags=0)
            for item in found
        ]

    async def close(self) -> None:
        return


async def fails(url: str, guard: Guard | None = None, **options: Any) -> str:
    """Why, as the operator's log has it; what the caller is told is the same sentence every time."""
    with capture_logs() as logs, pytest.raises(FetchFailed) as failed:
        await (guard or Guard(HERE)).fetch(url, limit=LIMIT, **options)
    assert str(failed.value) == f"fetching {without_user(url)} failed"
    assert failed.value.__cause__ is None
    return str(logs[-1]["why"])


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture
def tls(authority: Authority, tmp_path: Path) -> Iterator[ssl.SSLContext]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(tmp_path, "server"))
    return context


# --- what is fetched


async def test_a_document_is_fetched_and_nothing_is_given_away() -> None:
    """One plain GET: no cookie, no credential, no compression asked for, the connection closed."""
    async with web(whole(b"hello", "Set-Cookie: a=b")) as server:
        guard = Guard(HERE)
        for _ in range(2):
            assert await guard.fetch(f"http://127.0.0.1:{server.port}/x?y=z", limit=LIMIT) == b"hello"
    first = server.requests[0].lower()
    assert first.startswith("get /x?y=z http/1.1")
    assert "accept-encoding: identity" in first
    assert not any("cookie" in item.lower() or "authorization" in item.lower() for item in server.requests)
    assert server.connections == 2


async def test_a_private_authority_is_trusted_when_it_is_named(authority: Authority, tls: ssl.SSLContext) -> None:
    """And it is the only one then."""
    async with web(tls=tls) as server:
        url = f"https://127.0.0.1:{server.port}/"
        assert await Guard(HERE).fetch(url, limit=LIMIT, roots=authority.pem) == b"{}"
        assert "certificate" in (await fails(url)).lower()
        assert "certificate" in (await fails(url, roots=Authority("another").pem)).lower()
        assert server.requests == [server.requests[0]]


async def test_the_name_in_the_certificate_counts(authority: Authority, tls: ssl.SSLContext) -> None:
    """A server that is trusted for one name does not answer for another."""
    async with web(tls=tls) as server:
        guard = Guard(HERE, Names(("127.0.0.1",)))
        assert await guard.fetch(f"https://localhost:{server.port}/", limit=LIMIT, roots=authority.pem)
        why = await fails(f"https://idp.example.org:{server.port}/", guard, roots=authority.pem)
    assert "hostname mismatch" in why.lower()


@pytest.mark.parametrize(
    "roots", [b"", b" \n", b"nonsense", b"\xff\xfe", b"-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----\n"]
)
async def test_a_bundle_that_cannot_be_read_is_never_replaced_by_the_systems_roots(roots: bytes) -> None:
    """An empty one least of all."""
    with pytest.raises(UnusableRoots):
        await Guard(HERE).fetch("https://127.0.0.1/", limit=LIMIT, roots=roots)


async def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would connect to what we refuse."""
    async with web() as server, web() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        assert await Guard(HERE).fetch(f"http://127.0.0.1:{server.port}/", limit=LIMIT) == b"{}"
    assert not proxy.connections


# --- addresses


SPELLINGS = [
    "127.0.0.1",
    "127.1",
    "2130706433",
    "0x7f.1",
    "0177.0.0.1",
    "localhost",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "0.0.0.0",
    "0",
]


@pytest.mark.case("S6")
@pytest.mark.parametrize("host", SPELLINGS)
async def test_loopback_is_refused_in_every_spelling(host: str) -> None:
    """The server that listens there sees no connection."""
    async with web() as server:
        why = await fails(f"http://{host}:{server.port}/", Guard())
        assert not server.connections
    assert "is not open" in why or "canonical" in why


@pytest.mark.case("S6")
async def test_every_address_that_a_name_has_is_judged_on_every_connection() -> None:
    """A name that meant something else a moment ago, and a name with one good and one bad address."""
    async with web(host="127.0.0.1") as inner:
        guard = Guard(parse_networks("127.0.0.10/32"), Names(("127.0.0.10",), ("127.0.0.1",)))
        allowed = await asyncio.start_server(Web().serve, "127.0.0.10", inner.port)
        async with allowed:
            url = f"http://idp.example.org:{inner.port}/"
            assert await guard.fetch(url, limit=LIMIT) == b"{}"
            assert "127.0.0.1 is not open" in await fails(url, guard)
            both = Guard(guard.allowed, Names(("127.0.0.1", "169.254.169.254", "::1", "127.0.0.10")))
            assert await both.fetch(url, limit=LIMIT) == b"{}"
        assert not inner.connections


@pytest.mark.case("S6")
async def test_a_service_of_one_machine_mode_is_judged_by_its_address() -> None:
    """Its name resolves as for everybody here; its ClusterIP must be on the list."""
    async with web() as server:
        resolver = ServiceResolver(lambda namespace, name: "127.0.0.1")
        url = f"http://keycloak.openstack.svc:{server.port}/"
        async with Sessions(resolver=resolver) as closed, Sessions(resolver=resolver, allowed=HERE) as opened:
            with pytest.raises(FetchFailed):
                await closed.fetch(url, limit=LIMIT)
            assert not server.connections
            assert await opened.fetch(url, limit=LIMIT) == b"{}"


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("ftp://127.0.0.1/", "no http or https URL"),
        ("file:///etc/passwd", "no http or https URL"),
        ("https://", "no http or https URL"),
        ("https://[::1", "no URL"),
        ("https://127.0.0.1:99999/", "no URL"),
        ("https://127.0.0.1:6379/", "port 6379"),
        ("https://user:word@127.0.0.1/", "user information"),
        ("https://word@127.0.0.1/", "user information"),
    ],
)
async def test_a_url_that_can_never_be_fetched_is_known_by_itself(url: str, says: str) -> None:
    """And a password in it is neither told nor logged."""
    assert says in unusable(url)
    with capture_logs() as logs, pytest.raises(FetchFailed) as failed:
        await Guard(HERE).fetch(url, limit=LIMIT)
    assert "word" not in str(failed.value).replace("passwd", "")
    assert "word@" not in str(logs)


# --- answers


@pytest.mark.case("S6")
@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_a_redirect_is_a_failure_and_is_not_followed(status: str) -> None:
    """Wherever it points."""
    async with web() as inner:
        location = f"Location: http://127.0.0.1:{inner.port}/"
        async with web(whole(b"", location, status=status)) as server:
            assert "answered 30" in await fails(f"http://127.0.0.1:{server.port}/")
        assert not inner.connections


@pytest.mark.parametrize("status", ["400 Bad", "401 No", "404 Not Found", "429 Slow", "500 Oops", "503 Later"])
async def test_an_error_is_a_failure(status: str) -> None:
    """Its body is not looked at."""
    async with web(whole(b"{}", status=status)) as server:
        assert f"answered {status[:3]}" in await fails(f"http://127.0.0.1:{server.port}/")


@pytest.mark.case("S6")
async def test_all_failures_have_one_answer() -> None:
    """A refused address, a closed port, a wrong answer and nonsense cannot be told apart."""

    async def nonsense(writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")

    async with web(nonsense) as server, web(whole(status="404 No")) as other:
        told, closed = set(), free_port()
        for guard, port in (
            (Guard(), server.port),
            (Guard(HERE), server.port),
            (Guard(HERE), other.port),
            (Guard(HERE), closed),
        ):
            with pytest.raises(FetchFailed) as failed:
                await guard.fetch(f"http://127.0.0.1:{port}/", limit=LIMIT)
            told.add(str(failed.value).replace(f":{port}/", ":PORT/"))
    assert told == {"fetching http://127.0.0.1:PORT/ failed"}


async def test_a_document_of_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    """With a length, and without one."""
    async with web(whole(b"a" * LIMIT)) as server:
        assert len(await Guard(HERE).fetch(f"http://127.0.0.1:{server.port}/", limit=LIMIT)) == LIMIT
    async with web(whole(b"a" * (LIMIT + 1))) as server:
        assert "more than 262144 bytes" in await fails(f"http://127.0.0.1:{server.port}/")


async def test_an_answer_without_end_is_left() -> None:
    """Long before it has eaten the memory."""
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(head("200 OK", "Transfer-Encoding: chunked"))
        while True:
            writer.write(b"10000\r\n" + b"a" * 65536 + b"\r\n")
            sent += 65536
            await writer.drain()

    async with web(endless) as server:
        assert "more than" in await fails(f"http://127.0.0.1:{server.port}/")
    assert sent < 64 * LIMIT


@pytest.mark.parametrize("encode", [gzip.compress, zlib.compress])
async def test_an_answer_that_was_compressed_unasked_is_read(encode: Callable[[bytes], bytes]) -> None:
    """Object stores do that."""
    coding = "gzip" if encode is gzip.compress else "deflate"
    async with web(whole(encode(b"hello"), f"Content-Encoding: {coding}")) as server:
        assert await Guard(HERE).fetch(f"http://127.0.0.1:{server.port}/", limit=LIMIT) == b"hello"


@pytest.mark.parametrize(
    ("body", "coding", "says"),
    [
        (gzip.compress(b"\0" * 50_000_000), "gzip", "more than"),
        (gzip.compress(b"hello")[:-6], "gzip", "ends too early"),
        (b"hello", "gzip", "incorrect header"),
        (b"hello", "br", "content coding"),
        (gzip.compress(b"hello"), "gzip, gzip", "content coding"),
    ],
    ids=["bomb", "short", "none", "unknown", "twice"],
)
async def test_a_bomb_and_a_broken_compression_are_refused(body: bytes, coding: str, says: str) -> None:
    """No more than the limit is ever unpacked."""
    async with web(whole(body, f"Content-Encoding: {coding}")) as server:
        assert says in await fails(f"http://127.0.0.1:{server.port}/")


async def test_a_server_that_says_nothing_or_drips_is_left_after_the_time() -> None:
    """The time is for everything together, not from byte to byte."""
    gone = asyncio.Event()

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(head("200 OK", "Content-Length: 100000"))
        try:
            while True:
                writer.write(b"a")
                await writer.drain()
                await asyncio.sleep(0.01)
        finally:
            gone.set()

    async def silent(writer: asyncio.StreamWriter) -> None:
        await gone.wait()

    for answer in (drip, silent):
        async with web(answer) as server:
            assert await fails(f"http://127.0.0.1:{server.port}/", Guard(HERE, time=0.3))
    assert gone.is_set()


async def test_a_name_that_never_resolves_holds_nobody() -> None:
    """The fetch ends with its time."""

    class Never(Names):
        async def resolve(self, host: str, port: int = 0, family: Any = 0) -> list[ResolveResult]:
            await asyncio.Event().wait()
            raise AssertionError

    assert await fails("http://idp.example.org/", Guard(HERE, Never(()), time=0.2)) == "TimeoutError"


async def test_a_name_that_does_not_exist_and_one_that_is_none_fail_alike() -> None:
    """Through the system's own resolver."""
    for host in ("does-not-exist.invalid", "a" * 70 + ".example.org", "a..b"):
        await fails(f"http://{host}/")
