"""Declared secrets through the walk: whichever begins alike, wherever it is stored or not, what was replaced ends and the declared one works."""

from __future__ import annotations

from typing import Any

import pytest
from tests.crashpoints import passes

from moorage.core.meta import Key
from moorage.kube.errors import Forbidden
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.runtime.world import World

from .scene import KEY, NAMESPACE, SECRET, Scene, fresh

REF = {"name": "source", "key": "value"}
OLD, NEW, NEXT = (f"prod-secret-value-000{number}" for number in (4, 5, 6))
"""As people write them: all begin alike."""
MODES: dict[str, dict[str, Any]] = {
    "stored": {},
    "not-stored": {"secret": {"storeClientSecret": False}},
    "off": {"secret": {"enabled": False}},
}
EVERYWHERE = pytest.mark.parametrize("spec", MODES.values(), ids=MODES.keys())


async def declares(here: Scene, value: str) -> None:
    """The declared Secret holds this value, and the client is settled."""
    await here.secret("source", value=value)
    await here.settle()


async def replaced(here: Scene, by: str = NEW, *, overlap: str | None = "1h", old: str = OLD, **spec: Any) -> None:
    """A client whose declared secret was this one and is that one now, within the overlap; it is settled before and after."""
    await here.secret("source", value=old)
    await here.make(clientSecretRef=REF, **({"clientSecretOverlap": overlap} if overlap else {}), **spec)
    await here.settle()
    await declares(here, by)


async def touch(here: Scene, note: str) -> None:
    """What programs that copy Secrets do: the same value under a new revision."""
    await here.client.patch(SECRETS, Key(NAMESPACE, "source"), {"metadata": {"annotations": {"touched": note}}})
    await here.settle()


async def work(here: Scene, *values: str) -> list[bool]:
    """Which of them authenticate."""
    return [await here.login(here.server().id, value) == 200 for value in values]


@EVERYWHERE
async def test_a_replaced_declared_secret_ends_at_once(here: Scene, spec: dict[str, Any]) -> None:
    await replaced(here, overlap=None, **spec)
    assert await work(here, OLD, NEW) == [False, True]
    assert [item.get("current") for item in (await here.status())["secrets"]] == [True]
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


@EVERYWHERE
async def test_a_replaced_declared_secret_ends_with_the_overlap(here: Scene, spec: dict[str, Any]) -> None:
    await replaced(here, **spec)
    assert await work(here, OLD, NEW) == [True, True]
    assert [item.get("current", False) for item in (await here.status())["secrets"]] == [False, True]
    here.later(hours=2)
    await here.settle()
    assert await work(here, OLD, NEW) == [False, True]


@EVERYWHERE
async def test_touches_of_the_declared_secret_lengthen_no_overlap_and_pile_up_nothing(
    here: Scene, spec: dict[str, Any]
) -> None:
    """Each is pushed, as the seed says; what it replaced ends with its own overlap."""
    await replaced(here, **spec)
    for note in "abc":
        here.later(minutes=25)
        await touch(here, note)
    assert await work(here, OLD, NEW) == [False, True]
    here.later(hours=2)
    await here.settle()
    assert await work(here, NEW) == [True]
    assert len(here.server().secrets) == 1


@EVERYWHERE
@pytest.mark.parametrize("old", ["olds" + OLD, OLD], ids=["other", "alike"])
@pytest.mark.case("PIDS13", "PIDD2")
async def test_touches_cut_no_overlap_short_however_many_they_are(here: Scene, spec: dict[str, Any], old: str) -> None:
    """Each by a process that just started: it knows nothing of what was pushed but what is stored. What people still use outlives them."""
    await replaced(here, overlap="24h", old=old, **spec)
    for number in range(23):
        here.later(hours=1)
        await touch(here, str(number))
        assert await work(here, old, NEW) == [True, True]
        assert len(here.server().secrets) <= (20 if spec else 3)
    here.later(hours=2)
    await here.settle()
    assert await work(here, old, NEW) == [False, True]
    here.later(hours=24)
    await here.settle()
    assert len(here.server().secrets) == 1


@EVERYWHERE
async def test_a_process_that_pushed_a_value_itself_leaves_none_of_it_beside_the_new_one(
    here: Scene, spec: dict[str, Any]
) -> None:
    """Wherever it is stored. The first one stays: the overlap of what it replaced began with it."""
    await here.secret("source", value=OLD)
    await here.make(clientSecretRef=REF, clientSecretOverlap="24h", **spec)
    async with here.world() as world:
        await passes(ROOM, world, KEY)
        for number in range(4):
            await here.secret("source", value=NEW)
            note = {"metadata": {"annotations": {"touched": str(number)}}}
            await here.client.patch(SECRETS, Key(NAMESPACE, "source"), note)
            await fresh(here, world)
            await passes(ROOM, world, KEY)
            assert len(here.server().secrets) == min(number + 2, 3)
        first = here.server().secrets[1].id
    assert (await here.status())["clientSecret"]["first"] == first
    assert await work(here, OLD, NEW) == [True, True]
    here.later(hours=25)
    await here.settle()
    assert await work(here, OLD, NEW) == [False, True]
    assert len(here.server().secrets) == 1


async def test_a_crash_between_secret_and_status_makes_no_twin_of_what_was_replaced(here: Scene) -> None:
    """The Secret holds the new value, the status still tells of the old one, and both begin alike: the overlap is kept."""
    await here.secret("source", value=OLD)
    await here.make(clientSecretRef=REF, clientSecretOverlap="24h")
    await here.settle()
    before = await here.status()
    await declares(here, NEW)
    marks = {name: before[name] for name in ("clientSecret", "clientSecretSourceVersion")}
    await here.client.patch(KIND.resource, KEY, {"status": marks}, subresource="status")
    await here.settle()
    assert await work(here, OLD, NEW) == [True, True]


@pytest.mark.case("PIDX1")
async def test_a_stored_value_that_was_cut_is_replaced_although_what_it_replaced_begins_alike(here: Scene) -> None:
    """Of a declared value that is long enough for a digest; the twin that lives with its overlap keeps nothing alive, itself included."""
    old, new = (f"prod-secret-value-which-is-quite-long-{number}" for number in ("0001", "0002"))
    await replaced(here, new, old=old)
    await here.edit(clientSecretRef=None)
    await here.settle()
    await here.secret(SECRET, client_secret=new[:20])
    await here.settle()
    assert await here.proven() not in (old, new, new[:20])
    here.later(hours=2)
    await here.settle()
    await here.proven()
    assert await work(here, old, new) == [False, False]


@EVERYWHERE
async def test_a_faulty_value_lengthens_no_overlap(here: Scene, spec: dict[str, Any]) -> None:
    """What was replaced before ends; the value that was pushed last goes on working until there is another."""
    await replaced(here, "other-" + NEW, **spec)
    await declares(here, "short")
    assert await work(here, OLD, "other-" + NEW) == [True, True]
    here.later(hours=2)
    await here.settle()
    assert (await here.ready())[0] == "False/ClientSecretSyncError"
    assert await work(here, OLD, "other-" + NEW) == [False, True]
    await declares(here, NEXT)
    assert await work(here, OLD, NEXT) == [False, True]


@EVERYWHERE
async def test_a_declaration_that_is_taken_away_within_an_overlap_ends_what_it_replaced(
    here: Scene, spec: dict[str, Any]
) -> None:
    """The declared value stays until something else replaces it (seed 004); the one before it does not."""
    await replaced(here, **spec)
    await here.edit(clientSecretRef=None)
    await here.settle()
    assert await work(here, OLD, NEW) == [True, True]
    here.later(hours=2)
    await here.settle()
    assert await work(here, OLD, NEW) == [False, True]
    if not spec:
        await here.annotate(regenerate_client_secret="true")
        await here.settle()
        here.later(hours=2)
        await here.settle()
        assert await work(here, NEW) == [False]


async def test_a_stored_declared_secret_that_is_managed_elsewhere_by_now_ends_what_it_replaced(here: Scene) -> None:
    """It stays in the Secret, and is known by its id there, too."""
    await replaced(here)
    await here.edit(clientSecretRef=None, secret={"storeClientSecret": False})
    await here.settle()
    here.later(hours=2)
    await here.settle()
    assert await here.proven() == NEW
    assert await work(here, OLD, NEW) == [False, True]


@EVERYWHERE
async def test_a_declared_secret_that_the_server_lost_is_pushed_again_whatever_begins_like_it(
    here: Scene, spec: dict[str, Any]
) -> None:
    await here.secret("source", value=OLD)
    await here.make(clientSecretRef=REF, **spec)
    await here.settle()
    here.server().secrets.clear()
    here.fake.place_legacy_secret(here.server().id, NEXT)
    here.server().secrets[-1].prefix = OLD[:4]
    await here.settle()
    assert await work(here, OLD, NEXT) == [True, False]


async def test_what_is_in_the_secret_works_while_it_cannot_be_written(
    here: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A declared value is pushed once, not with every try, and what is stored is not given up for it."""
    await here.make()
    await here.settle()
    before = await here.proven()
    replace = World.replace

    async def forbidden(*_: Any) -> Any:
        raise Forbidden(403, "Forbidden", "exceeded quota")

    monkeypatch.setattr(World, "replace", forbidden)
    await here.secret("source", value=NEW)
    await here.edit(clientSecretRef=REF)
    here.fake.journal.clear()
    for _ in range(3):
        await here.once()
    assert [line.partition(" ")[0] for line in here.writes()] == ["POST"]
    assert await here.proven() == before
    assert "clientSecretSourceVersion" not in await here.status()
    monkeypatch.setattr(World, "replace", replace)
    await here.settle()
    assert await here.proven() == NEW
    assert await work(here, before) == [False]
    assert (await here.status())["clientSecretSourceVersion"].startswith("source/value@")


async def test_a_secret_that_is_managed_elsewhere_by_now_was_replaced_before_and_ends(here: Scene) -> None:
    """`storeClientSecret: false` leaves alone what is there; an overlap that began is no exception for ever."""
    first, second = await here.renewed()
    await here.edit(secret={"storeClientSecret": False})
    here.fake.place_legacy_secret(here.server().id, NEXT)
    here.later(hours=2)
    await here.settle()
    assert await work(here, first, second, NEXT) == [False, True, True]


@pytest.mark.parametrize("marked", ["Secret", "status"])
async def test_a_value_that_was_cut_with_its_mark_is_replaced(here: Scene, marked: str) -> None:
    """The status has the mark, too, where the editor of the Secret does not reach; an older status has none, and the Secret's does."""
    await here.make()
    await here.settle()
    before = await here.proven()
    await here.secret(SECRET, client_secret=before[:20])
    if marked == "status":
        gone = {"metadata": {"annotations": {"pocketid.internal/client-secret-mark": None}}}
        await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), gone)
    else:
        await here.client.patch(KIND.resource, KEY, {"status": {"clientSecret": None}}, subresource="status")
    await here.settle()
    assert await here.proven() not in (before, before[:20])


async def test_a_mark_that_was_taken_off_alone_comes_back(here: Scene) -> None:
    """Programs that keep annotations to themselves rotate nothing."""
    await here.make()
    await here.settle()
    before, marks = await here.proven(), await here.annotations()
    here.fake.journal.clear()
    gone = {"metadata": {"annotations": {"pocketid.internal/client-secret-mark": None}}}
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), gone)
    await here.settle()
    assert here.writes() == []
    assert await here.proven() == before
    assert await here.annotations() == marks


async def test_no_character_of_a_secret_is_in_the_status(here: Scene) -> None:
    """An id, a revision, and a digest of what the server drew; none of a value that a person chose, which may be short."""
    await here.make()
    await here.settle()
    drawn = await here.status()
    assert drawn["clientSecret"]["id"] == here.server().secrets[0].id
    assert (await here.proven())[:4] not in str(drawn)
    await here.secret("source", value=OLD)
    await here.edit(clientSecretRef=REF)
    await here.settle()
    assert sorted((await here.status())["clientSecret"]) == ["id", "source"]
    await here.edit(clientSecretRef=None)
    await here.settle()
    assert sorted((await here.status())["clientSecret"]) == ["id", "source"]
    assert OLD[:4] not in str(await here.status())
