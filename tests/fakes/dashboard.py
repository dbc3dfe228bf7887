"""A stand-in for a dashboard: a page with a link for each way to sign in, and the address that receives Keystone's token form.

Enters: names and addresses of ways to sign in; a function that says who a token is. Leaves: a served `Dashboard`, the tokens that were posted to it.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.fakes.exchange import Answer, Request
from tests.fakes.served import served
from tests.real.certificates import Authority

PATH = "/auth/websso/"
STYLE = """\
body { font: 16px/1.5 sans-serif; margin: 0; background: #eef1f5; color: #1d2733 }
main { max-width: 34rem; margin: 12vh auto; background: #fff; padding: 2rem 2.5rem; border-radius: 8px; box-shadow: 0 2px 12px #0002 }
h1 { margin-top: 0; font-size: 1.4rem } a { display: block; margin: .6rem 0; padding: .7rem 1rem; background: #2457a6; color: #fff;
  border-radius: 5px; text-decoration: none } dt { color: #66717e } dd { margin: 0 0 .7rem; font-weight: 600 }
"""


@dataclass
class Dashboard:
    """What is served; `origin` is what Keystone must trust, `tokens` is what it has posted, `describe` gives lines about a token."""

    url: str = ""
    ways: Mapping[str, str] = field(default_factory=dict)
    describe: Callable[[str], Mapping[str, str]] = lambda token: {"Token": f"{len(token)} characters"}
    tokens: list[str] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"{self.url}{PATH}"

    def answer(self, request: Request) -> Answer:
        """The start page, or who has signed in."""
        if request.method == "POST" and request.path == PATH and request.form.get("token"):
            self.tokens.append(request.form["token"])
            return _page("Signed in", _facts(self.describe(request.form["token"])))
        links = "".join(
            f'<a id="{html.escape(name)}" href="{html.escape(url)}">Sign in with {html.escape(name)}</a>'
            for name, url in self.ways.items()
        )
        return _page("Dashboard", links)


def _facts(facts: Mapping[str, str]) -> str:
    lines = "".join(f"<dt>{html.escape(name)}</dt><dd>{html.escape(value)}</dd>" for name, value in facts.items())
    return f'<dl id="who">{lines}</dl>'


def _page(title: str, body: str) -> Answer:
    return Answer(
        200, f"<!DOCTYPE html><title>{title}</title><style>{STYLE}</style><main><h1>{title}</h1>{body}</main>"
    )


@contextmanager
def dashboard(folder: Path, authority: Authority, *, host: str = "127.0.0.30", port: int = 0) -> Iterator[Dashboard]:
    """Serve a dashboard over https on `host`; port 0 is a free one."""
    made = Dashboard()
    with served(folder, "dashboard", authority, made.answer, host=host, port=port) as url:
        made.url = url
        yield made
