"""Requests to Keystone's Identity API v3: as an administrator, over HTTP, one question at a time.

Enters: a session, a login, the tokens kept so far. Leaves: decoded JSON, or a typed error of `identity_errors`. It follows no redirect,
sends the token to the login's own address only, and never puts a secret into a message. It knows no object of Keystone.
Source: spec/keystone.md 4.2; Keystone API reference v3.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlsplit

import aiohttp

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText
from moorage.net.sessions import ASKING

from .identity_errors import Nonsense, Unreachable, clean, error_of
from .identity_tokens import Login, Token, Tokens

TIMEOUT: Final = aiohttp.ClientTimeout(total=20.0, sock_connect=5.0)
ANSWER_LIMIT: Final = 8 * 1024 * 1024
PAGE_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class Caller:
    """One administrator at one Keystone.

    Args:
        session: resolves Services in one-machine mode.
        tokens: shared by all clients of the process.
        counted: told of each request: its method, or `login`.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        login: Login,
        tokens: Tokens,
        counted: Callable[[str], None] = lambda _method: None,
    ) -> None:
        self._session, self._login, self._tokens, self._counted = session, login, tokens, counted
        self.calls: Counter[str] = Counter()
        """Requests sent by method, logins under `login`."""

    @property
    def url(self) -> str:
        """Address of the Keystone; ends in `/v3`."""
        return self._login.url

    async def pages(self, path: str, collection: str, query: Mapping[str, str]) -> list[JsonObject]:
        """All items of a list, page by page. Only the query of a next link is used: its host is whatever Keystone believes to be."""
        found: list[JsonObject] = []
        params = list(query.items())
        for _ in range(PAGE_LIMIT):
            answer = await self.call("GET", path, params=params)
            found += [item for item in answer.get(collection) or [] if isinstance(item, dict)]
            following = (answer.get("links") or {}).get("next")
            if not following:
                return found
            params = parse_qsl(urlsplit(str(following)).query, keep_blank_values=True)
        raise Nonsense(f"GET {path}", f"the list does not end after {PAGE_LIMIT} pages")

    async def call(
        self, method: str, path: str, *, params: list[tuple[str, str]] | None = None, body: JsonObject | None = None
    ) -> JsonObject:
        """One request with a token; a refused token is replaced once.

        Raises:
            IdentityError: it was refused, or there was no answer of the Identity API.
        """
        token = await self._token()
        answer = await self._send(method, path, token=token, params=params, body=body)
        if answer.status == 401:
            self._tokens.drop(self._login, token)
            token = await self._token()
            answer = await self._send(method, path, token=token, params=params, body=body)
        if answer.status >= 400:
            raise error_of(f"{method} {path}", answer.status, answer.body, self._secrets(token))
        if answer.status >= 300:
            raise Nonsense(f"{method} {path}", f"Keystone answered with a redirect ({answer.status})", answer.status)
        if answer.status == 204:
            return {}
        if not isinstance(answer.body, dict):
            raise Nonsense(f"{method} {path}", "the answer is no JSON object", answer.status)
        return answer.body

    async def _send(
        self,
        method: str,
        path: str,
        *,
        token: Token | None = None,
        params: list[tuple[str, str]] | None = None,
        body: JsonObject | None = None,
    ) -> _Answer:
        kind = method if token else "login"
        self.calls[kind] += 1
        self._counted(kind)
        headers = {"Accept": "application/json"} | ({"X-Auth-Token": token.text.reveal()} if token else {})
        url = f"{self._login.url}{path}"
        options: dict[str, Any] = {"timeout": TIMEOUT, "allow_redirects": False, "headers": headers}
        if token is None:
            options["trace_request_ctx"] = ASKING
        try:
            async with self._session.request(method, url, params=params, json=body, **options) as response:
                return _Answer(response.status, response.headers, await _json(response))
        except TimeoutError:
            raise Unreachable(f"{method} {path}", "Keystone did not answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(f"{method} {path}", clean(_cause(error), self._secrets(token))) from None

    # --- login

    async def _token(self) -> Token:
        return await self._tokens.get(self._login, self._log_in)

    async def _log_in(self) -> Token:
        answer = await self._send("POST", "/auth/tokens", body=self._credentials())
        request = "login at Keystone"
        if answer.status >= 400:
            raise error_of(request, answer.status, answer.body, self._secrets(None))
        text = answer.headers.get("X-Subject-Token")
        if answer.status != 201 or not text:
            raise Nonsense(request, f"the answer ({answer.status}) holds no token", answer.status)
        return Token(SecretText(text), _expiry(request, answer.body))

    def _credentials(self) -> JsonObject:
        default: JsonObject = {"name": "Default"}
        user = {"name": self._login.user, "domain": default, "password": self._login.password.reveal()}
        return {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": {"name": "admin", "domain": default}},
            }
        }

    def _secrets(self, token: Token | None) -> tuple[str, ...]:
        return (self._login.password.reveal(), token.text.reveal() if token else "")


def quoted(id: str) -> str:
    """An id as one segment of a path."""
    return quote(id, safe="")


def member(answer: JsonObject, name: str, *required: str) -> JsonObject:
    """The object that an answer holds under `name`, with these members as text.

    Raises:
        Nonsense: it holds none.
    """
    item = answer.get(name)
    if not isinstance(item, dict) or not all(isinstance(item.get(key), str) for key in required):
        raise Nonsense(name, f"the answer holds no {name}")
    return item


def _expiry(request: str, body: Any) -> datetime:
    try:
        end = datetime.fromisoformat(body["token"]["expires_at"])
        return end if end.tzinfo else end.replace(tzinfo=UTC)
    except (KeyError, TypeError, ValueError, AttributeError):
        raise Nonsense(request, "the answer does not say when the token ends") from None


async def _json(response: aiohttp.ClientResponse) -> Any:
    """The decoded body, None when it is no JSON.

    Raises:
        Nonsense: it is larger than any answer of the Identity API.
    """
    told, packed = response.content_length, "Content-Encoding" in response.headers
    if told is not None and told <= ANSWER_LIMIT and not packed:
        raw = await response.read()
    else:
        raw = await _read(response)
    try:
        return json.loads(raw) if raw else None
    except ValueError:
        return None


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """A body that does not say how long it is, or how long it becomes when it is unpacked."""
    raw = bytearray()
    async for chunk in response.content.iter_chunked(65536):
        raw += chunk
        if len(raw) > ANSWER_LIMIT:
            raise Nonsense(f"{response.method} answer", f"it is larger than {ANSWER_LIMIT} bytes", response.status)
    return bytes(raw)


def _cause(error: Exception) -> str:
    """What the network said, without our own URL and query."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return f"the connection broke ({type(error).__name__})"
