"""A cloud with federated sign-in as people and attackers meet it: addresses, logins, bearer tokens. Who runs it does not matter here.

Enters: the public address, the provider, an administrator. Leaves: pages, tokens, what Keystone says of them. The names of the three providers are
those of every stand: `acme` (OIDC, realm acme, takes bearer tokens), `beta` (OIDC, realm beta), `corp` (SAML, realm corp).
"""

from __future__ import annotations

import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import urlencode

import aiohttp
from tests.e2e.federation.objects import Admin, administrator
from tests.e2e.federation.visitor import Page, Visitor
from tests.e2e.federation.wire import exchange
from tests.fakes.idp import Client, FakeIdp, Realm, User

from moorage.core.meta import JsonObject

ACME, BETA, CORP = "acme", "beta", "corp"
PROTOCOLS = {ACME: "openid", BETA: "openid", CORP: "mapped"}
PEOPLE = {ACME: "alice", BETA: "bob", CORP: "carol"}
REDIRECT = "/v3/OS-FEDERATION/redirect_uri"
DASHBOARD = "https://127.0.0.30:9443/auth/websso/"
"""Where tokens may be posted to; nobody listens there when no browser with scripts takes part."""


def protected(name: str, kind: str = "auth", protocol: str = "") -> str:
    """The path by which a provider is signed in at: for browsers (websso) or for tokens (auth)."""
    tail = f"/OS-FEDERATION/identity_providers/{name}/protocols/{protocol or PROTOCOLS[name]}/{kind}"
    return f"/v3/auth{tail}" if kind == "websso" else f"/v3{tail}"


def websso(base: str, name: str, origin: str) -> str:
    """The address that a dashboard sends browsers to."""
    return f"{base}{protected(name, 'websso')}?{urlencode({'origin': origin})}"


def realms(base: str) -> list[Realm]:
    """The realms of the fake, for a Keystone at `base`. Alice and carol are in two groups, bob in one, dave and erin in none."""
    redirect = (f"{base}{REDIRECT}",)
    clients = (Client("keystone", redirect), Client("cli", audience=("keystone",)), Client("other"))
    crew = (User("alice", ("eng", "ops")), User("dave"))
    return [
        Realm(ACME, crew, clients),
        Realm(BETA, (User("bob", ("eng",)), *crew), clients),
        Realm(CORP, (User("carol", ("eng", "ops")), User("erin"))),
    ]


@dataclass(frozen=True)
class Bearer:
    """The answer to a bearer token: status, the Keystone token's body, the token."""

    status: int
    body: JsonObject
    token: str
    text: str

    @property
    def user(self) -> str:
        return str(self.body.get("user", {}).get("name", ""))


@dataclass
class Site:
    """`base`: the public https address; `keystone`: an address of the API for the administrator, ending in /v3."""

    base: str
    keystone: str
    idp: FakeIdp
    trust: ssl.SSLContext
    admin_password: str
    origin: str = DASHBOARD

    # --- addresses

    def asserted(self, name: str) -> str:
        """What a provider calls itself: the issuer, or the entityID."""
        return self.idp.entity(name) if name == CORP else self.idp.issuer(name)

    def protected(self, name: str, kind: str = "auth") -> str:
        """The path by which a provider is signed in at."""
        return protected(name, kind)

    def websso(self, name: str, origin: str = "") -> str:
        """The address that a dashboard sends browsers to."""
        return websso(self.base, name, origin or self.origin)

    def mellon(self, page: str, **query: str) -> str:
        """An address of mod_auth_mellon's own."""
        tail = f"?{urlencode(query)}" if query else ""
        return f"{self.base}{self.protected(CORP)}/mellon/{page}{tail}"

    # --- people

    def visitor(self) -> Visitor:
        """Somebody who was never here."""
        return Visitor(self.trust)

    async def sign_in(self, person: Visitor, name: str, user: str = "", origin: str = "") -> Page:
        """From the dashboard's link through the provider's login form to the page that hands the token over."""
        page = await person.open(self.websso(name, origin))
        return await person.carry_on(await person.sign_in(page, user or PEOPLE[name]))

    async def token_of(self, name: str, user: str = "") -> str:
        """The token of a whole browser login by somebody new; "" when there was none."""
        return (await self.sign_in(self.visitor(), name, user)).token

    async def bearer(
        self, token: str, name: str = ACME, headers: Mapping[str, str] | None = None, method: str = "GET"
    ) -> Bearer:
        """A provider's token in place of a password."""
        sent = {"Authorization": f"Bearer {token}", "Accept": "application/json", **(headers or {})}
        return await self.raw(method, self.protected(name), sent)

    async def raw(self, method: str, path: str, headers: Mapping[str, str] | None = None) -> Bearer:
        """One request without cookies, the path as it is; a redirect is an answer."""
        answer = await exchange(self.trust, method, f"{self.base}{path}", headers)
        found = answer.json
        body = found.get("token", {}) if isinstance(found, dict) else {}
        return Bearer(answer.status, body, answer.header("X-Subject-Token"), answer.text)

    # --- Keystone

    @contextlib.asynccontextmanager
    async def administrator(self) -> AsyncIterator[Admin]:
        async with administrator(self.keystone, self.admin_password) as admin:
            yield admin

    async def authenticated(
        self,
        identity: JsonObject,
        scope: JsonObject | None = None,
        *,
        query: str = "",
        claims: Mapping[str, str] | None = None,
    ) -> Bearer:
        """POST /v3/auth/tokens through the public address, with more headers and a query if wanted; status 0 when nobody answered."""
        auth = {"auth": {"identity": identity, **({"scope": scope} if scope else {})}}
        headers = {"Content-Type": "application/json", **(claims or {})}
        try:
            url, body = f"{self.base}/v3/auth/tokens{query}", json.dumps(auth).encode()
            answer = await exchange(self.trust, "POST", url, headers, body)
        except (OSError, HTTPException) as error:
            return Bearer(0, {}, "", repr(error))
        return Bearer(answer.status, answer.json.get("token", {}), answer.header("X-Subject-Token"), answer.text)

    async def administrator_gets_in(self) -> Bearer:
        """The administrator's password login through the public address."""
        user = {"name": "admin", "domain": {"name": "Default"}, "password": self.admin_password}
        return await self.authenticated({"methods": ["password"], "password": {"user": user}})

    async def said_of(self, token: str) -> JsonObject:
        """What Keystone says of a token to whoever holds it."""
        async with aiohttp.ClientSession(headers={"X-Auth-Token": token}) as session:
            return await Admin(self.keystone, session).shown(token)

    async def scoped(self, token: str, domain: str) -> list[str]:
        """Names of the roles that an unscoped token gets on a domain, by name."""
        found = await self.authenticated({"methods": ["token"], "token": {"id": token}}, {"domain": {"name": domain}})
        return sorted(role["name"] for role in found.body.get("roles", ()))
