"""An https server for a fake, in a thread of the test's own process, so that a test can look into it and change it.

Enters: a function from request to answer, an authority that tests trust. Leaves: a served URL for the time of a `with`. Loopback only.
"""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.fakes.exchange import Answer, Request
from tests.real.certificates import Authority

LOOK = 0.05
"""Seconds between two looks whether to end."""


class _Handler(http.server.BaseHTTPRequestHandler):
    answer: Callable[[Request], Answer]
    timeout = 30

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = type(self).answer(Request.of(self.command, self.path, self.headers, body))
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.media_type)
        self.send_header("Content-Length", str(len(answer.content)))
        self.send_header("Cache-Control", "no-store")
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(answer.content)

    do_GET = do_POST = _serve

    def log_message(self, *args: Any) -> None:
        """A fake has a journal of its own."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


@contextmanager
def served(
    folder: Path, name: str, authority: Authority, answer: Callable[[Request], Answer], *, host: str, port: int = 0
) -> Iterator[str]:
    """Serve `answer` over https on `host`; yields `https://HOST:PORT`."""
    folder.mkdir(parents=True, exist_ok=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*authority.issue(folder, name, (host,)))
    handler = type("Handler", (_Handler,), {"answer": staticmethod(answer)})
    server = _Server((host, port), handler)
    # The handshake is left to each connection's own thread: one that never ends it must not hold up the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, args=(LOOK,), daemon=True)
    thread.start()
    try:
        yield f"https://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
