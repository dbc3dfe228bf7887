"""A load generator that opens a connection for each request, as the sidecar wants it (KeepAlive Off): closed loop, no TLS. A program.

Enters: {host, port, request, at_once, seconds}. Leaves: JSON {done, bad, seconds, example}. Only answers with status 200 or 201 count.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any, cast

import uvloop


class Knock(asyncio.Protocol):
    """One request; `answer` is what came until the other side closed."""

    def __init__(self, request: bytes) -> None:
        self._request, self._head = request, b""
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast(asyncio.Transport, transport).write(self._request)

    def data_received(self, data: bytes) -> None:
        if len(self._head) < 1000:
            self._head += data

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(self._head)


async def _run(spec: dict[str, Any]) -> dict[str, Any]:
    loop, request = asyncio.get_running_loop(), spec["request"].encode("latin-1")
    found: dict[str, Any] = {"done": 0, "bad": 0, "example": ""}
    began = time.perf_counter()
    until = began + spec["seconds"]

    async def visitor() -> None:
        while time.perf_counter() < until:
            _, knock = await loop.create_connection(lambda: Knock(request), spec["host"], spec["port"])
            head = await knock.answer
            if head[9:12] in (b"200", b"201"):
                found["done"] += 1
            else:
                found["bad"] += 1
                found["example"] = found["example"] or head.decode("latin-1")

    await asyncio.gather(*(visitor() for _ in range(spec["at_once"])))
    return found | {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.loads(sys.argv[1])))))
