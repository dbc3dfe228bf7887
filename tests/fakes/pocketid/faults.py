"""Bad days on demand: which request gets what instead of, before, or after its answer. And the journal of every request.

Enters: rules of a test. Leaves: the rule for a request, each used as often as it says. Source: spec/pocketid.md 5.7.
"""

from __future__ import annotations

import asyncio
import fnmatch
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from .exchange import Answer, Request
from .reading import Problem

Kind = Literal["drop_before", "drop_after", "status", "rate_limit", "delay", "hold", "page", "redirect"]


@dataclass
class Fault:
    """One rule. `path` is a glob of the decoded path, `skip` requests pass before it strikes, then it strikes `times` times (-1: always).

    drop_before: the connection breaks, nothing happened. drop_after: it happened, the connection breaks. status: an error envelope with `status` and `code`
    (nothing happened, unless `commit`). rate_limit: 429 with `retry_after`. delay: `seconds` before it happens. hold: until `release()`. page: 200 and HTML, as a
    proxy gives. redirect: 302 to elsewhere.
    """

    kind: Kind
    method: str = "*"
    path: str = "*"
    times: int = 1
    skip: int = 0
    status: int = 500
    code: str = "internal_error"
    retry_after: str = "1"
    seconds: float = 0.0
    commit: bool = False
    struck: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop | None = None

    def release(self) -> None:
        """Let held requests go on; from any thread."""
        if self.loop is None or self.loop.is_closed():
            self.gate.set()
        else:
            self.loop.call_soon_threadsafe(self.gate.set)

    def strikes(self, request: Request) -> bool:
        if (
            self.times == 0
            or not fnmatch.fnmatchcase(request.method, self.method)
            or not fnmatch.fnmatchcase(request.path, self.path)
        ):
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.times -= self.times > 0
        self.struck += 1
        return True

    async def before(self) -> Answer | None:
        """What happens before the request is served; an answer takes its place."""
        self.loop = asyncio.get_running_loop()
        self.reached.set()
        match self.kind:
            case "delay":
                await asyncio.sleep(self.seconds)
            case "hold":
                await self.gate.wait()
            case "status" if not self.commit:
                raise Problem(self.status, self.code)
            case "rate_limit":
                raise Problem(429, "rate_limited")
            case "page":
                return Answer(
                    200, b"<!doctype html><title>Bad gateway</title>", {"Content-Type": "text/html; charset=utf-8"}
                )
            case "redirect":
                return Answer(302, b"", {"Location": "https://elsewhere.example/"})
        return None


class Faults:
    """The rules in force, in order; the first that strikes counts."""

    def __init__(self) -> None:
        self.rules: list[Fault] = []

    def add(self, kind: Kind, **rule: Any) -> Fault:
        fault = Fault(kind, **rule)
        self.rules.append(fault)
        return fault

    def clear(self) -> None:
        self.rules.clear()

    def strike(self, request: Request) -> Fault | None:
        return next((rule for rule in self.rules if rule.strikes(request)), None)


@dataclass(frozen=True)
class Entry:
    """One request: who asked (`static`, `key`, `session`, ``), which route, what came of it. Bodies as hashes only."""

    number: int
    method: str
    path: str
    route: str
    who: str
    status: int
    body: str

    @property
    def writes(self) -> bool:
        """It may have changed something that an operator cares for."""
        return (
            self.method not in ("GET", "HEAD")
            and self.path.startswith("/api/")
            and not self.path.startswith("/api/oidc/token")
        )


class Journal:
    """Every request since the start, or since `clear`."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._count = 0

    def note(self, request: Request, route: str, who: str, status: int) -> None:
        self._count += 1
        body = hashlib.sha256(request.body).hexdigest()[:16] if request.body else ""
        self.entries.append(Entry(self._count, request.method, request.path, route, who, status, body))

    def clear(self) -> None:
        self.entries.clear()

    def writes(self) -> list[Entry]:
        return [entry for entry in self.entries if entry.writes]

    def lines(self) -> list[str]:
        """`METHOD path` of every request, for asserting."""
        return [f"{entry.method} {entry.path}" for entry in self.entries]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.entries)
