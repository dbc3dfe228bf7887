"""An https server that answers admission reviews as a scenario's `hooks` say, and remembers what it was asked.

Enters: AdmissionReview requests of an API server. Leaves: answers and the list of requests. A hook may hold: allowed (default true), message, code,
reason, causes, patch (list), patchType, warnings, audit, delay (seconds, cut short at the end), status (of HTTP), raw (text), uid, omit (response fields), turns (a list of hooks, one a call).
"""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections import defaultdict
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.real.certificates import Authority


def review_answer(hook: dict[str, Any], request: dict[str, Any]) -> dict[str, Any]:
    """The AdmissionReview that this hook gives to this request."""
    response: dict[str, Any] = {"uid": hook.get("uid", request["uid"]), "allowed": hook.get("allowed", True)}
    status: dict[str, Any] = {key: hook[key] for key in ("message", "code", "reason") if key in hook}
    if "causes" in hook:
        status["details"] = {"causes": hook["causes"]}
    if status:
        response["status"] = status
    if "patch" in hook:
        response["patch"] = base64.b64encode(json.dumps(hook["patch"]).encode()).decode()
        response["patchType"] = hook.get("patchType", "JSONPatch")
    for key, name in (("warnings", "warnings"), ("audit", "auditAnnotations")):
        if key in hook:
            response[name] = hook[key]
    for name in hook.get("omit", []):
        response.pop(name, None)
    review: dict[str, Any] = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    review |= hook.get("review", {})
    return review


class HookServer:
    """Serves `/<namespace>/<hook>`, and `programs` (real webhooks by path), on two ports: one with a certificate that `bundle` proves, one with a foreign certificate."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority()
        self.hooks: dict[str, dict[str, Any]] = {}
        self.programs: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {}
        self.received: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self._released = threading.Event()
        foreign = Authority("Foreign authority").issue(folder, "foreign")
        self._servers = [self._serve(self.authority.issue(folder, "hooks")), self._serve(foreign)]
        self.url, self.foreign_url = (f"https://127.0.0.1:{server.server_address[1]}" for server in self._servers)

    def _serve(self, pair: tuple[Path, Path]) -> ThreadingHTTPServer:
        server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*pair)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return server

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        hooks = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["request"]
                status, text = hooks.answer(self.path.split("?")[0], request)
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                return

        return Handler

    def answer(self, path: str, request: dict[str, Any]) -> tuple[int, str]:
        """HTTP status and body for one review."""
        if path in self.programs:
            self.received[path.strip("/")].append(request)
            review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
            return 200, json.dumps(self.programs[path](review))
        hook = self.hooks.get(path.strip("/"), {"status": 404, "raw": "no such hook"})
        self.received[path.strip("/")].append(request)
        if "turns" in hook:
            hook = hook["turns"][min(len(self.received[path.strip("/")]), len(hook["turns"])) - 1]
        if "delay" in hook:
            self._released.wait(hook["delay"])
        body = hook["raw"] if "raw" in hook else json.dumps(review_answer(hook, request))
        return hook.get("status", 200), body

    def __enter__(self) -> HookServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._released.set()
        for server in self._servers:
            server.shutdown()
            server.server_close()
