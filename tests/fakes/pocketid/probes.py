"""What an application does with a client: ask for a token with its secret, send a user through the browser flow. By plain HTTP, against any Pocket-ID.

Enters: an address, an API key where a user has to be logged in. Leaves: what the token endpoint said. The proof that a stored secret works, and a retired one not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import aiohttp

SCOPES = "openid profile email groups"


@dataclass(frozen=True)
class Said:
    """An answer of the token endpoint."""

    status: int
    body: Mapping[str, Any]

    @property
    def granted(self) -> bool:
        return self.status == 200 and bool(self.body.get("access_token"))


@dataclass(frozen=True)
class Browser:
    """A user that is logged in: his session, which goes with every request."""

    http: aiohttp.ClientSession
    url: str
    session: str

    async def get(self, path: str) -> str:
        """Where a request is sent to; "" when it is answered in place."""
        headers = {"Authorization": f"Bearer {self.session}"}
        async with self.http.get(self.url + path, headers=headers, allow_redirects=False) as answer:
            return answer.headers.get("Location", "")

    async def agree(self, interaction: str) -> str:
        """Give consent; the path that goes on."""
        headers = {"Authorization": f"Bearer {self.session}"}
        path = f"{self.url}/api/oidc/interactions/{interaction}/complete"
        async with self.http.post(path, headers=headers, json={"step": "consent"}) as answer:
            return str((await answer.json())["redirectUrl"])


async def ask_token(
    http: aiohttp.ClientSession,
    url: str,
    form: Mapping[str, str],
    basic: tuple[str, str] | None = None,
    path: str = "/api/oidc/token",
) -> Said:
    """One request to the token endpoint, or to a neighbour of it; `basic` is client id and secret for a header, form-encoded as RFC 6749 says."""
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    if basic:
        text = ":".join(map(quote_plus, basic))
        headers["Authorization"] = "Basic " + base64.b64encode(text.encode()).decode()
    async with http.post(url + path, data=urlencode(form).encode(), headers=headers) as answer:
        return Said(answer.status, json.loads(await answer.read()))


async def machine_token(http: aiohttp.ClientSession, url: str, client: str, secret: str, **form: str) -> Said:
    """A client_credentials token; `resource` and `scope` where given."""
    return await ask_token(http, url, {"grant_type": "client_credentials", **form}, (client, secret))


async def log_in(http: aiohttp.ClientSession, url: str, api_key: str, user: str) -> Browser:
    """Log a user (by id) in with a login code."""
    headers = {"X-API-Key": api_key}
    async with http.post(
        f"{url}/api/users/{user}/one-time-access-token", headers=headers, json={"ttl": "60m"}
    ) as answer:
        code = (await answer.json())["token"]
    async with http.post(f"{url}/api/one-time-access-token/{code}") as answer:
        cookie = answer.cookies.get("access_token") or answer.cookies["__Host-access_token"]
        return Browser(http, url, cookie.value)


async def authorize(browser: Browser, client: str, redirect: str, secret: str = "", **asked: str) -> Mapping[str, str]:
    """Send the user through; the parameters at the callback, or {"refused": where he ended instead}.

    Args:
        secret: the request is pushed first (RFC 9126), as the client with this secret.
    """
    wanted = {
        "client_id": client,
        "redirect_uri": redirect,
        "response_type": "code",
        "scope": SCOPES,
        "state": secrets.token_hex(8),
        **asked,
    }
    if secret:
        wanted = {"client_id": client, "request_uri": await _push(browser, client, secret, wanted)}
    location = await browser.get(f"/authorize?{urlencode(wanted)}")
    interaction = parse_qs(urlsplit(location).query).get("interaction")
    if location.startswith("/interaction?") and interaction:
        location = await browser.get(await browser.agree(interaction[0]))
    if not location.startswith(redirect):
        return {"refused": location}
    return {name: values[0] for name, values in parse_qs(urlsplit(location).query).items()}


async def _push(browser: Browser, client: str, secret: str, wanted: Mapping[str, str]) -> str:
    """The name of a pushed request; "" when it is refused."""
    said = await ask_token(browser.http, browser.url, wanted, (client, secret), path="/api/oidc/par")
    return str(said.body.get("request_uri", ""))


async def code_form(
    browser: Browser, client: str, redirect: str, pkce: bool = True, pushed_with: str = ""
) -> Mapping[str, str]:
    """The user's part of the flow: the form that turns his code into tokens, or the error at the callback, or {"refused": ...}."""
    verifier = secrets.token_urlsafe(40)
    hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    proof = {"code_challenge": hashed, "code_challenge_method": "S256"} if pkce else {}
    came = await authorize(browser, client, redirect, pushed_with, **proof)
    if "code" not in came:
        return came
    form = {"grant_type": "authorization_code", "code": came["code"], "redirect_uri": redirect}
    return form | ({"code_verifier": verifier} if pkce else {})


async def code_flow(browser: Browser, client: str, secret: str, redirect: str, pkce: bool = True) -> Said:
    """The whole flow; `secret` "" for a public client."""
    form = await code_form(browser, client, redirect, pkce)
    if "code" not in form:
        return Said(0, form)
    return await ask_token(
        browser.http,
        browser.url,
        form if secret else {**form, "client_id": client},
        (client, secret) if secret else None,
    )
