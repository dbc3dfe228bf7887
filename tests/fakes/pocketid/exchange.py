"""One exchange with the fake: a request as it came, the answer as it goes, and what a handler may touch.

Enters: method, raw target, headers, body. Leaves: frozen values. Knows no noun.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .model import Store, User
from .reading import decoded

if TYPE_CHECKING:
    from .fake import Fake

API_HEADERS = {"Cache-Control": "private, no-store"}


@dataclass(frozen=True)
class Request:
    """A request; `query` keeps the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def content_type(self) -> str | None:
        return self.headers.get("content-type")

    @property
    def bearer(self) -> str:
        """The session or token, by whatever scheme or cookie."""
        _, _, token = self.headers.get("authorization", "").partition(" ")
        cookies = dict(part.strip().partition("=")[::2] for part in self.headers.get("cookie", "").split(";"))
        return token or cookies.get("__Host-access_token") or cookies.get("access_token") or ""


@dataclass(frozen=True)
class Answer:
    """An answer; anything but bytes or None goes out as JSON."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        if self.body is None or isinstance(self.body, bytes):
            return self.body or b""
        return json.dumps(self.body, ensure_ascii=False).encode("utf-8", errors="replace")


def json_answer(body: Any, status: int = 200) -> Answer:
    """An answer of the API."""
    return Answer(status, body, {"Content-Type": "application/json; charset=utf-8"} | API_HEADERS)


NOTHING = Answer(204, None, API_HEADERS)


def see(location: str, status: int = 302, headers: Mapping[str, str] | None = None) -> Answer:
    """A redirect; 302 has a page for people."""
    page = {} if status == 303 else {"Content-Type": "text/html; charset=utf-8"}
    body = None if status == 303 else f'<a href="{location}">Found</a>.\n\n'.encode()
    return Answer(status, body, {"Location": location, **page, **(headers or {})})


@dataclass(frozen=True)
class Call:
    """What a handler gets: the request, the path's parameters, who asks, and the fake."""

    fake: Fake
    request: Request
    params: Mapping[str, str]
    user: User | None = None

    @property
    def store(self) -> Store:
        return self.fake.store

    @property
    def query(self) -> Mapping[str, str]:
        return self.request.query

    @property
    def now(self) -> int:
        """Nanoseconds of the server's clock."""
        return self.fake.clock.now()

    def json(self) -> Any:
        """The body's JSON; a Problem when it does not decode."""
        return decoded(self.request.content_type, self.request.body)
