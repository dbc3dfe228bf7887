"""What is done next about the secrets: passes against a small server that can be crashed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import chain, repeat

import pytest

from moorage.core.secret import SecretText
from moorage.pocketid.oidcclient.rotation import Deferral, Deferred, Rotate
from moorage.pocketid.oidcclient.secret_snapshot import Mode, Secrets, mode_of, stores
from moorage.pocketid.oidcclient.secret_steps import ignored_request, step, summary, trigger
from moorage.pocketid.oidcclient.secrets import Delete, Impossible, Made, Retired, Trigger
from moorage.pocketid.oidcclient.types import KIND

from .secret_model import NOW, Crashed, World, row, run

OWN = Secrets(Mode.OWN, (), NOW)
KEPT = Secrets(Mode.KEPT, (), NOW)
DAY = timedelta(days=1)


def declared(value: str, **more: bool) -> Secrets:
    return replace(Secrets(Mode.DECLARED, (), NOW), declared=SecretText(value), **more)


def living(value: str = "aaaa-stored-value") -> World:
    world = World(stored=value)
    world.put(value)
    return world


# --- the operator's own secret


@pytest.mark.case("PIDS19", "B68")
def test_a_new_secret_is_stored_before_the_old_one_is_deleted() -> None:
    world = living()
    world.asked = True
    assert run(world, OWN) is None
    assert world.trace == ["mint manual", "store", "delete superseded", "annotation removed"]
    assert [world.values[item.id] for item in world.rows] == [world.stored]


@pytest.mark.case("PIDR16")
def test_a_new_client_gets_its_first_secret_at_once_whatever_the_gates_say() -> None:
    world = World()
    closed = Deferred(Deferral.WINDOW_MISSED, NOW + DAY, "closed")
    run(world, replace(OWN, rotation=closed))
    assert world.trace == ["mint initial", "store"]


@pytest.mark.case("P1")
def test_a_second_pass_writes_nothing() -> None:
    world = World()
    run(world, OWN)
    world.trace.clear()
    run(world, OWN)
    assert world.trace == []


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({}, Trigger.INITIAL),
        ({"stored": SecretText("aaaa-stored-value"), "asked": True, "rotation": Rotate()}, Trigger.MANUAL),
        ({"stored": SecretText("aaaa-stored-value"), "rotation": Rotate()}, Trigger.SCHEDULED),
        ({"stored": SecretText("zzzz-other-value")}, Trigger.DRIFT),
        ({"stored": SecretText("aaaa-stored-value")}, None),
    ],
)
def test_the_first_reason_that_holds_names_the_rotation(more: dict[str, object], why: Trigger | None) -> None:
    assert trigger(replace(OWN, held=(row("a", "aaaa"),), **more)) == why  # type: ignore[arg-type]


@pytest.mark.case("PIDS16")
@pytest.mark.parametrize("held", [(), ("foreign-value-xxx",)])
def test_a_stored_value_that_is_gone_is_made_anew(held: tuple[str, ...]) -> None:
    world = World(stored="aaaa-stored-value")
    for value in held:
        world.put(value)
    run(world, OWN)
    assert world.trace[:2] == ["mint drift", "store"]
    assert [world.values[item.id] for item in world.rows] == [world.stored]


@pytest.mark.case("PIDS2", "PIDS17")
def test_a_pair_that_cannot_be_told_apart_is_left_until_the_next_rotation_clears_it() -> None:
    world = living()
    world.put("aaaa-by-hand-value")
    world.put("zzzz-by-hand-value")
    run(world, OWN)
    assert world.trace == []
    world.asked = True
    run(world, OWN)
    assert [world.values[item.id] for item in world.rows] == [world.stored]


@pytest.mark.case("PIDS6")
def test_a_collision_is_discarded_and_tried_again() -> None:
    world = living()
    world.asked = True
    world.next_values = iter(["aaaa-collides-too", "bbbb-new-value-xx"])
    run(world, OWN)
    assert world.trace[:4] == ["mint manual", "discard", "mint manual", "store"]
    assert world.stored == "bbbb-new-value-xx"


@pytest.mark.case("PIDS7")
def test_three_collisions_are_an_error_and_leave_nothing_behind() -> None:
    world = living()
    before = list(world.rows)
    world.asked = True
    world.next_values = chain(repeat("aaaa-collides-too"))
    found = run(world, OWN)
    assert isinstance(found, Impossible)
    assert world.rows == before
    assert world.stored == "aaaa-stored-value"


@pytest.mark.case("PIDS12")
def test_a_delete_that_failed_is_planned_again() -> None:
    world = living()
    world.put("bbbb-old-value-xx", age=300)
    world.put("cccc-old-value-xx", age=200)
    with pytest.raises(Crashed):
        run(world, OWN, crash_after=1)
    assert [item.id for item in world.rows] == ["s0", "s2"]
    run(world, OWN)
    assert [item.id for item in world.rows] == ["s0"]


@pytest.mark.case("PIDS10")
def test_during_the_overlap_both_work_and_later_only_the_new_one() -> None:
    world, base = living(), replace(OWN, overlap=DAY)
    world.asked = True
    run(world, base)
    assert world.authenticates("aaaa-stored-value")
    world.now += DAY - timedelta(seconds=1)
    run(world, base)
    assert world.authenticates("aaaa-stored-value")
    world.now += timedelta(seconds=1)
    run(world, base)
    assert [world.values[item.id] for item in world.rows] == [world.stored]


@pytest.mark.case("PIDX20")
def test_a_value_that_could_not_be_stored_is_stored_later_and_not_made_again() -> None:
    world = World()
    made = Made(world.make("bbbb-carried-over"), Trigger.INITIAL)
    run(world, replace(OWN, made=made))
    assert world.trace == ["store"]
    world.rows.clear()
    world.stored = None
    run(world, replace(OWN, made=made))
    assert world.trace[1:] == ["mint initial", "store"]


@pytest.mark.case("PIDX16")
def test_the_secret_that_a_newer_server_makes_with_the_client_is_the_first() -> None:
    world = World()
    run(world, replace(OWN, made=Made(world.make("bbbb-created-secret"), Trigger.INITIAL)))
    assert (world.trace, world.stored) == (["store"], "bbbb-created-secret")


@pytest.mark.case("PIDX17")
def test_public_clients_have_no_secret_and_leave_the_server_alone() -> None:
    for mode in (Mode.NONE, Mode.OFF):
        world = living()
        world.asked = True
        base = Secrets(mode, (), NOW)
        run(world, base)
        assert world.trace == ["annotation removed"]
        assert replace(base, stored=SecretText("aaaa-stored-value")).presented is None


# --- a secret that others manage


@pytest.mark.case("PIDS18")
def test_without_storing_nothing_is_made_repaired_or_deleted() -> None:
    world = living()
    world.rows.clear()
    world.put("zzzz-by-hand-value")
    world.asked = True
    run(world, replace(KEPT, rotation=Rotate()))
    assert world.trace == ["annotation removed"]


def test_a_client_of_ours_gets_its_first_secret_even_without_storing_later_ones() -> None:
    world = World(pending=True)
    world.put("aaaa-made-and-lost")
    run(world, KEPT)
    assert world.trace == ["mint initial", "store", "delete superseded", "status: nothing pending"]
    world.put("zzzz-by-hand-value")
    world.trace.clear()
    run(world, KEPT)
    assert world.trace == []


@pytest.mark.case("PIDX18")
def test_storing_switched_off_and_on_again_keeps_the_value() -> None:
    world = living()
    assert replace(KEPT, stored=SecretText("aaaa-stored-value")).presented == SecretText("aaaa-stored-value")
    for base in (KEPT, OWN):
        run(world, base)
    assert world.trace == []


# --- a declared secret


@pytest.mark.case("PIDD1", "PIDD6")
def test_a_new_revision_is_pushed_stored_and_recorded_last() -> None:
    world = living()
    world.recorded = False
    run(world, declared("bbbb-declared-value"))
    assert world.trace == ["push", "store", "delete superseded", "status: version"]
    assert [world.values[item.id] for item in world.rows] == ["bbbb-declared-value"]


@pytest.mark.case("PIDD2", "PIDD3")
def test_a_declared_value_is_pushed_again_only_when_the_server_lost_it() -> None:
    world = living("bbbb-declared-value")
    run(world, declared("bbbb-declared-value"))
    assert world.trace == []
    world.rows.clear()
    run(world, declared("bbbb-declared-value"))
    assert world.trace == ["push", "status: version"]


@pytest.mark.case("PIDD7", "PIDD8")
def test_a_declared_value_that_is_not_stored_is_pushed_and_replaces_all_the_same() -> None:
    world = World(recorded=False)
    world.put("aaaa-declared-before")
    base = declared("bbbb-declared-value", stores=False)
    run(world, base)
    assert world.trace == ["push", "delete superseded", "status: version"]
    assert base.presented is None


def test_of_the_same_value_pushed_twice_the_one_that_is_known_by_its_id_is_left() -> None:
    world = living("bbbb-declared-value")
    world.put("zzzz-by-hand-value")
    world.recorded = False
    run(world, declared("bbbb-declared-value"))
    assert [world.values[item.id] for item in world.rows] == ["bbbb-declared-value"]
    world.trace.clear()
    run(world, declared("bbbb-declared-value"))
    assert world.trace == []


def test_a_pair_that_begins_alike_and_of_which_no_id_is_known_is_pushed_once_more_and_cleared_up() -> None:
    """As an operator of before left it: a replaced declared value, and its successor."""
    world = World()
    world.put("prod-value-of-before")
    world.put("prod-value-of-today")
    run(world, declared("prod-value-of-today", stores=False))
    assert [world.values[item.id] for item in world.rows] == ["prod-value-of-today"]


@pytest.mark.parametrize(
    "base",
    [
        Secrets(Mode.DECLARED, (), NOW),
        Secrets(Mode.KEPT, (), NOW),
        Secrets(Mode.OFF, (), NOW),
    ],
    ids=["fault", "kept", "off"],
)
def test_an_overlap_that_began_ends_whoever_manages_the_secret_by_now(base: Secrets) -> None:
    """What is younger than the one that we know is of others; what could be the stored value stays."""
    world = World()
    world.put("aaaa-replaced-one", age=120)
    world.put("bbbb-stored-value", age=110)
    world.mark = world.put("cccc-known-by-id", age=60)
    world.put("dddd-of-a-person", age=10)
    world.stored = "bbbb-stored-value"
    run(world, replace(base, overlap=timedelta(hours=2)))
    assert world.trace == []
    world.now += timedelta(hours=2)
    run(world, replace(base, overlap=timedelta(hours=2)))
    assert [world.values[item.id][:4] for item in world.rows] == ["bbbb", "cccc", "dddd"]


def test_a_declared_value_that_begins_like_the_one_before_still_retires_it() -> None:
    """Values that people choose often begin alike; what was just pushed is known by its id."""
    world = living("prod-value-of-before")
    world.recorded = False
    run(world, declared("prod-value-of-today"))
    assert [world.values[item.id] for item in world.rows] == ["prod-value-of-today"]


@pytest.mark.case("PIDS15")
def test_a_declared_push_at_the_cap_makes_room() -> None:
    world = living()
    for number in range(19):
        world.put(f"x{number:03d}-old-value", age=100 + number)
    world.recorded = False
    run(world, declared("bbbb-declared-value"))
    assert world.trace[:3] == ["delete cap", "push", "store"]


def test_a_declared_value_with_a_fault_changes_nothing_and_keeps_what_is_stored() -> None:
    world = living()
    world.put("zzzz-by-hand-value")
    base = Secrets(Mode.DECLARED, (), NOW)
    run(world, base)
    assert world.trace == []
    assert replace(base, stored=SecretText("aaaa-stored-value")).presented == SecretText("aaaa-stored-value")


def test_a_server_that_stores_another_value_than_was_sent_is_an_error() -> None:
    world = World()
    made = Made(world.make("cccc-something-else"), Trigger.DECLARED)
    base = replace(declared("bbbb-declared-value"), held=tuple(world.rows), made=made)
    assert isinstance(step(base), Impossible)


@pytest.mark.case("PIDD10")
def test_a_declaration_that_is_taken_away_leaves_the_value() -> None:
    world = living("bbbb-declared-value")
    run(world, OWN)
    assert (world.trace, world.stored) == ([], "bbbb-declared-value")


# --- who owns it, and what people see


@pytest.mark.case("PIDD9")
@pytest.mark.parametrize(
    ("spec", "mode", "keeps"),
    [
        ({}, Mode.OWN, True),
        ({"isPublic": True}, Mode.NONE, False),
        ({"clientID": "https://app.example/client.json"}, Mode.NONE, False),
        ({"secret": {"enabled": False}}, Mode.OFF, False),
        ({"secret": {"storeClientSecret": False}}, Mode.KEPT, False),
        ({"clientSecretRef": {"name": "s", "key": "k"}}, Mode.DECLARED, True),
        ({"clientSecretRef": {"name": "s", "key": "k"}, "secret": {"enabled": False}}, Mode.DECLARED, False),
    ],
)
def test_who_owns_the_secret(spec: dict[str, object], mode: Mode, keeps: bool) -> None:
    client = KIND.parse({"metadata": {"name": "app", "namespace": "n"}, "spec": spec})
    assert (mode_of(client), stores(client)) == (mode, keeps)
    assert (ignored_request(mode) is None) == (mode is Mode.OWN)


def test_the_summary_tells_times_and_no_character() -> None:
    held = (row("old", "wxyz", 120), row("mine", "aaaa", 60))
    base = replace(OWN, held=held, stored=SecretText("aaaa-stored-value"), overlap=DAY)
    older, newer = summary(base)
    assert (older.retires, older.current, newer.retires, newer.current) == ("2026-03-02T11:00:00Z", False, None, True)
    assert "aaaa" not in repr(summary(base))


def test_the_cap_gives_way_to_a_rotation() -> None:
    held = tuple(row(f"x{n}", f"x{n:03d}", 100 + n) for n in range(19))
    mine = row("mine", "aaaa")
    base = replace(
        OWN, held=(*held, mine), stored=SecretText("aaaa-stored-value"), asked=True, overlap=timedelta(days=1)
    )
    assert step(base) == Delete(("x18",), Retired.CAP)
