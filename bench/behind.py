"""What stands in Keystone's place behind the sidecar: one answer for every request, so that both sides of a comparison cost the same there. A program.

Enters: {socket, ready}. Leaves: `200 OK` on a Unix socket, one connection a request, as uWSGI answers the sidecar.
"""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any, cast

import uvloop

from bench.children import told

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}"


class Answering(asyncio.Protocol):
    """Answers when the head of a request is complete, and closes."""

    def __init__(self) -> None:
        self._head = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._head += data
        if b"\r\n\r\n" in self._head and self._transport is not None:
            self._transport.write(ANSWER)
            self._transport.close()


async def _run(spec: dict[str, Any]) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_unix_server(Answering, spec["socket"], backlog=1024)
    Path(spec["socket"]).chmod(0o666)  # noqa: ASYNC240  once, before anything is served
    told(Path(spec["ready"]), {})
    await stop.wait()
    server.close()


if __name__ == "__main__":
    uvloop.run(_run(json.loads(sys.argv[1])))
