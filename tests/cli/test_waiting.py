"""Waiting for one object: what happens between two requests is not missed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.cli.conftest import Run

from moorage.cli.waiting import until
from moorage.core.meta import JsonObject, Key
from moorage.kube.client import Listing
from moorage.kube.errors import Expired
from moorage.kube.resources import CONFIG_MAPS
from moorage.kube.watch import WatchEvent

THING: JsonObject = {"metadata": {"name": "thing", "namespace": "here", "resourceVersion": "7"}}


class Recorded:
    """A client whose lists and watches are given; `deleted` objects are answered by no GET."""

    def __init__(self, lists: list[list[JsonObject]], watches: list[list[tuple[str, JsonObject]] | Expired]) -> None:
        self.lists, self.watches = lists, watches
        self.asked: list[str] = []

    async def get(self, *_: Any) -> JsonObject:
        """It was there a moment ago."""
        return THING

    async def list(self, _rt: Any, _namespace: str, *, fields: str = "") -> Listing[JsonObject]:
        self.asked.append(fields)
        return Listing(self.lists.pop(0), "7")

    async def watch(self, _rt: Any, _namespace: str, *, since: str, fields: str = "") -> AsyncIterator[WatchEvent]:
        self.asked.append(fields)
        events = self.watches.pop(0)
        if isinstance(events, Expired):
            raise events
        for kind, obj in events:
            yield WatchEvent(kind, obj)  # type: ignore[arg-type]


async def states(client: Recorded, count: int) -> list[bool]:
    """Whether the object was there, as often as that."""
    found: list[bool] = []
    async for obj in until(client, CONFIG_MAPS, Key("here", "thing")):  # type: ignore[arg-type]
        found.append(obj is not None)
        if len(found) == count:
            break
    return found


async def test_an_object_that_goes_before_the_list_is_told_as_gone() -> None:
    """It was there for a GET, gone for the list, and no watch ever names it: whoever waits for its end would wait for ever."""
    client = Recorded([[]], [])
    assert await states(client, 1) == [False]
    assert set(client.asked) == {"metadata.name=thing"}


async def test_an_object_that_goes_while_the_history_is_lost_is_told_as_gone() -> None:
    """A list after 410 says it as well."""
    gone = Expired(410, "Expired", "too old")
    assert await states(Recorded([[THING], []], [gone]), 2) == [True, False]


async def test_what_a_watch_says_is_told_in_order() -> None:
    """Made, changed, deleted."""
    events = [("ADDED", THING), ("MODIFIED", THING), ("DELETED", THING)]
    assert await states(Recorded([[]], [events]), 4) == [False, True, True, False]


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("run", "--resync", "0s"), "--resync"), (("run", "--resync=-5m"), "--resync"),
        (("wait", "Keystone", "x", "--timeout=-5s"), "--timeout"), (("wait", "Keystone", "x", "--timeout", "0"), "--timeout"),
    ],
)  # fmt: skip
def test_a_span_of_nothing_is_refused(moorage: Run, words: tuple[str, ...], option: str) -> None:
    """Before anything is started or asked."""
    done = moorage(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {option}: ")
    assert "is not longer than zero" in done.stderr
