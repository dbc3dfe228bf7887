"""Requests to a Pocket-ID: as the owner of an API key, over HTTP, one question at a time.

Enters: calls (net.calls, whose fence refuses writes once leadership is lost), a server. Leaves: decoded JSON, or a typed error of `rest_errors`. It follows no redirect,
reads bounded bodies and decodes none that would fill the memory, sends the key to the server's own address only, and never puts a secret or a value sent into a message. It knows no object of Pocket-ID.
Source: spec/pocketid.md 3.14, 4.1, 6.1.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache
from http.cookies import CookieError, SimpleCookie
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import quote, urlencode, urlsplit

from moorage.calling import line, wire
from moorage.core.backoff import parse_retry_after
from moorage.core.digest import concealed_digest
from moorage.core.secret import SecretText
from moorage.net import calls
from moorage.net.guard import UnusableRoots, trust

from .rest_errors import (
    ECHO_LENGTH,
    Nonsense,
    NotFound,
    ServerFailed,
    TooLarge,
    Unauthorized,
    Unreachable,
    clean,
    error_of,
)
from .rest_weight import WEIGHT_LIMIT, weight_of
from .weights import Scale, Weights

_CONCEALED: Final = os.urandom(32)
TIMEOUT: Final = 30.0
"""Seconds of a request. A write with a logo waits for the server's own download, which may take 15 s."""
FIRST_USE: Final = 0.2
"""Seconds before a refused key is tried once more: the first use of a static key makes its owner, and parallel ones are then refused."""

Params: TypeAlias = list[tuple[str, str]]
Result: TypeAlias = Literal["success", "not_found", "error"]
Observer: TypeAlias = Callable[[str, Result, float], None]
"""Told of each request: operation, result, seconds."""


@dataclass(frozen=True, slots=True)
class Server:
    """A Pocket-ID and the key to it.

    Args:
        url: its address, without `/api`.
        ca: PEM certificates, the only ones trusted then; None: the system's. Certificates are always verified.
        any_name: `ca` is the server's own certificate, whatever names it is for.
    """

    url: str
    api_key: SecretText
    ca: bytes | None = field(default=None, repr=False)
    any_name: bool = False


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
    """What came back; names of headers are in lower case, `body` is None when it was no JSON, `weight` what it takes in memory, in bytes, by `weight_of`."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: Any = field(repr=False)
    weight: int = 0

    @property
    def cookies(self) -> Mapping[str, str]:
        """The cookies that it sets; one that cannot be read is left out."""
        found: dict[str, str] = {}
        for text in self.headers.get("set-cookie", "").split("\n"):
            try:
                found |= {name: morsel.value for name, morsel in SimpleCookie(text).items()}
            except CookieError:
                continue
        return found


class Caller:
    """One API key at one Pocket-ID. Cheap to make: it holds no connection of its own.

    Args:
        http: resolves Services in one-machine mode and fences writes.
        observer: told of each request.
        scale: of the lists of this server; None: nothing is remembered of them.
    """

    def __init__(
        self,
        http: calls.Calls,
        server: Server,
        observer: Observer = lambda _operation, _result, _seconds: None,
        scale: Scale | None = None,
    ) -> None:
        self._http, self._server, self._observer = http, server, observer
        self.scale = Weights().of(server.url) if scale is None else scale
        self._accepted = False
        self.calls: Counter[str] = Counter()
        """Requests sent by operation."""
        self.date: datetime | None = None
        """The server's clock by its latest answer, aware, whole seconds; None before the first."""

    @property
    def url(self) -> str:
        """Address of the server, without a trailing slash."""
        return self._server.url.rstrip("/")

    @property
    def reader(self) -> str:
        """Whose rights it asks by: a digest of the key, another one in each process."""
        return concealed_digest(self._server.api_key.reveal(), _CONCEALED)

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
            wait = parse_retry_after(answer.headers.get("retry-after"), datetime.now(UTC)) or 0.0
            raise error_of(call.request, answer.status, answer.body, hidden=self._hidden(call), retry_after=wait)
        if answer.status >= 300:
            raise Nonsense(call.request, f"the server answered with a redirect ({answer.status})", answer.status)
        if answer.status != 204 and answer.body is None:
            raise Nonsense(call.request, f"the answer ({answer.status}) is no JSON", answer.status)

    async def _send(self, call: Call) -> Answer:
        server = self._reached(call)
        try:
            answer = await server.ask(self._request(call), TIMEOUT)
        except TimeoutError:
            raise Unreachable(call.request, "Pocket-ID did not answer in time") from None
        except line.TooLarge as error:
            raise TooLarge(call.request, str(error), error.status) from None
        except line.HttpError as error:
            where = f"{server.host}:{server.port}"
            raise Unreachable(call.request, clean(_cause(error, where), self._hidden(call))) from None
        self._note_date(answer.headers.get("date"))
        weight = weight_of(answer.body)
        if weight > WEIGHT_LIMIT:
            raise TooLarge(
                call.request, f"the answer would take more than {WEIGHT_LIMIT >> 20} MiB of memory", answer.status
            )
        return Answer(answer.status, answer.headers, _decoded(answer.body), weight)

    def _reached(self, call: Call) -> calls.Server:
        if not _is_address(self.url):
            raise Nonsense(call.request, "the server's address is no http or https URL")
        ca = self._server.ca
        return self._http.server(self.url, None if ca is None else _trusted(ca, self._server.any_name))

    def _request(self, call: Call) -> calls.Call:
        """The path goes as it is: encoding it again would change ids."""
        target = f"{call.path}?{urlencode(call.params)}" if call.params else call.path
        return calls.Call(
            call.method, target, self._headers(call), None if call.body is None else wire.dumps(call.body)
        )

    def _headers(self, call: Call) -> tuple[tuple[str, str], ...]:
        if not _sendable(self._server.api_key.reveal()):
            raise Nonsense(
                "API key of the Pocket-ID",
                "it is empty or holds characters that no header carries, such as a line end; put the key alone into the Secret that the instance names",
            )
        if call.session is not None:
            return (("Authorization", f"Bearer {call.session.reveal()}"),)
        return (("X-API-Key", self._server.api_key.reveal()),)

    def _note_date(self, text: str | None) -> None:
        self.date = _moment(text or "") or self.date

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


@lru_cache(maxsize=16)
def _moment(text: str) -> datetime | None:
    """A date of HTTP; answers of one second have the same."""
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@lru_cache(maxsize=64)
def _is_address(url: str) -> bool:
    try:
        where = urlsplit(url)
        return where.scheme in ("http", "https") and bool(where.hostname) and where.port != 0
    except ValueError:
        return False


def _sendable(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable()


@lru_cache(maxsize=64)
def _trusted(ca: bytes, any_name: bool) -> ssl.SSLContext:
    """One context a bundle: connections are kept by context.

    Raises:
        Nonsense: the bundle holds no certificate.
    """
    try:
        context = trust(ca)
        context.check_hostname = not any_name
        return context
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


def _decoded(body: bytes) -> Any:
    """The value, None when it is no JSON."""
    try:
        return wire.loads(body) if body else None
    except (ValueError, RecursionError):
        return None


def _cause(error: line.HttpError, where: str) -> str:
    """What the network said, without our own URL and query."""
    if isinstance(error, line.Untrusted):
        return f"the certificate of {where} is not trusted"
    if isinstance(error, line.NotConnected):
        return f"cannot connect to {where}: {error.why}"
    return f"the connection broke ({error})"
