"""kill -9 of a serving process while it is written to: every acknowledged write is there, in order, once."""

from __future__ import annotations

import asyncio
import json
import signal
import ssl
import sys
from pathlib import Path

import aiohttp
import pytest
from tests.apiserver.conftest import CONFIG_MAPS, Client, config_map, limit_pages

from moorage.apiserver import Server

SERVE = """
import asyncio, sys
from pathlib import Path
from moorage.apiserver import Server

async def main():
    server = Server(Path(sys.argv[1]))
    await server.start()
    server.kubeconfig(Path(sys.argv[2]))
    print(server.url, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""
WRITERS = 16


async def test_no_acknowledged_write_is_lost_by_a_kill(tmp_path: Path) -> None:
    """Sixteen writers, three kills; the union of acknowledged names and revisions survives, no name stands twice, each is in the audit log."""
    acknowledged: dict[str, int] = {}
    for generation in range(3):
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            SERVE,
            str(tmp_path / "data"),
            str(tmp_path / "config"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert child.stdout is not None
        url = (await child.stdout.readline()).decode().strip()
        assert url.startswith("https://")
        wanted = len(acknowledged) + 150
        await _write_until_killed(child, tmp_path, url, generation, acknowledged, wanted)
    assert _audited(tmp_path / "data" / "audit.log") >= len(acknowledged)
    server = Server(tmp_path / "data")
    await server.start()
    client = Client(server, tmp_path)
    try:
        items = (await client.ask("GET", CONFIG_MAPS)).body["items"]
        stored = {item["metadata"]["name"]: int(item["metadata"]["resourceVersion"]) for item in items}
        assert {name: stored.get(name) for name in acknowledged} == acknowledged
        versions = list(stored.values())
        assert len(set(versions)) == len(versions)
    finally:
        await client.session.close()
        await server.stop()


def _audited(log: Path) -> int:
    """How many creates were answered 201, as the audit log says."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    return sum((line["verb"], line["path"], line["code"]) == ("create", CONFIG_MAPS, 201) for line in lines)


async def _write_until_killed(
    child: asyncio.subprocess.Process, folder: Path, url: str, generation: int, done: dict[str, int], wanted: int
) -> None:
    config = json.loads((folder / "config").read_text())
    import base64

    user, cluster = config["users"][0]["user"], config["clusters"][0]["cluster"]
    pair = folder / "pair.pem"
    pair.write_bytes(b"".join(base64.b64decode(user[f"client-{part}-data"]) for part in ("certificate", "key")))
    context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
    context.load_cert_chain(pair)
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=0)) as session:

        async def writer(number: int) -> None:
            for turn in range(10_000):
                name = f"w-{generation}-{number}-{turn}"
                try:
                    async with session.post(url + CONFIG_MAPS, json=config_map(name, k="v")) as answer:
                        body = await answer.json()
                except (aiohttp.ClientError, OSError, asyncio.IncompleteReadError):
                    return
                assert answer.status == 201, body
                done[name] = int(body["metadata"]["resourceVersion"])
                if len(done) >= wanted and child.returncode is None:
                    child.send_signal(signal.SIGKILL)
                    return

        await asyncio.gather(*(writer(number) for number in range(WRITERS)))
    await child.wait()


@pytest.mark.parametrize("limit", [1])
async def test_a_full_disk_answers_507_over_http(client: Client, limit: int) -> None:
    """Writes are refused with a sentence, reads and watches go on, and health stays good."""
    await client.create(CONFIG_MAPS, config_map("before"))
    await limit_pages(client.server.hub.store, limit)
    answer = await client.ask("POST", CONFIG_MAPS, config_map("big", k="x" * 900_000))
    assert (answer.status, answer.body["reason"]) == (507, "InsufficientStorage")
    assert "reads go on" in answer.body["message"]
    assert (await client.ask("GET", f"{CONFIG_MAPS}/before")).status == 200
    await limit_pages(client.server.hub.store, 0)
    assert (await client.ask("POST", CONFIG_MAPS, config_map("big", k="x" * 900_000))).status == 201
