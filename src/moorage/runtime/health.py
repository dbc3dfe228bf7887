"""`/healthz`, `/readyz` and `/metrics`.

Enters: named checks and a text of metrics. Leaves: 200, or 500 that names the checks that fail. It holds no secret and asks
nobody else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from .metrics import CONTENT_TYPE

Check = Callable[[], str]
"""Empty when all is well, else why not, in one sentence."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]


def app(*, ready: Mapping[str, Check], metrics: Callable[[], bytes] | None = None) -> App:
    """The ASGI app; without `metrics` there is no /metrics."""

    async def serve(scope: Scope, _receive: Receive, send: Send) -> None:
        await answer(send, *_respond(scope, ready, metrics))

    return serve


def _respond(scope: Scope, ready: Mapping[str, Check], metrics: Callable[[], bytes] | None) -> tuple[int, bytes, str]:
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return 405, b"only GET\n", _TEXT
    match scope["path"]:
        case "/healthz" | "/livez":
            return 200, b"ok\n", _TEXT
        case "/readyz":
            return _readiness(ready)
        case "/metrics" if metrics is not None:
            return 200, metrics(), CONTENT_TYPE
    return 404, b"not found\n", _TEXT


def _readiness(ready: Mapping[str, Check]) -> tuple[int, bytes, str]:
    found = {name: check() for name, check in ready.items()}
    lines = [f"[-] {name}: {why}" if why else f"[+] {name}" for name, why in found.items()]
    failed = any(found.values())
    return (500 if failed else 200), "\n".join([*lines, "not ready" if failed else "ready", ""]).encode(), _TEXT


_TEXT = "text/plain; charset=utf-8"


async def answer(send: Send, status: int, body: bytes, content_type: str) -> None:
    """Send one whole response."""
    headers = [(b"content-type", content_type.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
