"""Whole lists: every page, rows once, exact names; a list that moves is walked anew."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fakes.pocketid import Fake

from moorage.pocketid import rest_requests, rest_rows
from moorage.pocketid.rest import Nonsense, PocketID
from moorage.pocketid.rest_errors import TooLarge
from moorage.pocketid.rest_pages import Paged, every, pattern
from moorage.pocketid.rest_reading import group_name_of
from moorage.pocketid.rest_requests import Answer
from moorage.pocketid.weights import SIZES, Weights


@pytest.mark.case("PIDX5")
async def test_more_than_a_hundred_clients_are_read_whole(fake: Fake, pocketid: PocketID) -> None:
    for number in range(250):
        await pocketid.create_oidc_client({"id": f"c{number}", "name": f"n{number % 7}"})
    listed = await pocketid.list_oidc_clients()
    assert {item.id for item in listed} == {f"c{number}" for number in range(250)}
    assert pocketid.calls["list_oidc_clients"] == 3


@pytest.mark.case("PIDX6", "PIDX7")
async def test_names_are_found_exactly_whatever_the_servers_search_takes_for_them(pocketid: PocketID) -> None:
    for name in ("Café", "café", "100% real", "100x real", "a_b", "axb", "a\\b", "a\\\\b", "plain"):
        await pocketid.create_user_group(name, "Shown")
    for wanted, found in (
        ("Cafe\u0301", "Café"), ("100% real", "100% real"), ("a_b", "a_b"), ("a\\b", "a\\b"), ("plain", "plain"),
    ):  # fmt: skip
        group = await pocketid.find_user_group_named(wanted)
        assert group is not None
        assert group.name == found
    assert await pocketid.find_user_group_named("Plain") is None


async def test_an_empty_list_is_one_request(pocketid: PocketID) -> None:
    assert await pocketid.list_oidc_clients() == ()
    assert pocketid.calls["list_oidc_clients"] == 1


@given(st.text(max_size=40))
def test_a_pattern_differs_from_the_name_in_backslashes_only(name: str) -> None:
    assert len(pattern(name)) == len(name)
    assert all(a == b or (a, b) == ("\\", "_") for a, b in zip(name, pattern(name), strict=True))


class Moving:
    """A server whose rows change between requests: `moves[n]` happens before the n-th request."""

    def __init__(self, rows: list[str], moves: dict[int, tuple[str, int]]) -> None:
        self.rows, self.moves, self.asked = rows, moves, 0
        self.scale = Weights().of("moving")

    async def answer(self, call: Any) -> Answer:
        kind, where = self.moves.get(self.asked, ("", 0))
        if kind == "add":
            self.rows.insert(where % (len(self.rows) + 1), f"new{self.asked}")
        elif kind == "drop" and self.rows:
            del self.rows[where % len(self.rows)]
        self.asked += 1
        wanted = dict(call.params)
        number, limit = int(wanted["pagination[page]"]), int(wanted["pagination[limit]"])
        pages = max(1, -(-len(self.rows) // limit))
        number = min(number, pages)
        part = self.rows[(number - 1) * limit : number * limit]
        counts = {"totalPages": pages, "totalItems": len(self.rows), "currentPage": number}
        return Answer(200, {}, {"data": [{"id": row, "name": row} for row in part], "pagination": counts})


PAGE = SIZES[0]
_MOVES = st.dictionaries(
    st.integers(0, 12), st.tuples(st.sampled_from(["add", "drop"]), st.integers(0, 400)), max_size=4
)


@given(st.integers(0, 3 * PAGE + 5), _MOVES)
async def test_a_list_is_what_it_was_at_some_moment_or_an_error(count: int, moves: dict[int, tuple[str, int]]) -> None:
    """Adding and dropping one row between two requests keeps the total; only then may a row slip through, never come twice."""
    server = Moving([f"r{number}" for number in range(count)], moves)
    untouched = {f"r{number}" for number in range(count)}
    try:
        rows = await every(server, Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]
    except Nonsense:
        assert moves
        return
    ids = [row.id for row in rows]
    assert len(set(ids)) == len(ids)
    if not moves:
        assert set(ids) == untouched
        assert server.asked == max(1, -(-count // PAGE))


class Endless:
    """A server that always has one more page, each of this many bytes."""

    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.scale = Weights().of("endless")

    async def answer(self, call: Any) -> Answer:
        number = int(dict(call.params)["pagination[page]"])
        pagination = {"totalPages": number + 1, "totalItems": 0, "currentPage": number}
        return Answer(200, {}, {"data": [], "pagination": pagination}, self.weight)


@given(
    st.sampled_from(
        [None, [], {}, {"data": []}, {"data": [], "pagination": {}}, {"data": 1, "pagination": {"totalItems": 0}}]
    )
)
async def test_an_answer_that_is_no_list_is_nonsense(answer: Any) -> None:
    class Odd:
        scale = Weights().of("odd")

        async def answer(self, _call: Any) -> Answer:
            return Answer(200, {}, answer)

    with pytest.raises(Nonsense):
        await every(Odd(), Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]


class Heavy(Moving):
    """A server whose page of more rows than `most` is too large to be read."""

    def __init__(self, rows: list[str], most: int) -> None:
        super().__init__(rows, {})
        self.most = most
        self.scale.whole.limit = 1 << 40

    async def answer(self, call: Any) -> Answer:
        answer, most = await super().answer(call), self.most
        if (rows := len(answer.body["data"])) > most:
            raise TooLarge("GET /rows", "the answer is larger than it may be")
        return Answer(200, {}, answer.body, rows * (8 << 20) // most if most else 0)


@pytest.mark.parametrize(("most", "refused", "pages"), [(100, 0, 3), (60, 1, 10), (8, 2, 50), (1, 3, 250)])
async def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones_and_that_is_remembered(
    most: int, refused: int, pages: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight clients with the longest lists of URLs fill a page; then the next read costs one request a page, of fewer rows."""
    for name in ("WEIGHT_LIMIT", "WALKED_LIMIT"):
        monkeypatch.setattr(rest_rows, name, 1 << 40)
    server = Heavy([f"r{number}" for number in range(250)], most)
    for wasted in (refused, 0):
        server.asked = 0
        rows = await every(server, Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]
        assert {row.id for row in rows} == set(server.rows)
        assert server.asked == pages + wasted


class Weighed(Moving):
    """A server whose rows weigh so many bytes each, where a page may weigh 8 MiB."""

    def __init__(self, rows: list[str], weight: int) -> None:
        super().__init__(rows, {})
        self.weight = weight

    async def answer(self, call: Any) -> Answer:
        answer = await super().answer(call)
        weight = self.weight * len(answer.body["data"])
        if weight > 8 << 20:
            raise TooLarge("GET /rows", "the answer is larger than it may be")
        return Answer(200, {}, answer.body, weight)

    async def read(self) -> int:
        """How many requests a read of all rows takes."""
        self.asked = 0
        rows = await every(self, Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]
        assert {row.id for row in rows} == set(self.rows)
        return self.asked


async def test_pages_grow_again_once_their_rows_are_light() -> None:
    """Heavy clients that were deleted again must not make every later read twenty times as long."""
    server = Weighed([f"r{number}" for number in range(60)], 1 << 20)
    assert [await server.read() for _ in range(2)] == [14, 12]
    server.rows, server.weight = [f"r{number}" for number in range(200)], 1 << 16
    assert [await server.read() for _ in range(4)] == [40, 8, 2, 2]


async def test_pages_of_rows_that_would_not_fit_stay_small() -> None:
    """No request is wasted on a larger page that is refused."""
    server = Weighed([f"r{number}" for number in range(50)], 1 << 18)
    assert [await server.read() for _ in range(3)] == [3, 2, 2]


async def test_a_search_says_nothing_of_the_pages_of_the_whole_list() -> None:
    server = Weighed([f"r{number}" for number in range(50)], 1 << 18)
    await server.read()
    server.rows, rows = ["r1"], server.rows
    await every(server, Paged("find", "/rows", "name", "r1"), group_name_of)  # type: ignore[arg-type]
    server.rows = rows
    assert await server.read() == 2


async def test_a_row_that_is_too_large_by_itself_is_told() -> None:
    with pytest.raises(TooLarge):
        await every(Heavy(["r"], 0), Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]


async def test_a_list_without_end_ends() -> None:
    with pytest.raises(Nonsense, match="does not end"):
        await every(Endless(0), Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]


async def test_a_list_that_would_fill_the_memory_of_the_operator_ends() -> None:
    """Anybody may declare an instance with a server of his own; its pages are bounded, and so are all of them together."""
    with pytest.raises(Nonsense, match="more than 64 MiB of memory"):
        await every(Endless(8 << 20), Paged("list", "/rows", "name"), group_name_of)  # type: ignore[arg-type]


async def test_a_small_answer_that_would_fill_the_memory_is_not_decoded(
    fake: Fake, pocketid: PocketID, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One page of empty lists takes twenty times its bytes; nothing of it may be made before that is known."""
    await pocketid.create_oidc_client({"id": "app", "name": "app", "callbackURLs": ["x:/"] * 20_000})
    monkeypatch.setattr(rest_requests, "WEIGHT_LIMIT", 1 << 20)
    decoded: list[int] = []
    monkeypatch.setattr(rest_requests, "_decoded", lambda body: decoded.append(len(body)))
    with pytest.raises(Nonsense, match="the answer would take more than 1 MiB of memory"):
        await pocketid.list_oidc_clients()
    assert decoded == []
