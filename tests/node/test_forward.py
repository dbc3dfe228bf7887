"""The forwarder: bytes both ways, half-closes, refusals, affinity; and addresses."""

from __future__ import annotations

import asyncio
import os
import socket
from ipaddress import IPv4Network
from pathlib import Path

import pytest
import uvloop

from moorage.core.meta import Key
from moorage.node.network.addresses import AddressesExhausted, Pool, claim
from moorage.node.network.affinity import Affinity
from moorage.node.network.forward import Forwarder
from moorage.node.network.names import hosts_text, service_lines, write_hosts

LOCAL = "127.0.0.1"


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers only after the client has half-closed."""
    writer.write(await reader.read())
    writer.close()


async def serve(handler: object) -> tuple[asyncio.Server, int]:
    server = await asyncio.start_server(handler, LOCAL, 0)  # type: ignore[arg-type]
    return server, server.sockets[0].getsockname()[1]


async def forwarder(*backends: tuple[str, int]) -> tuple[Forwarder, int]:
    found = Forwarder(lambda _: backends)
    free, port = await serve(echo)
    free.close()
    await found.listen(LOCAL, port)
    return found, port


async def test_large_bodies_and_half_closes_pass() -> None:
    server, port = await serve(echo)
    forward, mine = await forwarder((LOCAL, port))
    reader, writer = await asyncio.open_connection(LOCAL, mine)
    body = bytes(range(256)) * 20_000
    writer.write(body)
    writer.write_eof()
    assert await reader.read() == body
    writer.close()
    await forward.close()
    server.close()


@pytest.mark.parametrize("last", ["client", "backend"])
@pytest.mark.parametrize("loop", [asyncio.run, uvloop.run])
def test_a_connection_that_both_sides_have_ended_leaves_nothing_open(loop: object, last: str) -> None:
    """Whoever ends last, on either event loop: two sockets a connection would be left, and after some thousand nobody is served."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if last == "backend":
            await reader.read()
        writer.write(b"answer" * 50_000)
        writer.close()

    async def one(port: int) -> int:
        reader, writer = await asyncio.open_connection(LOCAL, port)
        if last == "backend":
            writer.write_eof()
        size = len(await reader.read())
        writer.close()
        await writer.wait_closed()
        return size

    async def many() -> None:
        server, port = await serve(answer)
        forward, mine = await forwarder((LOCAL, port))
        before = len(os.listdir("/proc/self/fd"))
        assert [await one(mine) for _ in range(50)] == [300_000] * 50
        async with asyncio.timeout(30):
            while forward._links or len(os.listdir("/proc/self/fd")) > before:  # noqa: ASYNC110  a table of the kernel tells nobody
                await asyncio.sleep(0)
        await forward.close()
        server.close()

    loop(many())  # type: ignore[operator]


async def test_a_backend_that_refuses_is_passed_over() -> None:
    dead, dead_port = await serve(echo)
    dead.close()
    await dead.wait_closed()
    server, port = await serve(echo)
    forward, mine = await forwarder((LOCAL, dead_port), (LOCAL, port))
    reader, writer = await asyncio.open_connection(LOCAL, mine)
    writer.write(b"x")
    writer.write_eof()
    assert await reader.read() == b"x"
    writer.close()
    await forward.close()
    server.close()


async def test_without_backends_a_connection_is_cut() -> None:
    forward, mine = await forwarder()
    reader, writer = await asyncio.open_connection(LOCAL, mine)
    try:
        assert await reader.read() == b""
    except ConnectionResetError:
        assert reader.at_eof() or reader.exception() is not None
    writer.close()
    await forward.close()


async def test_a_connection_outlives_the_end_of_listening() -> None:
    """So a roll drains: new connections go elsewhere, old ones finish."""
    server, port = await serve(echo)
    forward, mine = await forwarder((LOCAL, port))
    reader, writer = await asyncio.open_connection(LOCAL, mine)
    writer.write(b"be")
    await asyncio.sleep(0)
    await forward.stop_listening()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(LOCAL, mine)
    writer.write(b"fore")
    writer.write_eof()
    assert await reader.read() == b"before"
    writer.close()
    server.close()
    await forward.close()


async def test_a_client_that_breaks_off_ends_the_other_side() -> None:
    ended = asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        except ConnectionError:
            writer.close()
        ended.set()
        writer.close()

    server, port = await serve(hear)
    forward, mine = await forwarder((LOCAL, port))
    _, writer = await asyncio.open_connection(LOCAL, mine)
    writer.write(b"x")
    await writer.drain()
    writer.transport.abort()
    await ended.wait()
    await forward.close()
    server.close()


def test_a_client_with_affinity_comes_back_until_it_was_away_too_long() -> None:
    affinity = Affinity()
    affinity.configure({"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10}}})
    a, b = ("a", 1), ("b", 1)
    assert affinity.order("c", [a, b], 0.0)[0] == a
    assert affinity.order("c", [b, a], 9.0)[0] == a
    assert affinity.order("c", [b, a], 20.0)[0] == b
    assert affinity.order("c", [a], 21.0)[0] == a


def test_without_affinity_the_order_is_kept() -> None:
    assert list(Affinity().order("c", [("a", 1), ("b", 1)], 0.0)) == [("a", 1), ("b", 1)]


def test_a_pool_gives_each_pod_one_address_and_takes_it_back() -> None:
    pool = Pool(IPv4Network("127.96.0.0/29"))
    first = pool.take("a")
    assert pool.take("a") == first
    others = [pool.take(name) for name in "bcdef"]
    assert len({first, *others}) == 6
    with pytest.raises(AddressesExhausted):
        pool.take("g")
    pool.give_back("a")
    assert pool.take("g") == first


def test_an_address_is_kept_over_a_restart_only_where_it_is_free() -> None:
    pool = Pool(IPv4Network("127.96.0.0/29"))
    assert pool.keep("a", "127.96.0.3")
    assert not pool.keep("b", "127.96.0.3")
    assert not pool.keep("b", "127.97.0.3")
    assert pool.take("a") == "127.96.0.3"


def test_two_claims_get_two_blocks_and_a_claim_remembers_its_own(tmp_path: Path) -> None:
    network = IPv4Network("127.111.0.0/16")
    first = claim(network, tmp_path / "a")
    second = claim(network, tmp_path / "b")
    assert first.block != second.block
    first.close()
    second.close()
    again = claim(network, tmp_path / "b")
    assert again.block == second.block
    again.close()


SERVICE = {"metadata": {"name": "keystone", "namespace": "os"}, "spec": {"clusterIP": "127.112.0.9"}}
HEADLESS = {"metadata": {"name": "db", "namespace": "os"}, "spec": {"clusterIP": "None"}}


def test_hosts_name_services_and_their_own_namespace_in_short() -> None:
    lines = service_lines([SERVICE, HEADLESS], {Key("os", "db"): "127.96.0.7"})
    text = hosts_text({"metadata": {"namespace": "os"}, "spec": {}}, "127.96.0.8", "pod", lines)
    assert "127.96.0.8\tpod\n" in text
    assert "127.112.0.9\tkeystone.os.svc.cluster.local keystone.os.svc keystone.os keystone\n" in text
    assert "127.96.0.7\tdb.os.svc.cluster.local db.os.svc db.os db\n" in text
    other = hosts_text({"metadata": {"namespace": "x"}, "spec": {}}, "", "pod", lines)
    assert "keystone.os.svc keystone.os\n" in other


def test_hosts_are_replaced_by_a_rename_and_left_alone_when_equal(tmp_path: Path) -> None:
    assert write_hosts(tmp_path, "a\n")
    inode = (tmp_path / "hosts").stat().st_ino
    assert not write_hosts(tmp_path, "a\n")
    assert (tmp_path / "hosts").stat().st_ino == inode
    assert write_hosts(tmp_path, "b\n")


def test_under_uvloop_what_a_client_sends_before_the_backend_is_connected_arrives_first_and_whole() -> None:
    """uvloop reads what is there at once after `connection_made`, whatever was paused in it (regression: bytes were lost)."""

    async def scenario() -> None:
        server, port = await serve(echo)
        forward, mine = await forwarder((LOCAL, port))
        for size in (1, 10_000):
            with socket.create_connection((LOCAL, mine)) as client:
                client.sendall(b"early" * size)  # in the kernel before the forwarder has accepted
                client.shutdown(socket.SHUT_WR)
                client.setblocking(False)
                answer = b""
                while part := await asyncio.get_running_loop().sock_recv(client, 2**20):
                    answer += part
                assert answer == b"early" * size
        await forward.close()
        server.close()

    uvloop.run(scenario())
