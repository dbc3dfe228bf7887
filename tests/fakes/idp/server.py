"""The fake's https server: one thread, several realms, a journal of what was asked.

Enters: realms, a folder, an authority that tests trust. Leaves: a served `FakeIdp` for the time of a `with`. Realms are under
`<url>/realms/<name>`, which is the issuer and, with `/saml`, the entityID. It listens on loopback only.
"""

from __future__ import annotations

import http.server
import ssl
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.idp import oidc, saml
from tests.fakes.idp.exchange import Answer, Request
from tests.fakes.idp.model import Realm
from tests.real.certificates import Authority


@dataclass
class FakeIdp:
    """What is served; `journal` holds `METHOD path` of each request."""

    url: str
    realms: dict[str, Realm]
    authority: Authority
    journal: list[str] = field(default_factory=list)

    def realm(self, name: str) -> Realm:
        return self.realms[name]

    def issuer(self, name: str) -> str:
        """Issuer of a realm."""
        return f"{self.url}/realms/{name}"

    def entity(self, name: str) -> str:
        """entityID of a realm."""
        return f"{self.issuer(name)}/saml"

    def metadata(self, name: str, **how: Any) -> bytes:
        """SAML metadata of a realm, as it would be fetched now."""
        return saml.metadata(self.realms[name], self.entity(name), **how)

    def token(self, realm: str, user: str, client: str) -> str:
        """A bearer token of a person, without asking over the wire."""
        found = self.realms[realm]
        person = next(item for item in found.users if item.name == user)
        held = next(item for item in found.clients if item.id == client)
        return oidc.access_token(found, self.issuer(realm), held, person)

    def asked(self, method: str, end: str) -> int:
        """How often a path with this end was asked for."""
        return sum(line.startswith(f"{method} ") and line.endswith(end) for line in self.journal)

    def answer(self, request: Request) -> Answer:
        """What a realm says."""
        self.journal.append(f"{request.method} {request.path}")
        _, head, name, action = (*request.path.split("/", 3), "", "", "")[:4]
        realm = self.realms.get(name)
        if head != "realms" or realm is None:
            return Answer(404, "no such realm")
        if realm.down:
            return Answer(503, "the fake is down on request")
        issuer, entity = self.issuer(name), self.entity(name)
        match action:
            case ".well-known/openid-configuration":
                return Answer(200, oidc.discovery(issuer))
            case "keys":
                return oidc.keys(realm)
            case "authorize":
                return oidc.authorize(realm, request)
            case "token":
                return oidc.token(realm, issuer, request)
            case "introspect":
                return oidc.introspect(realm, request)
            case "userinfo":
                return oidc.userinfo(realm, request)
            case "logout":
                return oidc.logout(request)
            case "saml":
                return Answer(200, self.metadata(name).decode(), "application/samlmetadata+xml")
            case "saml/sso":
                return saml.sso(realm, entity, request)
            case "saml/logout":
                return saml.logout(realm, entity, request)
        return Answer(404, "no such page")


class _Handler(http.server.BaseHTTPRequestHandler):
    idp: FakeIdp

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = self.idp.answer(Request.of(self.command, self.path, self.headers, body))
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
        """The journal has it."""


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


@contextmanager
def fake_idp(
    folder: Path, realms: Sequence[Realm], authority: Authority | None = None, *, host: str = "127.0.0.10"
) -> Iterator[FakeIdp]:
    """Serve the realms over https on a free port of `host`."""
    folder.mkdir(parents=True, exist_ok=True)
    trusted = authority or Authority()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*trusted.issue(folder, "idp", (host,)))
    handler = type("Handler", (_Handler,), {})
    server = _Server((host, 0), handler)
    # The handshake is left to each connection's own thread: one that never ends it must not hold up the others.
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    idp = FakeIdp(f"https://{host}:{server.server_address[1]}", {realm.name: realm for realm in realms}, trusted)
    handler.idp = idp  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield idp
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
