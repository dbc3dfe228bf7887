"""`/healthz`, `/readyz` and `/metrics`.

Enters: named checks and a text of metrics. Leaves: 200, or 500 that names the checks that fail. It holds no secret and asks
nobody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moorage.serving.connection import Application, Exchange, Response

from .metrics import CONTENT_TYPE

Check = Callable[[], str]
"""Empty when all is well, else why not, in one sentence."""


def app(*, ready: Mapping[str, Check], metrics: Callable[[], bytes] | None = None) -> Application:
    """The application; without `metrics` there is no /metrics."""

    async def serve(exchange: Exchange) -> Response:
        return Response(*_respond(exchange, ready, metrics))

    return serve


def _respond(
    exchange: Exchange, ready: Mapping[str, Check], metrics: Callable[[], bytes] | None
) -> tuple[int, bytes, str]:
    if exchange.method not in ("GET", "HEAD"):
        return 405, b"only GET\n", _TEXT
    match exchange.path:
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
