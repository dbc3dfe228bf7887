"""What people and machines read: metrics of a client, no secret anywhere but in the credentials Secret, the instance's own word."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client import REGISTRY, generate_latest
from tests.crashpoints import passes

from moorage.core.meta import Key
from moorage.core.outcome import Done, Waiting
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.render import ROTATED_AT
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.pocketid.reach import lists_of

from .scene import INSTANCE_KEY, KEY, NAMESPACE, SECRET, Scene

PREFIX = "pocketid_operator_"


def number(name: str, **labels: str) -> float | None:
    """A sample of the process's registry."""
    return REGISTRY.get_sample_value(PREFIX + name, {"namespace": NAMESPACE, "name": KEY.name, **labels})


@pytest.mark.case("PIDR14", "PIDR15")
async def test_rotations_are_counted_and_the_numbers_go_with_the_client(here: Scene) -> None:
    rotation = {"enabled": True, "interval": "1h", "window": {"opens": "0 0 1 1 *", "closesAfter": "5m"}}
    await here.make(clientSecretRotation=rotation)
    await here.settle()
    before = number("oidcclient_secret_rotations_total", result="success", trigger="initial")
    assert before is not None
    assert before >= 1
    then = (datetime.now(UTC) - timedelta(hours=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await here.client.patch(SECRETS, Key(NAMESPACE, SECRET), {"metadata": {"annotations": {ROTATED_AT: then}}})
    await here.once()
    assert number("oidcclient_rotation_deferred_total", reason="window_closed") == 1
    assert number("oidcclient_rotation_enabled") == 1
    assert number("oidcclient_rotation_interval_seconds") == 3600
    assert number("oidcclient_secrets") == 1
    assert number("resource_ready", kind=KIND.kind) == 1
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    ours = f'name="{KEY.name}",namespace="{KEY.namespace}"'
    assert [line for line in generate_latest(REGISTRY).decode().splitlines() if ours in line] == []


@pytest.mark.case("P2")
async def test_no_secret_is_told_anywhere(here: Scene, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the resource, nor in events, metrics, logs or annotations; not even its first characters."""
    first, second = await here.renewed()
    said = json.dumps(await here.stored()) + repr(here.told) + caplog.text + generate_latest(REGISTRY).decode()
    said += json.dumps(await here.annotations())
    for value in (first, second, here.fake.api_key):
        assert value not in said
    assert f'"{second[:4]}"' not in said


# --- the instance


async def test_an_attached_server_is_ready_with_its_version(here: Scene) -> None:
    found = await here.client.get(INSTANCE.resource, INSTANCE_KEY)
    assert found["status"]["version"] == here.fake.version
    assert found["status"]["url"] == here.url
    assert isinstance(await here.attach(), Done)


@pytest.mark.parametrize("version", ["2.13.0", "3.0.0"])
async def test_a_server_of_an_unknown_version_is_told_on_its_instance_alone(here: Scene, version: str) -> None:
    here.fake.upgrade(version)
    await here.attach()
    found = await here.client.get(INSTANCE.resource, INSTANCE_KEY)
    assert [item["reason"] for item in found["status"]["conditions"]] == ["UnsupportedVersion"]
    await here.make()
    await here.settle()
    assert (await here.ready())[0] == "False/InstanceNotReady"
    assert here.writes() == []


@pytest.mark.case("PIDX13")
async def test_a_refused_key_and_a_dead_server_are_told_apart(here: Scene) -> None:
    """The one needs a person and is looked at again within a minute, the other within seconds."""
    await here.secret("pocketid-key", token="wrong")
    outcome = await here.attach()
    assert isinstance(outcome, Waiting)
    assert outcome.reason == "APIClientError"
    here.fake.faults.add("drop_before", times=-1)
    outcome = await here.attach()
    assert isinstance(outcome, Waiting)
    assert outcome.reason == "Unreachable"
    assert outcome.after is not None
    assert outcome.after <= 5


async def test_without_its_key_the_instance_names_the_secret(here: Scene) -> None:
    await here.client.delete(SECRETS, Key(NAMESPACE, "pocketid-key"))
    here.later(seconds=30)
    outcome = await here.attach()
    assert isinstance(outcome, Waiting)
    assert "apps/pocketid-key" in outcome.message
    await here.make()
    await here.settle()
    assert (await here.ready())[0] == "False/InstanceNotReady"


async def test_a_selector_that_matches_nothing_lists_what_there_is(here: Scene) -> None:
    await here.make(instanceSelector={"matchLabels": {"at": "nowhere"}})
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/InstanceSelectionError"
    assert "apps/pocketid (no labels)" in message


async def test_lists_that_would_fill_the_memory_are_told_and_the_client_stays_as_it_is(here: Scene) -> None:
    """The bound holds for all servers of the process together; once there is room all goes on by itself."""
    await here.make()
    await here.settle()
    async with here.world() as world:
        weights = lists_of(world, here.url).scale.whole
        weights.limit, before = 1000, weights.limit
        here.fake.journal.clear()
        await passes(ROOM, world, KEY)
        status, message = await here.ready()
        assert (status, "would take more than" in message) == ("False/GetError", True)
        assert here.writes() == []
        weights.limit = before
        here.later(minutes=1)
        await passes(ROOM, world, KEY)
        assert (await here.ready())[0] == "True/Reconciled"
