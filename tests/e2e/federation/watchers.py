"""What goes on while something else happens: people who log in all the time, an attacker who never stops trying.

Enters: a question to ask again and again. Leaves: what was answered that should not have been. It asks at a fixed pace, whatever the answers are.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

from tests.e2e.federation.objects import HEADERS
from tests.e2e.federation.site import Site

PACE = 0.2
"""Seconds between two questions."""
MOST = 3
"""Questions that wait for their answers at most: on a machine that cannot keep pace no queue grows before everybody else's requests."""


@dataclass
class Watched:
    """How often was asked, and the answers that were bad, with the seconds since the start."""

    asked: int = 0
    bad: list[str] = field(default_factory=list)


@contextlib.asynccontextmanager
async def watching(question: Callable[[], Awaitable[str]], pace: float = PACE) -> AsyncIterator[Watched]:
    """Ask every `pace` seconds for the time of a `with`; an answer other than "" is bad."""
    seen, over, began = Watched(), asyncio.Event(), time.monotonic()

    waiting: set[asyncio.Task[None]] = set()

    async def once() -> None:
        asked = time.monotonic() - began
        seen.asked += 1
        if answer := await question():
            seen.bad.append(f"{asked:.1f} s: {answer}")

    async def ask() -> None:
        async with asyncio.TaskGroup() as group:
            while not over.is_set():
                if len(waiting) < MOST:
                    task = group.create_task(once())
                    waiting.add(task)
                    task.add_done_callback(waiting.discard)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(over.wait(), pace)

    task = asyncio.create_task(ask())
    try:
        yield seen
    finally:
        over.set()
        await task


def administrator(site: Site) -> Callable[[], Awaitable[str]]:
    """The administrator's password login; bad when it gives no token."""

    async def ask() -> str:
        found = await site.administrator_gets_in()
        return "" if found.status == 201 else f"{found.status} {found.text[:200]}"

    return ask


def forger(site: Site, *names: str) -> Callable[[], Awaitable[str]]:
    """Claims of nobody's, at the paths of these providers in turn; bad when anything but a refusal or a login comes back."""
    turns = [(name, kind) for name in names for kind in ("auth", "websso")]
    count = iter(range(10**9))

    async def ask() -> str:
        name, kind = turns[next(count) % len(turns)]
        remote = site.asserted(name)
        headers = {header: remote if header.endswith(("Iss", "Idp")) else value for header, value in HEADERS.items()}
        try:
            found = await site.raw("GET", f"{site.protected(name, kind)}?origin={site.origin}", headers)
        except OSError:
            return ""
        opened = found.status < 300 or found.token or 'name="token"' in found.text
        return f"{name} {kind}: {found.status} {found.text[:200]}" if opened else ""

    return ask
