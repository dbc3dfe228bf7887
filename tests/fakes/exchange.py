"""One HTTP exchange with a fake: the request as it came, the answer as it goes.

Enters: method, target, headers, body. Leaves: frozen values; pages that a browser shows.
"""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit


@dataclass(frozen=True)
class Request:
    """A request; `query` and `form` keep the last value of each name."""

    method: str
    path: str
    query: Mapping[str, str]
    form: Mapping[str, str]
    headers: Mapping[str, str]

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str], body: bytes) -> Request:
        parts = urlsplit(target)
        form = dict(parse_qsl(body.decode(errors="replace"), keep_blank_values=True))
        lower = {name.lower(): value for name, value in headers.items()}
        return cls(method, parts.path, dict(parse_qsl(parts.query, keep_blank_values=True)), form, lower)

    @property
    def bearer(self) -> str:
        """The token of an Authorization header."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        return token if scheme.lower() == "bearer" else ""

    @property
    def credentials(self) -> tuple[str, str]:
        """Client id and secret, from a Basic header or from the form."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return self.form.get("client_id", ""), self.form.get("client_secret", "")
        name, _, secret = base64.b64decode(token).decode().partition(":")
        return unquote(name), unquote(secret)


@dataclass(frozen=True)
class Answer:
    """An answer; a dict as body goes out as JSON."""

    status: int
    body: str | dict[str, Any] = ""
    type: str = "text/html; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return (json.dumps(self.body) if isinstance(self.body, dict) else self.body).encode()

    @property
    def media_type(self) -> str:
        return "application/json" if isinstance(self.body, dict) else self.type


def redirect(url: str, **query: str) -> Answer:
    """302 to the URL with more query parameters."""
    joined = f"{url}{'&' if '?' in url else '?'}{urlencode(query)}" if query else url
    return Answer(302, headers={"Location": joined})


def hidden(fields: Mapping[str, str]) -> str:
    """Form inputs that nobody sees."""
    return "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in fields.items()
    )


def login_page(realm: str, keep: Mapping[str, str], note: str = "") -> Answer:
    """The login form of a realm; `keep` comes back with it."""
    return Answer(
        200,
        f"<!DOCTYPE html><title>Fake identity provider</title><h1>Sign in to {html.escape(realm)}</h1><p>{html.escape(note)}</p>"
        f'<form id="login" method="post">{hidden(keep)}'
        '<label>User <input id="username" name="username"></label> '
        '<label>Password <input id="password" name="password" type="password"></label> '
        '<button id="submit">Sign in</button></form>',
    )


def posting_page(action: str, fields: Mapping[str, str]) -> Answer:
    """A form that a browser posts on by itself."""
    return Answer(
        200,
        '<!DOCTYPE html><body onload="document.forms[0].submit()">'
        f'<form id="post" method="post" action="{html.escape(action)}">{hidden(fields)}</form>',
    )
