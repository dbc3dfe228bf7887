"""A person's browser without scripts: cookies, redirects, forms. Chromium does the same with scripts in tests/real/chromium.py.

Enters: addresses, an authority to trust. Leaves: pages with the way that led to them. Forms that a page would post by itself are posted when
`carry_on` is asked to; nothing is posted to a dashboard.
"""

from __future__ import annotations

import html.parser
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode, urljoin, urlsplit

from tests.e2e.federation.wire import Answer, exchange

HOPS = 20
BROWSER = {"Accept": "text/html,application/xhtml+xml", "User-Agent": "Mozilla/5.0 (visitor)"}


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
class Jar:
    """Cookies as a browser keeps them: by host, whatever the port; a secure one goes over https only."""

    kept: dict[tuple[str, str], tuple[str, str, bool]] = field(default_factory=dict)

    def keep(self, host: str, answer: Answer) -> None:
        """Take in what an answer sets; one that is set to nothing is taken away."""
        for line in [value for name, value in answer.headers if name.lower() == "set-cookie"]:
            pair, *attributes = [part.strip() for part in line.split(";")]
            name, _, value = pair.partition("=")
            said = {key.lower(): text for key, _, text in (item.partition("=") for item in attributes)}
            if value and said.get("max-age") != "0":
                self.kept[host, name] = (value, said.get("path", "/"), "secure" in said)
            else:
                self.kept.pop((host, name), None)

    def sent(self, scheme: str, host: str, path: str) -> str:
        """The Cookie header for a request."""
        return "; ".join(
            f"{name}={value}"
            for (owner, name), (value, below, secure) in self.kept.items()
            if owner == host and path.startswith(below) and (scheme == "https" or not secure)
        )


@dataclass
class Visitor:
    """One browser profile."""

    trust: ssl.SSLContext
    jar: Jar = field(default_factory=Jar)
    way: list[tuple[int, str]] = field(default_factory=list)

    async def once(self, url: str, form: Mapping[str, str] | None = None, **headers: str) -> Page:
        """One request, no redirect followed."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        sent = {**BROWSER, **headers}
        if cookies := self.jar.sent(parts.scheme, host, parts.path):
            sent["Cookie"] = cookies
        body = None if form is None else urlencode(form).encode()
        if body is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        answer = await exchange(self.trust, "GET" if body is None else "POST", url.partition("#")[0], sent, body)
        self.jar.keep(host, answer)
        self.way.append((answer.status, url))
        found = {name.title(): value for name, value in answer.headers}
        return Page(answer.status, url, answer.text, found, tuple(self.way))

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
        return {name: value for (_, name), (value, _, _) in self.jar.kept.items() if name.startswith(prefix)}
