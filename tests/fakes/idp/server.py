"""The fake's addresses: several realms, a journal of what was asked.

Enters: realms, a folder, an authority that tests trust. Leaves: a served `FakeIdp` for the time of a `with`. Realms are under
`<url>/realms/<name>`, which is the issuer and, with `/saml`, the entityID. It listens on loopback only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.fakes.exchange import Answer, Request
from tests.fakes.idp import oidc, saml
from tests.fakes.idp.model import Realm
from tests.fakes.served import served
from tests.real.certificates import Authority

SILENCE = 120.0
"""Seconds after which a realm that was told to keep silent answers all the same."""


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
        realm.answers.wait(SILENCE)
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


@contextmanager
def fake_idp(
    folder: Path, realms: Sequence[Realm], authority: Authority | None = None, *, host: str = "127.0.0.10"
) -> Iterator[FakeIdp]:
    """Serve the realms over https on a free port of `host`."""
    trusted = authority or Authority()
    idp = FakeIdp("", {realm.name: realm for realm in realms}, trusted)
    with served(folder, "idp", trusted, idp.answer, host=host) as url:
        idp.url = url
        yield idp
