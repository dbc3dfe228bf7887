"""A list that is too much: the heaviest clients give way to sketches, so that everybody else's are kept."""

from __future__ import annotations

import pytest
from tests.fakes.pocketid import Fake

from moorage.pocketid import rest_rows
from moorage.pocketid.rest import PocketID
from moorage.pocketid.rest_errors import TooMuch
from moorage.pocketid.rest_rows import Rows

KIB = 1 << 10


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A list of 100 KiB at most."""
    monkeypatch.setattr(rest_rows, "WEIGHT_LIMIT", 100 * KIB)
    monkeypatch.setattr(rest_rows, "WALKED_LIMIT", 400 * KIB)


def lighter(row: str) -> str | None:
    """A sketch is written small."""
    return row.lower() if row.isupper() else None


def weigh(row: str) -> int:
    """What a row says of itself: "A9" is 9 KiB; a sketch is 1."""
    return int(row[1:]) * KIB if row.isupper() else KIB


def rows() -> Rows[str]:
    """Those of one walk."""
    return Rows("GET /rows", lighter, weigh)


def test_the_heaviest_rows_give_way_first() -> None:
    """Until there is room for as much again."""
    found = rows()
    found.add(["A40", "B3", "C30"], 73 * KIB)
    found.add(["D30", "E2"], 32 * KIB)
    assert (found.found, found.weight) == (["a40", "B3", "c30", "D30", "E2"], 37 * KIB)


def test_what_is_not_too_much_stays_whole() -> None:
    found = rows()
    found.add(["A90"], 90 * KIB)
    assert found.found == ["A90"]


def test_a_list_of_light_rows_that_is_too_much_is_told() -> None:
    """Nothing of them could be left out."""
    with pytest.raises(TooMuch, match="the list would take more than 0 MiB of memory"):
        rows().add(["A2"] * 51, 102 * KIB)


def test_rows_without_sketches_are_refused_as_they_are() -> None:
    """People who export all want all of it."""
    with pytest.raises(TooMuch):
        Rows[str]("GET /rows").add(["A101"], 101 * KIB)


def test_a_list_of_heavy_rows_ends() -> None:
    """Whoever has a server of his own would have the operator read for ever."""
    found = rows()
    for _ in range(4):
        found.add(["A90"], 90 * KIB)
    with pytest.raises(TooMuch):
        found.add(["A90"], 90 * KIB)


async def test_clients_beside_heavy_ones_are_kept_whole(fake: Fake, pocketid: PocketID) -> None:
    for number in range(9):
        urls = [f"https://app{number}.example.org/{index}" for index in range(200)]
        await pocketid.create_oidc_client({"id": f"heavy{number}", "name": f"heavy{number}", "callbackURLs": urls})
    await pocketid.create_oidc_client({"id": "light", "name": "light", "callbackURLs": ["https://light.example.org"]})
    found = {client.id: client for client in await pocketid.outline_oidc_clients()}
    assert len(found) == 10
    assert found["light"].raw["callbackURLs"] == ["https://light.example.org"]
    sketches = [client for client in found.values() if not client.whole]
    assert len(sketches) > 4
    assert {client.name for client in sketches} < {f"heavy{number}" for number in range(9)}
    with pytest.raises(TooMuch):
        await pocketid.list_oidc_clients()
