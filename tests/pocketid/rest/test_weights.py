"""What lists of all servers take in memory: whoever declares many servers, or large ones, shuts out nobody but himself."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from moorage.pocketid.listings import Listing as Kept
from moorage.pocketid.rest import Nonsense
from moorage.pocketid.rest_pages import Listing, every
from moorage.pocketid.rest_reading import group_name_of
from moorage.pocketid.rest_requests import Answer
from moorage.pocketid.rest_types import GroupName
from moorage.pocketid.weights import Scale, Weights

MIB = 1 << 20


def scale(weights: Weights, url: str, *spaces: str) -> Scale:
    """The lists of a server whose instances are in these namespaces."""
    found = weights.of(url)
    found.spaces |= set(spaces)
    return found


def keeps(scale: Scale, mib: int, path: str = "/clients") -> None:
    """It reads a list of that weight, and keeps it."""
    with contextlib.suppress(Nonsense):
        scale.weigh(path, mib * MIB)
    scale.ends(path, kept=True)


def weights_of(weights: Weights) -> dict[str, int]:
    """MiB by server."""
    return {url: item.weight // MIB for url, item in weights.servers.items()}


def test_many_servers_of_one_namespace_are_one_load() -> None:
    """The largest single server is that of honest people, and stays."""
    weights = Weights(100 * MIB)
    keeps(scale(weights, "main", "identity"), 40)
    for number in range(4):
        keeps(scale(weights, f"own{number}", "team"), 19)
    assert weights_of(weights) == {"main": 40, "own0": 0, "own1": 19, "own2": 19, "own3": 19}


def test_a_list_that_is_too_much_is_refused_while_it_is_read() -> None:
    weights = Weights(100 * MIB)
    keeps(scale(weights, "main", "identity"), 40)
    evil = scale(weights, "evil", "team")
    for step in range(1, 7):
        evil.weigh("/clients", 10 * step * MIB)
    with pytest.raises(Nonsense, match="the lists of all instances would take more than 100 MiB of memory"):
        evil.weigh("/clients", 70 * MIB)
    evil.ends("/clients", kept=False)
    assert weights_of(weights) == {"main": 40, "evil": 0}
    keeps(evil, 10)
    assert weights_of(weights) == {"main": 40, "evil": 10}


def test_a_list_that_is_read_anew_counts_once() -> None:
    """It takes the place of the former."""
    weights = Weights(100 * MIB)
    main = scale(weights, "main", "identity")
    for _ in range(3):
        keeps(main, 60)
    assert weights_of(weights) == {"main": 60}


def test_an_instance_at_the_server_of_others_has_no_say_in_their_lists() -> None:
    """A namespace that names the main server, too, and has one of its own: its own goes."""
    weights = Weights(100 * MIB)
    keeps(scale(weights, "main", "identity", "team"), 60)
    keeps(scale(weights, "own", "team"), 45)
    assert weights_of(weights) == {"main": 60, "own": 0}


class Slow:
    """A server that gives one page more whenever it is let."""

    def __init__(self, scale: Scale, mib: int, pages: int) -> None:
        self.scale, self.mib, self.pages = scale, mib, pages
        self.turn, self.asked = asyncio.Semaphore(0), 0

    async def answer(self, call: Any) -> Answer:
        self.asked += 1
        await self.turn.acquire()
        number = int(dict(call.params)["pagination[page]"])
        pagination = {"totalPages": self.pages, "totalItems": self.pages, "currentPage": number}
        return Answer(200, {}, {"data": [{"id": f"r{number}", "name": "r"}], "pagination": pagination}, self.mib * MIB)

    async def list(self) -> tuple[GroupName, ...]:
        """All rows."""
        return await every(self, Listing("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]


async def test_walks_at_the_same_time_are_bounded_together_and_what_is_kept_is_let_go() -> None:
    """The one of the heaviest namespace ends with its next page; the other is read whole, and kept."""
    weights = Weights(90 * MIB)
    main, evil = Slow(weights.of("main"), 20, 2), Slow(weights.of("evil"), 18, 4)
    main.scale.spaces.add("identity")
    evil.scale.spaces.add("team")
    kept: Kept[GroupName] = Kept()
    main.scale.let_go = kept.let_go
    walks = {server: asyncio.ensure_future(server.list()) for server in (main, evil)}
    for server in (main, evil, evil, main, evil):
        asked = server.asked
        server.turn.release()
        while server.asked == asked and not walks[server].done():  # noqa: ASYNC110
            await asyncio.sleep(0)
    assert len(await walks[main]) == 2
    with pytest.raises(Nonsense, match="those of this namespace take the most"):
        await walks[evil]
    assert weights_of(weights) == {"main": 40, "evil": 0}
