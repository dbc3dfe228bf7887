"""The load generator: keep-alive HTTP/1.1 over TLS, closed loop, one request in flight a connection. A program.

Enters: {target, path, body, connections, and seconds or count}; `@@@@@@@@` in the body becomes eight digits, another for each
request. Leaves: JSON {done, bad, seconds, cpu, p50, p99, example}; latencies in milliseconds. It decodes no body.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from typing import Any, cast

import uvloop

from bench.target import Target

PLACE = b"@@@@@@@@"


class Work:
    """What is left to send, and what came back."""

    def __init__(self, spec: dict[str, Any], target: Target) -> None:
        body = spec["body"].encode()
        head = f"POST {spec['path']} HTTP/1.1\r\n{target.head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        self._parts = (head.encode() + body).split(PLACE)
        self._first, self._sent = spec.get("first", 0), 0
        self._count = spec.get("count", 0)
        self._until = 0.0 if self._count else time.perf_counter() + spec["seconds"]
        self.latencies: list[float] = []
        self.bad = 0
        self.example = ""
        self.last = 0.0

    def request(self) -> bytes | None:
        """The next request; None when enough were sent."""
        if self._sent >= self._count if self._count else time.perf_counter() >= self._until:
            return None
        number = b"%08d" % (self._first + self._sent)
        self._sent += 1
        return number.join(self._parts)

    def answered(self, head: bytes, began: float) -> None:
        """Note one answer."""
        self.last = time.perf_counter()
        if head[9:12] in (b"200", b"201"):
            self.latencies.append(self.last - began)
        else:
            self.bad += 1
            self.example = self.example or head.decode("latin-1")


class Connection(asyncio.Protocol):
    """Sends, waits for the whole answer, sends again."""

    def __init__(self, work: Work) -> None:
        self._work, self._buffer, self._began = work, b"", 0.0
        self.ended = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._next()

    def _next(self) -> None:
        request = self._work.request()
        if request is None:
            self._transport.close()
            return
        self._began = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, found, rest = self._buffer.partition(b"\r\n\r\n")
        if found and _whole(head, rest):
            self._buffer = b""
            self._work.answered(head, self._began)
            self._next()

    def connection_lost(self, _error: Exception | None) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _whole(head: bytes, body: bytes) -> bool:
    lower = head.lower()
    at = lower.find(b"content-length:")
    if at >= 0:
        return len(body) >= int(lower[at + 15 :].split(b"\r\n", 1)[0])
    return body.endswith(b"0\r\n\r\n")


async def _run(spec: dict[str, Any]) -> dict[str, Any]:
    target = Target(**spec["target"])
    loop, context = asyncio.get_running_loop(), target.context
    work = Work(spec, target)
    began = time.perf_counter()
    made = await asyncio.gather(
        *(
            loop.create_connection(
                lambda: Connection(work), target.host, target.port, ssl=context, server_hostname=target.host
            )
            for _ in range(spec["connections"])
        )
    )
    await asyncio.gather(*(protocol.ended for _, protocol in made))
    used = resource.getrusage(resource.RUSAGE_SELF)
    ordered = sorted(work.latencies) or [0.0]
    return {
        "done": len(work.latencies),
        "bad": work.bad,
        "seconds": max(work.last - began, 1e-9),
        "cpu": used.ru_utime + used.ru_stime,
        "p50": ordered[len(ordered) // 2] * 1000,
        "p99": ordered[int(len(ordered) * 0.99)] * 1000,
        "example": work.example,
    }


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.loads(sys.argv[1])))))
