"""Requests to a Pocket-ID: as the owner of an API key, over HTTP, one question at a time.

Enters: a session (its fence refuses writes once leadership is lost), a server. Leaves: decoded JSON, or a typed error of `rest_errors`. It follows no redirect,
reads bounded bodies, sends the key to the server's own address only, and never puts a secret or a value sent into a message. It knows no object of Pocket-ID.
Source: spec/pocketid.md 3.14, 4.1, 6.1.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote

import aiohttp
from yarl import URL

from moorage.core.backoff import parse_retry_after
from moorage.core.secret import SecretText
from moorage.net.guard import UnusableRoots, trust

from .rest_errors import (
    ECHO_LENGTH,
    Nonsense,
    NotFound,
    ServerFailed,
    Unauthorized,
    Unreachable,
    clean,
    error_of,
)

TIMEOUT: Final = aiohttp.ClientTimeout(total=30.0, sock_connect=5.0)
"""A write with a logo waits for the server's own download, which may take 15 s."""
ANSWER_LIMIT: Final = 8 * 1024 * 1024
FIRST_USE: Final = 0.2
"""Seconds before a refused key is tried once more: the first use of a static key makes its owner, and parallel ones are then refused."""
_REDACTED: Final = "***"

Params: TypeAlias = list[tuple[str, str]]
Result: TypeAlias = Literal["success", "not_found", "error"]
Observer: TypeAlias = Callable[[str, Result, float], None]
"""Told of each request: operation, result, seconds."""


@dataclass(frozen=True, slots=True)
class Server:
    """A Pocket-ID and the key to it.

    Args:
        url: its address, without `/api`.
        ca: PEM certificates, the only ones trusted then; None: those of the session. Certificates are always verified.
    """

    url: str
    api_key: SecretText
    ca: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One request. `shown` replaces the path in messages when the path holds a secret; `session` goes instead of the API key."""

    operation: str
    method: str
    path: str
    params: Params | None = None
    body: Any = field(default=None, repr=False)
    shown: str = ""
    session: SecretText | None = None

    @property
    def request(self) -> str:
        """Method and path for people."""
        return f"{self.method} {self.shown or self.path}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; `body` is None when it was no JSON."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Any = field(repr=False)
    cookies: Mapping[str, str] = field(repr=False)


class Caller:
    """One API key at one Pocket-ID. Cheap to make: it holds no connection of its own.

    Args:
        session: of `net.sessions`; resolves Services in one-machine mode and fences writes.
        observer: told of each request.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        server: Server,
        observer: Observer = lambda _operation, _result, _seconds: None,
    ) -> None:
        self._session, self._server, self._observer = session, server, observer
        self._accepted = False
        self.calls: Counter[str] = Counter()
        """Requests sent by operation."""
        self.date: datetime | None = None
        """The server's clock by its latest answer, aware, whole seconds; None before the first."""

    @property
    def url(self) -> str:
        """Address of the server, without a trailing slash."""
        return self._server.url.rstrip("/")

    async def ask(self, call: Call) -> Any:
        """Send it; the decoded JSON, None for an answer without a body.

        Raises:
            PocketIDError: it was refused, or there was no answer of a Pocket-ID.
        """
        return (await self.answer(call)).body

    async def answer(self, call: Call) -> Answer:
        """Send it; the whole answer.

        Raises:
            PocketIDError: as with `ask`.
        """
        try:
            answer = await self._judged(call)
        except Unauthorized:
            if self._accepted or call.session is not None:
                raise
            await asyncio.sleep(FIRST_USE)
            answer = await self._judged(call)
        self._accepted = True
        return answer

    async def _judged(self, call: Call) -> Answer:
        self.calls[call.operation] += 1
        clock = asyncio.get_running_loop().time
        begun = clock()
        result: Result = "error"
        try:
            answer = await self._send(call)
            self._refuse(call, answer)
            result = "success"
            return answer
        except NotFound:
            result = "not_found"
            raise
        finally:
            self._observer(call.operation, result, clock() - begun)

    def _refuse(self, call: Call, answer: Answer) -> None:
        if answer.status >= 400:
            wait = parse_retry_after(answer.headers.get("Retry-After"), datetime.now(UTC)) or 0.0
            raise error_of(call.request, answer.status, answer.body, hidden=self._hidden(call), retry_after=wait)
        if answer.status >= 300:
            raise Nonsense(call.request, f"the server answered with a redirect ({answer.status})", answer.status)
        if answer.status != 204 and answer.body is None:
            raise Nonsense(call.request, f"the answer ({answer.status}) is no JSON", answer.status)

    async def _send(self, call: Call) -> Answer:
        options: dict[str, Any] = {"timeout": TIMEOUT, "allow_redirects": False, "headers": self._headers(call)}
        if self._server.ca is not None:
            options["ssl"] = _trusted(self._server.ca)
        url = self._address(call)
        try:
            async with self._session.request(
                call.method, url, params=call.params, json=call.body, **options
            ) as response:
                self._note_date(response.headers.get("Date"))
                cookies = {name: morsel.value for name, morsel in response.cookies.items()}
                return Answer(response.status, response.headers, await _json(call, response), cookies)
        except TimeoutError:
            raise Unreachable(call.request, "Pocket-ID did not answer in time") from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(call.request, clean(_cause(error), self._hidden(call))) from None

    def _address(self, call: Call) -> URL:
        """The server's own address and the path as it is: encoding it again would change ids."""
        try:
            base = URL(self.url)
            if base.scheme in ("http", "https") and base.host and base.port:
                return URL(f"{str(base).rstrip('/')}{call.path}", encoded=True)
        except ValueError:
            pass
        raise Nonsense(call.request, "the server's address is no http or https URL")

    def _headers(self, call: Call) -> dict[str, str]:
        headers = {"Accept": "application/json", "User-Agent": "moorage"}
        if not _sendable(self._server.api_key.reveal()):
            raise Nonsense(
                "API key of the Pocket-ID", "it is empty or holds characters that no header carries, such as a line end"
            )
        if call.session is not None:
            return headers | {"Authorization": f"Bearer {call.session.reveal()}"}
        return headers | {"X-API-Key": self._server.api_key.reveal()}

    def _note_date(self, text: str | None) -> None:
        try:
            moment = parsedate_to_datetime(text or "")
        except ValueError:
            return
        self.date = moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def _hidden(self, call: Call) -> set[str]:
        """What no message may repeat: the key, the session, and every longer value of the request."""
        secrets = {self._server.api_key.reveal(), call.session.reveal() if call.session else ""}
        return secrets | {text for text in _texts(call.body) if len(text) >= ECHO_LENGTH}


async def repeated(waits: tuple[float, ...], attempt: Callable[[], Any]) -> Any:
    """Try; on a failure of the server wait and try again. For writes that are the same when done twice.

    Raises:
        PocketIDError: what the last attempt raised.
    """
    for wait in waits:
        try:
            return await attempt()
        except ServerFailed:
            await asyncio.sleep(wait)
    return await attempt()


def quoted(id: str) -> str:
    """An id as one segment of a path: an URL as `~` and its base64url, and dots so that no client library takes `..` for a way up."""
    if "/" in id or id.startswith("https://"):
        return "~" + base64.urlsafe_b64encode(id.encode()).decode().rstrip("=")
    return quote(id, safe="") if id.strip(".") else "%2E" * len(id)


def _sendable(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable()


@lru_cache(maxsize=64)
def _trusted(ca: bytes) -> ssl.SSLContext:
    """One context a bundle: connections are kept by context.

    Raises:
        Nonsense: the bundle holds no certificate.
    """
    try:
        return trust(ca)
    except UnusableRoots:
        raise Nonsense("CA bundle of the Pocket-ID", "it holds no certificate that can be read") from None


def _texts(body: Any) -> Iterator[str]:
    match body:
        case str():
            yield body
        case dict():
            for value in body.values():
                yield from _texts(value)
        case list():
            for value in body:
                yield from _texts(value)


async def _json(call: Call, response: aiohttp.ClientResponse) -> Any:
    """The decoded body, None when it is no JSON.

    Raises:
        Nonsense: it is larger than any answer of a Pocket-ID.
    """
    raw = bytearray()
    async for chunk in response.content.iter_chunked(65536):
        raw += chunk
        if len(raw) > ANSWER_LIMIT:
            raise Nonsense(call.request, f"the answer is larger than {ANSWER_LIMIT} bytes", response.status)
    try:
        return json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None


def _cause(error: Exception) -> str:
    """What the network said, without our own URL and query."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"the certificate of {error.host}:{error.port} is not trusted"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"cannot connect to {error.host}:{error.port}: {error.os_error.strerror or error.os_error}"
    return f"the connection broke ({type(error).__name__})"
