"""A counting Keystone: the stub of the tests on the addresses of Services. A program.

Enters: {addresses, port, ready}. Leaves: Identity API v3 on every address until it is stopped. On SIGUSR1 it writes requests by
method, logins apart, to `ready` with the suffix `.stats`, and counts from nought again.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import uvloop
from aiohttp import web
from tests.keystone.stub_keystone import StubKeystone

from bench.children import told


async def _serve(spec: dict[str, Any]) -> None:
    ready, ended, loop = Path(spec["ready"]), asyncio.Event(), asyncio.get_running_loop()
    async with StubKeystone() as stub:
        for address in spec["addresses"]:
            await web.TCPSite(stub._runner, address, spec["port"]).start()

        def stats() -> None:
            told(ready.with_suffix(".stats"), stub.count())
            stub.requests.clear()

        loop.add_signal_handler(signal.SIGTERM, ended.set)
        loop.add_signal_handler(signal.SIGUSR1, stats)
        told(ready, {})
        await ended.wait()


if __name__ == "__main__":
    uvloop.run(_serve(json.loads(sys.argv[1])))
