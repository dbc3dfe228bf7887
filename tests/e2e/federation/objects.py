"""Keystone's federation objects, made by hand through its API: for stands without an operator.

Enters: an administrator's session. Leaves: domains, groups with roles, identity providers. Only what a login needs.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp

from moorage.core.meta import JsonObject

FEDERATION = "/OS-FEDERATION/identity_providers"
HEADERS = {
    "Oidc-Iss": "",
    "Oidc-Preferred-Username": "mallory",
    "Oidc-Groups": "eng;ops",
    "Mellon-Idp": "",
    "Mellon-Username": "mallory",
    "Mellon-Groups": "eng;ops",
}
"""Claims as Keystone would take them from a sidecar; the remote ids are filled in by who forges them."""


@dataclass
class Admin:
    """The administrator's session at `url` (which ends in /v3)."""

    url: str
    session: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: JsonObject | None = None) -> tuple[int, Any]:
        """Status and decoded body."""
        async with self.session.request(method, f"{self.url}{path}", json=body) as answer:
            text = await answer.text()
            return answer.status, await answer.json() if text else {}

    async def made(self, method: str, path: str, body: JsonObject | None = None) -> Any:
        """The body of a request that must work."""
        status, found = await self.ask(method, path, body)
        assert status < 300, (method, path, status, found)
        return found

    async def domain(self, name: str) -> str:
        return str((await self.made("POST", "/domains", {"domain": {"name": name}}))["domain"]["id"])

    async def group(self, name: str, domain: str, role: str) -> None:
        """A group with a role on its domain."""
        group = (await self.made("POST", "/groups", {"group": {"name": name, "domain_id": domain}}))["group"]["id"]
        found = (await self.made("GET", f"/roles?name={role}"))["roles"][0]["id"]
        await self.made("PUT", f"/domains/{domain}/groups/{group}/roles/{found}")

    async def provider(self, name: str, domain: str, remote: str, protocol: str, prefix: str) -> None:
        """An identity provider with a mapping of user name and groups; `prefix` is HTTP_OIDC or HTTP_MELLON."""
        user, groups = {"HTTP_OIDC": ("PREFERRED_USERNAME", "GROUPS"), "HTTP_MELLON": ("USERNAME", "GROUPS")}[prefix]
        attribute = {"HTTP_OIDC": "HTTP_OIDC_ISS", "HTTP_MELLON": "HTTP_MELLON_IDP"}[prefix]
        rule = {
            "local": [{"user": {"name": "{0}"}}, {"groups": "{1}", "domain": {"id": domain}}],
            "remote": [
                {"type": f"{prefix}_{user}"},
                {"type": f"{prefix}_{groups}"},
                {"type": attribute, "any_one_of": [remote]},
            ],
        }
        idp = {"domain_id": domain, "enabled": True, "remote_ids": [remote]}
        await self.made("PUT", f"{FEDERATION}/{name}", {"identity_provider": idp})
        await self.made("PUT", f"/OS-FEDERATION/mappings/{name}", {"mapping": {"rules": [rule]}})
        body = {"protocol": {"mapping_id": name, "remote_id_attribute": attribute}}
        await self.made("PUT", f"{FEDERATION}/{name}/protocols/{protocol}", body)

    async def shown(self, token: str) -> JsonObject:
        """What Keystone says of a token."""
        async with self.session.get(f"{self.url}/auth/tokens", headers={"X-Subject-Token": token}) as answer:
            return dict((await answer.json())["token"]) if answer.status == 200 else {}


async def password_login(
    session: aiohttp.ClientSession,
    url: str,
    user: str,
    password: str,
    scope: JsonObject | None = None,
    *,
    domain: str = "Default",
) -> tuple[int, str]:
    """Status and token of a password login."""
    who = {"name": user, "domain": {"name": domain}, "password": password}
    auth: JsonObject = {"identity": {"methods": ["password"], "password": {"user": who}}}
    if scope is not None:
        auth["scope"] = scope
    async with session.post(f"{url}/auth/tokens", json={"auth": auth}) as answer:
        return answer.status, answer.headers.get("X-Subject-Token", "")


@contextlib.asynccontextmanager
async def administrator(url: str, password: str) -> AsyncIterator[Admin]:
    """A session of `admin` with system scope."""
    async with aiohttp.ClientSession() as session:
        status, token = await password_login(session, url, "admin", password, {"system": {"all": True}})
        assert status == 201, status
        session.headers["X-Auth-Token"] = token
        yield Admin(url, session)
