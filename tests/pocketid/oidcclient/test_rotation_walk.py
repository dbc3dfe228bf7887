"""Scheduled rotation through the walk, on the operator's clock: every gate at its edge, days on which clocks change, the instance's memory.

The maths is the pure tests' (`test_rotation.py`); here a rotation is a login that fails and another that works.
"""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import REGISTRY
from tests.crashpoints import passes

from moorage.core.meta import Key
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.render import ROTATED_AT, SCHEDULED_AT
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.runtime.walk import Walk

from .scene import INSTANCE_KEY, KEY, NAMESPACE, SECRET, Scene
from .test_secret_walk import ready_client, rejected

HOURLY = {"enabled": True, "interval": "1h"}
NIGHTLY = {"enabled": True, "window": {"opens": "0 3 * * *", "closesAfter": "2h"}}
BOTH = {"enabled": True, "interval": "2h", "window": {"opens": "0 3 * * *", "closesAfter": "2h"}}


def minted(here: Scene) -> int:
    """How many secrets the only client ever had."""
    return len(here.fake.told[here.server().id])


def deferred(reason: str) -> float:
    """The counter of deferrals of the client."""
    labels = {"namespace": NAMESPACE, "name": KEY.name, "reason": reason}
    return REGISTRY.get_sample_value("pocketid_operator_oidcclient_rotation_deferred_total", labels) or 0.0


async def annotated(here: Scene, **notes: str | None) -> None:
    """Annotations of the credentials Secret, by a person's hand."""
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"annotations": notes}})


async def instance_time(here: Scene) -> str | None:
    """When the instance last saw a scheduled rotation."""
    found = await here.client.get(INSTANCE.resource, INSTANCE_KEY)
    return (found.get("status") or {}).get("lastRotatedClientSecret")


async def neighbours(here: Scene, *names: str) -> tuple[str, ...]:
    """Clients that rotate each hour, half an hour apart from each other; it is noon, and they are new."""
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"OIDCClientRotation": {"minSpacing": "30m"}}})
    here.travel("2027-01-01T12:00:00")
    for name in names:
        await here.make(name, clientSecretRotation=HOURLY)
        await here.settle(Key(NAMESPACE, name))
    return names


async def rotates(here: Scene, to: str) -> bool:
    """Go to a moment; whether the pass there makes a new secret, with which one logs in."""
    before = minted(here)
    here.travel(to)
    await here.settle()
    await here.proven()
    return minted(here) > before


@pytest.mark.case("PIDR1")
async def test_an_interval_is_over_to_the_second(here: Scene) -> None:
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation=HOURLY)
    await annotated(here, **{ROTATED_AT: "2027-01-01T12:00:00Z"})
    assert not await rotates(here, "2027-01-01T12:59:00")
    assert await rotates(here, "2027-01-01T13:00:00")


@pytest.mark.case("PIDR2", "PIDR13")
@pytest.mark.parametrize("anchor", [None, "soon", "2027-13-01T00:00:00Z"])
async def test_without_a_readable_time_the_interval_counts_from_the_creation(here: Scene, anchor: str | None) -> None:
    await ready_client(here, clientSecretRotation=HOURLY)
    await annotated(here, **{ROTATED_AT: anchor})
    here.later(minutes=58)
    await here.settle()
    assert minted(here) == 1
    here.later(minutes=3)
    await here.settle()
    assert minted(here) == 2
    await here.proven()


@pytest.mark.case("PIDR3", "PIDR8", "PIDR14")
async def test_an_interval_that_is_over_waits_for_its_window(here: Scene) -> None:
    """Closed one second before the opening, open at it, closed at its end; each look while it waits is counted."""
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation=BOTH)
    before = deferred("window_closed")
    assert not await rotates(here, "2027-01-02T02:59:59")
    assert deferred("window_closed") > before
    assert "RotationDeferred" in [event.reason for event in here.told]
    assert (await here.ready())[0] == "True/Reconciled"
    assert await rotates(here, "2027-01-02T03:00:01")
    await annotated(here, **{ROTATED_AT: "2027-01-02T01:00:00Z"})
    assert not await rotates(here, "2027-01-02T05:00:00")
    await annotated(here, **{ROTATED_AT: "2027-01-02T01:00:00Z"})
    assert await rotates(here, "2027-01-03T04:59:50")


@pytest.mark.case("PIDR6")
async def test_a_window_alone_rotates_once_per_opening(here: Scene) -> None:
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation=NIGHTLY)
    assert not await rotates(here, "2027-01-02T02:59:00")
    assert await rotates(here, "2027-01-02T03:10:00")
    assert not await rotates(here, "2027-01-02T03:40:00")
    assert not await rotates(here, "2027-01-02T04:59:00")
    assert await rotates(here, "2027-01-03T03:00:01")


@pytest.mark.case("PIDR6", "PIDR10")
async def test_a_manual_rotation_in_the_opening_counts_for_it(here: Scene) -> None:
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation=NIGHTLY)
    assert await rotates(here, "2027-01-02T03:10:00")
    await here.annotate(regenerate_client_secret="true")
    assert await rotates(here, "2027-01-02T03:20:00")
    assert not await rotates(here, "2027-01-02T03:30:00")


@pytest.mark.case("PIDR7", "PIDR14")
async def test_an_opening_that_was_missed_is_made_up_for_in_the_next(here: Scene) -> None:
    """The operator was down all night: told as missed, and done when the window opens again."""
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation=NIGHTLY)
    before = deferred("window_missed")
    assert not await rotates(here, "2027-01-02T09:00:00")
    assert deferred("window_missed") > before
    assert await rotates(here, "2027-01-03T03:30:00")


@pytest.mark.case("PIDR16")
@pytest.mark.parametrize("rotation", [HOURLY, NIGHTLY, BOTH], ids=["interval", "window", "both"])
async def test_a_new_client_waits_for_no_window(here: Scene, rotation: dict[str, Any]) -> None:
    here.travel("2027-01-01T12:00:00")
    await here.make(clientSecretRotation=rotation)
    await here.once()
    assert (await here.ready())[0] == "True/Reconciled"
    await here.proven()
    assert SCHEDULED_AT not in await here.annotations()


@pytest.mark.case("PIDR9", "PIDR10", "PIDR12")
async def test_the_spacing_of_the_instance_holds_back_scheduled_rotations_alone(here: Scene) -> None:
    """One that a person asks for happens at once, moves the client's anchor, and not the instance's time."""
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"OIDCClientRotation": {"minSpacing": "4h"}}})
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation=HOURLY)
    assert await rotates(here, "2027-01-01T13:00:10")
    known = await instance_time(here)
    assert known == (await here.annotations())[SCHEDULED_AT]
    before = deferred("min_spacing")
    assert not await rotates(here, "2027-01-01T14:30:00")
    assert deferred("min_spacing") > before
    await here.annotate(regenerate_client_secret="true")
    assert await rotates(here, "2027-01-01T16:30:00")
    assert await instance_time(here) == known
    assert not await rotates(here, "2027-01-01T17:20:00")
    assert await rotates(here, "2027-01-01T17:30:10")
    assert await instance_time(here) == (await here.annotations())[SCHEDULED_AT] != known


@pytest.mark.case("PIDR9", "PIDR13")
@pytest.mark.parametrize(
    "time", ["2099-12-31T23:59:59Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-10:00", "0001-01-01T00:00:00Z"]
)
@pytest.mark.parametrize("name", ["last-scheduled-rotation-at", "last-rotated-at"])
async def test_a_time_that_cannot_be_on_a_secret_of_one_stops_no_rotation(here: Scene, time: str, name: str) -> None:
    """Whoever may annotate his own Secret holds up neither his own client nor another one, and what he brought about heals."""
    names = await neighbours(here, "tenant", "neighbour")
    before = await here.proven("neighbour-oidc-credentials")
    marked = {"metadata": {"annotations": {f"pocketid.internal/{name}": time}}}
    await here.client.patch(SECRETS, Key(NAMESPACE, "tenant-oidc-credentials"), marked)
    status = {"status": {"lastRotatedClientSecret": "2099-12-31T23:59:59Z"}}
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, status, subresource="status")
    for clock in ("2027-01-01T12:10:00", "2027-01-01T13:10:00", "2027-01-01T13:45:00"):
        here.travel(clock)
        for client in names:
            await here.settle(Key(NAMESPACE, client))
            assert (await here.ready(client))[0] == "True/Reconciled"
    assert await here.proven("neighbour-oidc-credentials") != before
    assert (await instance_time(here) or "").startswith("2027-01-01T13:")


@pytest.mark.case("PIDR9")
async def test_clients_of_one_instance_take_turns(here: Scene) -> None:
    """Two are due at once: the second follows when the spacing has passed."""
    names = await neighbours(here, "one", "two")
    counts = []
    for minute in (1, 2, 32):
        here.travel(f"2027-01-01T13:{minute:02}:00")
        for name in names:
            await here.settle(Key(NAMESPACE, name))
        counts.append(sorted(len(values) for values in here.fake.told.values()))
    assert counts == [[1, 2], [1, 2], [2, 2]]


@pytest.mark.case("PIDR11", "PIDR12")
async def test_the_time_of_the_instance_is_restored_and_never_goes_back(here: Scene) -> None:
    here.travel("2027-01-01T12:00:00")
    await ready_client(here, clientSecretRotation={"enabled": True, "interval": "48h"})
    for written, known in (
        ("2027-01-01T11:00:00Z", "2027-01-01T11:00:00Z"),
        ("2027-01-01T09:00:00Z", "2027-01-01T11:00:00Z"),
        ("2027-01-01T11:30:00Z", "2027-01-01T11:30:00Z"),
    ):
        await annotated(here, **{SCHEDULED_AT: written})
        await here.settle()
        assert await instance_time(here) == known


@pytest.mark.case("PIDR4", "PIDR5", "PIDR14")
@pytest.mark.parametrize("window", [
    {"opens": "0 * * * *", "closesAfter": "1h"}, {"opens": "61 3 * * *", "closesAfter": "1h"},
    {"opens": "CRON_TZ=Europe/Nowhere 0 3 * * *", "closesAfter": "1h"},
], ids=["as long as the gap", "no such minute", "no such zone"])  # fmt: skip
async def test_a_schedule_that_means_nothing_is_told_and_everything_else_is_done(
    here: Scene, window: dict[str, str]
) -> None:
    """A lost secret is repaired, one that is asked for is made; what is scheduled waits for a person."""
    before = deferred("window_error")
    old = await ready_client(here, clientSecretRotation={"enabled": True, "window": window})
    assert (await here.ready())[0] == "False/SecretReconcileError"
    assert deferred("window_error") > before
    here.server().secrets.clear()
    await here.settle()
    second = await here.proven()
    assert second != old
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    assert await here.proven() != second


@pytest.mark.case("PIDR15")
async def test_a_client_that_rotates_no_more_has_no_numbers_of_rotation(here: Scene) -> None:
    labels = {"namespace": NAMESPACE, "name": KEY.name}
    name = "pocketid_operator_oidcclient_rotation_interval_seconds"
    await ready_client(here, clientSecretRotation=HOURLY)
    assert REGISTRY.get_sample_value(name, labels) == 3600
    await here.edit(clientSecretRotation={"enabled": False})
    await here.settle()
    assert REGISTRY.get_sample_value(name, labels) is None
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert REGISTRY.get_sample_value("pocketid_operator_oidcclient_rotation_enabled", labels) is None


@pytest.mark.case("PIDX9")
@pytest.mark.parametrize(("night", "opens"), [
    ("2027-03-28", "30 2 * * *"), ("2027-03-28", "0 3 * * *"), ("2027-10-31", "30 2 * * *"), ("2027-10-31", "0 3 * * *"),
], ids=["skipped hour", "hour after it", "hour that comes twice", "hour after that"])  # fmt: skip
async def test_on_days_on_which_clocks_change_there_is_at_most_one_rotation(
    here: Scene, monkeypatch: pytest.MonkeyPatch, night: str, opens: str
) -> None:
    """A pass each half hour from the noon before to the noon after; the night after that there is exactly one again."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    here.travel(f"{night}T00:00:00")
    here.later(hours=-12)
    await ready_client(here, clientSecretRotation={"enabled": True, "window": {"opens": opens, "closesAfter": "1h"}})
    async with here.world() as world:
        walk = Walk(ROOM, world)
        for least in (0, 1):
            before = minted(here)
            for _ in range(48):
                here.later(minutes=30)
                await walk(KEY)
            assert least <= minted(here) - before <= 1
            await here.proven()


@pytest.mark.case("PIDX10", "PIDS10")
@pytest.mark.parametrize("ahead", [300.0, -300.0], ids=["server ahead", "server behind"])
async def test_with_clocks_five_minutes_apart_the_overlap_is_kept_whole_and_ends(here: Scene, ahead: float) -> None:
    """The window is counted by the server's clock, whose times it compares."""
    here.fake.clock.offset += ahead
    old = await ready_client(here, clientSecretRotation=HOURLY, clientSecretOverlap="10m")
    here.later(hours=1)
    await here.settle()
    assert await here.proven() != old
    here.later(minutes=9)
    await here.settle()
    assert not await rejected(here, old)
    here.later(minutes=2)
    await here.settle()
    assert await rejected(here, old)
    await here.proven()


@pytest.mark.case("PIDS10")
async def test_an_overlap_begins_with_the_replacement_however_old_the_secret_was(here: Scene) -> None:
    """Asked for, declared, scheduled: the old one works for the whole overlap each time."""
    old = await ready_client(here, clientSecretOverlap="1h")
    here.later(days=30)
    await here.annotate(regenerate_client_secret="true")
    await here.settle()
    second = await here.proven()
    assert not await rejected(here, old)
    here.later(minutes=61)
    await here.settle()
    assert await rejected(here, old)
    await here.secret("source", value="a-declared-secret-0123456789")
    await here.edit(clientSecretRef={"name": "source", "key": "value"})
    await here.settle()
    assert not await rejected(here, second)
    here.later(minutes=61)
    await here.settle()
    assert await rejected(here, second)


@pytest.mark.case("PIDR9", "PIDS13")
async def test_an_overlap_as_long_as_the_interval_never_piles_up(here: Scene) -> None:
    """Fifty rotations: two secrets at the most, the older of which still works."""
    await ready_client(here, clientSecretRotation=HOURLY, clientSecretOverlap="1h")
    before = await here.proven()
    async with here.world() as world:
        for _ in range(50):
            here.later(minutes=60, seconds=5)
            await passes(ROOM, world, KEY)
            assert len(here.server().secrets) <= 2
            assert not await rejected(here, before)
            before = await here.proven()
