"""Requests to Keystone's Identity API v3: as an administrator, over HTTP, one question at a time.

Enters: calls (net.calls, whose fence refuses writes once leadership is lost), a login, the tokens kept so far. Leaves: decoded JSON, or a typed error of `identity_errors`. It follows no redirect,
sends the token to the login's own address only, and never puts a secret into a message. It knows no object of Keystone.
Source: spec/keystone.md 4.2; Keystone API reference v3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from moorage.calling import wire
from moorage.calling.line import HttpError, NotConnected, TooLarge
from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText
from moorage.net.calls import Call, Calls

from .identity_errors import Nonsense, Unreachable, clean, error_of
from .identity_tokens import Login, Token, Tokens

TIMEOUT: Final = 20.0
"""Seconds that one request may take."""
PAGE_LIMIT: Final = 1000


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: Any


class Caller:
    """One administrator at one Keystone.

    Args:
        http: resolves Services in one-machine mode.
        tokens: shared by all clients of the process.
        counted: told of each request: its method, or `login`.
    """

    def __init__(
        self,
        http: Calls,
        login: Login,
        tokens: Tokens,
        counted: Callable[[str], None] = lambda _method: None,
    ) -> None:
        self._http, self._login, self._tokens, self._counted = http, login, tokens, counted
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
        target = f"{path}?{urlencode(params)}" if params else path
        headers = (("X-Auth-Token", token.text.reveal()),) if token else ()
        call = Call(method, target, headers, None if body is None else wire.dumps(body), asking=token is None)
        server = self._http.server(self._login.url)
        try:
            answer = await server.ask(call, TIMEOUT)
        except ValueError as error:
            raise Nonsense(f"{method} {path}", str(error)) from None
        except TimeoutError:
            raise Unreachable(f"{method} {path}", "Keystone did not answer in time") from None
        except TooLarge as error:
            raise Nonsense(f"{method} {path}", str(error), error.status) from None
        except HttpError as error:
            where = f"{server.host}:{server.port}"
            raise Unreachable(f"{method} {path}", clean(_cause(error, where), self._secrets(token))) from None
        return _Answer(answer.status, answer.headers, _decoded(answer.body))

    # --- login

    async def _token(self) -> Token:
        return await self._tokens.get(self._login, self._log_in)

    async def _log_in(self) -> Token:
        answer = await self._send("POST", "/auth/tokens", body=self._credentials())
        request = "login at Keystone"
        if answer.status >= 400:
            raise error_of(request, answer.status, answer.body, self._secrets(None))
        text = answer.headers.get("x-subject-token")
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
    """An id as one segment of a path; dots alone would be a way up."""
    return quote(id, safe="") if id.strip(".") else "%2E" * len(id)


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


def _decoded(body: bytes) -> Any:
    """The value, None when it is no JSON."""
    try:
        return wire.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _cause(error: HttpError, where: str) -> str:
    """What the network said, without our own URL and query."""
    if isinstance(error, NotConnected):
        return f"cannot connect to {where}: {error.why}"
    return f"the connection broke ({error})"
