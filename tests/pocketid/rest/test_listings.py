"""The list of a server that all passes share: what it finds by name follows every answer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from moorage.pocketid.listings import Listing
from moorage.pocketid.rest_errors import Forbidden, Unreachable

US = "digest of our key"
NOW = datetime(2026, 11, 30, tzinfo=UTC)


@dataclass(frozen=True)
class Item:
    id: str
    name: str


ONE, TWO, OTHER = Item("1", "shop"), Item("2", "shop"), Item("3", "wiki")


async def kept(*items: Item) -> Listing[Item]:
    """A list with these items."""
    listing: Listing[Item] = Listing(lambda item: item.name)
    await fetched(listing, NOW, *items)
    return listing


async def fetched(listing: Listing[Item], now: datetime, *items: Item) -> None:
    """The list as the server has it then."""

    async def fetch() -> tuple[Item, ...]:
        return items

    await listing.get(US, fetch, now, 1.0)


async def test_items_are_found_by_their_name() -> None:
    """All of one name, and nothing under a name that nobody has."""
    listing = await kept(ONE, TWO, OTHER)

    assert listing.named("shop") == (ONE, TWO)
    assert listing.named("blog") == ()


async def test_a_noted_item_is_found_by_its_new_name_alone() -> None:
    """It went from one name to another."""
    listing = await kept(ONE, TWO)
    listing.note(moved := Item("1", "wiki"))

    assert listing.named("shop") == (TWO,)
    assert (moved,) == listing.named("wiki")


async def test_a_forgotten_item_is_found_no_more() -> None:
    """Neither by its id nor by its name; one that was not there is nothing to forget."""
    listing = await kept(ONE, TWO)
    listing.forget("1")
    listing.forget("7")

    assert listing.named("shop") == (TWO,)


async def test_a_fresh_list_takes_the_place_of_all_names() -> None:
    """What the server does not tell any more is found under no name."""
    listing = await kept(ONE, TWO)
    await fetched(listing, NOW + timedelta(seconds=2), OTHER)

    assert listing.named("shop") == ()
    assert listing.named("wiki") == (OTHER,)


async def test_what_is_noted_while_the_list_is_fetched_counts_more() -> None:
    """The page was written before: the answer to a write is younger."""
    listing: Listing[Item] = Listing(lambda item: item.name)

    async def fetch() -> tuple[Item, ...]:
        listing.note(Item("1", "wiki"))
        listing.forget("2")
        return ONE, TWO

    assert {"1": Item("1", "wiki")} == await listing.get(US, fetch, NOW, 1.0)
    assert listing.named("shop") == ()


async def test_a_list_that_was_let_go_has_no_names() -> None:
    """Nothing is kept for it in memory."""
    listing = await kept(ONE)
    listing.let_go()

    assert listing.named("shop") == ()


async def test_a_failed_fetch_leaves_what_was_known() -> None:
    """The error reaches who asked; names are those of before."""
    listing = await kept(ONE)

    async def fetch() -> tuple[Item, ...]:
        raise Unreachable("GET /api/oidc/clients", "gone")

    with pytest.raises(Unreachable):
        await listing.get(US, fetch, NOW + timedelta(seconds=2), 1.0)
    assert listing.named("shop") == (ONE,)


async def test_nobody_reads_a_list_by_the_right_of_another() -> None:
    """Whose key the server refuses sees nothing of what another key fetched a moment ago."""
    listing = await kept(ONE)

    async def refused() -> tuple[Item, ...]:
        raise Forbidden("GET /api/oidc/clients", "forbidden")

    with pytest.raises(Forbidden):
        await listing.get("digest of a stranger's key", refused, NOW, 60.0)


async def test_nobody_fails_by_the_key_of_another() -> None:
    """A refused key answers for those that have it; others ask by theirs."""
    listing: Listing[Item] = Listing()

    async def refused() -> tuple[Item, ...]:
        raise Forbidden("GET /api/oidc/clients", "forbidden")

    with pytest.raises(Forbidden):
        await listing.get("digest of a stranger's key", refused, NOW, 60.0)
    await fetched(listing, NOW, ONE)
