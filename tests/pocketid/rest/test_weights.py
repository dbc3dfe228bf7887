"""What lists of all servers take in memory: whoever declares many servers, or large ones, shuts out nobody but himself."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from moorage.pocketid.listings import Listing
from moorage.pocketid.rest import Nonsense
from moorage.pocketid.rest_pages import Paged, every
from moorage.pocketid.rest_reading import group_name_of
from moorage.pocketid.rest_requests import Answer
from moorage.pocketid.rest_types import GroupName
from moorage.pocketid.weights import Scale, Weights

MIB = 1 << 20


def used(limit: int) -> Weights:
    """Weights of servers whose users `scale` tells."""
    users: dict[str, set[str]] = {}
    return Weights(limit * MIB, lambda: users)


def scale(weights: Weights, url: str, *spaces: str) -> Scale:
    """The lists of a server that has Ready instances in these namespaces."""
    users = weights.users()
    assert isinstance(users, dict)
    users[url] = set(spaces)
    return weights.of(url)


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
    weights = used(100)
    keeps(scale(weights, "main", "identity"), 40)
    for number in range(4):
        keeps(scale(weights, f"own{number}", "team"), 19)
    assert weights_of(weights) == {"main": 40, "own0": 0, "own1": 19, "own2": 19, "own3": 19}


def test_a_list_that_is_too_much_is_refused_while_it_is_read() -> None:
    weights = used(100)
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
    weights = used(100)
    main = scale(weights, "main", "identity")
    for _ in range(3):
        keeps(main, 60)
    assert weights_of(weights) == {"main": 60}


def test_an_instance_at_the_server_of_others_has_no_say_in_their_lists() -> None:
    """A namespace that names the main server, too, and has one of its own: its own goes."""
    weights = used(100)
    keeps(scale(weights, "main", "identity", "team"), 60)
    keeps(scale(weights, "own", "team"), 45)
    assert weights_of(weights) == {"main": 60, "own": 0}


def test_two_namespaces_with_the_same_servers_are_worth_what_each_takes() -> None:
    """One of them has a key of the main server, too: it is still theirs that goes, since nobody else uses it."""
    weights = used(192)
    keeps(scale(weights, "main", "identity", "t1"), 22)
    for number in range(12):
        keeps(scale(weights, f"own{number}", "t1", "t2"), 20)
    assert weights_of(weights)["main"] == 22
    keeps(weights.of("main"), 22)
    assert weights_of(weights)["main"] == 22


def test_what_nobody_uses_any_more_goes_first_whatever_it_weighs() -> None:
    """The address of the main server was changed: its former lists make room."""
    weights = used(192)
    for url in ("old", "gone1", "gone2"):
        keeps(scale(weights, url), 60)
    new = scale(weights, "new", "identity")
    for _ in range(3):
        keeps(new, 49)
    assert weights_of(weights) == {"old": 0, "gone1": 60, "gone2": 60, "new": 49}


def test_a_server_that_is_forgotten_weighs_nothing_and_is_read_no_further() -> None:
    weights = used(100)
    old = scale(weights, "old", "identity")
    old.weigh("/clients", 30 * MIB)
    weights.forget("old")
    assert weights_of(weights) == {}
    for path in ("/clients", "/groups"):
        with pytest.raises(Nonsense, match="no PocketIDInstance names this address any more"):
            old.weigh(path, 40 * MIB)
        old.ends(path, kept=False)
    assert weights_of(weights) == {}


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
        return await every(self, Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]


async def test_walks_at_the_same_time_are_bounded_together_and_what_is_kept_is_let_go() -> None:
    """The one of the heaviest namespace ends with its next page; the other is read whole, and kept."""
    weights = used(90)
    main, evil = Slow(scale(weights, "main", "identity"), 20, 2), Slow(scale(weights, "evil", "team"), 18, 4)
    kept: Listing[GroupName] = Listing()
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
