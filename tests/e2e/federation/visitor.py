"""A person's browser without scripts: cookies, redirects, forms. Chromium does the same with scripts in tests/real/chromium.py.

Enters: addresses, an authority to trust. Leaves: pages with the way that led to them. Forms that a page would post by itself are posted when
`carry_on` is asked to; nothing is posted to a dashboard.
"""

from __future__ import annotations

import asyncio
import contextlib
import html.parser
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin

import aiohttp

HOPS = 20
TURNS = 4
"""Turns of the event loop in which an aborted TLS transport closes its socket."""


@dataclass
class Form:
    """The first form of a page."""

    action: str
    method: str
    id: str
    fields: dict[str, str]


@dataclass(frozen=True)
class Page:
    """An answer that is no redirect (any more); `way` holds status and URL of each step to it."""

    status: int
    url: str
    body: str
    headers: Mapping[str, str]
    way: tuple[tuple[int, str], ...]

    @property
    def form(self) -> Form | None:
        found = _Forms(self.url)
        found.feed(self.body)
        return found.form

    @property
    def token(self) -> str:
        """The Keystone token that this page would hand to a dashboard; "" when it is no such page."""
        form = self.form
        return form.fields.get("token", "") if form else ""


class _Forms(html.parser.HTMLParser):
    def __init__(self, base: str) -> None:
        super().__init__()
        self.base, self.form, self.refresh = base, None, ""
        self.form: Form | None
        self._open = False

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attributes}
        if tag == "form" and self.form is None:
            action = urljoin(self.base, found.get("action", "") or self.base)
            self.form = Form(action, found.get("method", "get").lower(), found.get("id", ""), {})
            self._open = True
        elif tag in ("input", "button") and self._open and self.form is not None and "name" in found:
            self.form.fields[found["name"]] = found.get("value", "")
        elif tag == "meta" and found.get("http-equiv", "").lower() == "refresh":
            _, _, self.refresh = found.get("content", "").partition("url=")

    def handle_endtag(self, tag: str) -> None:
        if tag == "form":
            self._open = False


@dataclass
class Visitor:
    """One browser profile."""

    session: aiohttp.ClientSession
    way: list[tuple[int, str]] = field(default_factory=list)

    async def once(self, url: str, form: Mapping[str, str] | None = None, **headers: str) -> Page:
        """One request, no redirect followed."""
        async with self.session.request(
            "GET" if form is None else "POST", url, data=form, headers=headers, allow_redirects=False
        ) as answer:
            body = (await answer.read()).decode(errors="replace")
            self.way.append((answer.status, url))
            # A cookie that is set to nothing is taken away; this jar would go on sending it empty.
            self.session.cookie_jar.clear(lambda cookie: not cookie.value)
            return Page(answer.status, url, body, {k.title(): v for k, v in answer.headers.items()}, tuple(self.way))

    async def open(self, url: str, form: Mapping[str, str] | None = None, **headers: str) -> Page:
        """A page, with redirects and immediate refreshes followed."""
        self.way = []
        page = await self.once(url, form, **headers)
        for _ in range(HOPS):
            target = self._next(page)
            if not target:
                return page
            page = await self.once(urljoin(page.url, target), **headers)
        raise AssertionError(f"more than {HOPS} redirects: {page.way}")

    @staticmethod
    def _next(page: Page) -> str:
        if page.status in (301, 302, 303, 307, 308):
            return page.headers["Location"]
        found = _Forms(page.url)
        found.feed(page.body)
        return found.refresh

    async def submit(self, page: Page, **values: str) -> Page:
        """Send the page's form with these values in it."""
        form = page.form
        assert form is not None, f"no form on {page.url}: {page.status} {page.body[:300]}"
        return await self.open(form.action, {**form.fields, **values})

    async def sign_in(self, page: Page, user: str) -> Page:
        """Fill a provider's login form in, the fake's or Keycloak's; the password is `<user>-pw`."""
        form = page.form
        assert form is not None, f"no login form on {page.url}: {page.status} {page.body[:300]} {page.way}"
        assert "username" in form.fields, f"no login form on {page.url}: {page.status} {page.body[:300]} {page.way}"
        return await self.submit(page, username=user, password=f"{user}-pw")

    async def carry_on(self, page: Page) -> Page:
        """Post the SAML response that a provider's page would post by itself; other pages stay as they are."""
        form = page.form
        return await self.submit(page) if form and "SAMLResponse" in form.fields else page

    def cookies(self, prefix: str = "") -> dict[str, str]:
        """Cookies by name."""
        return {item.key: item.value for item in self.session.cookie_jar if item.key.startswith(prefix)}


@contextlib.asynccontextmanager
async def session(trust: ssl.SSLContext, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    """A client whose transports are gone when it is: a connection that stays open until then is aborted, one that closes before would linger."""
    connector = aiohttp.TCPConnector(ssl=trust, keepalive_timeout=600)
    async with aiohttp.ClientSession(
        connector=connector, max_field_size=65535, max_line_size=65535, **options
    ) as opened:
        yield opened
    for _ in range(TURNS):
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def visitor(trust: ssl.SSLContext) -> AsyncIterator[Visitor]:
    """A browser with no cookies yet."""
    headers = {"Accept": "text/html,application/xhtml+xml", "User-Agent": "Mozilla/5.0 (visitor)"}
    async with session(trust, cookie_jar=aiohttp.CookieJar(unsafe=True), headers=headers) as opened:
        yield Visitor(opened)
