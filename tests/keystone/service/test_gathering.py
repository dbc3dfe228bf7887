"""Backends that become ready a moment apart roll the pods once; nobody waits for long, and nobody who is alone waits at all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.keystone.service import given
from tests.keystone.service.machine import Machine, machine, served

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.gathering import CLOSING, GATHER, LOOK, YOUNG, pause
from moorage.keystone.service.seen import DEPLOYMENT


@pytest.fixture
async def m(tmp_path: Path) -> AsyncIterator[Machine]:
    async with served(tmp_path) as client, machine(client, "gather") as found:
        found.later = EARLIER
        await found.drive()
        yield found


EARLIER = -timedelta(hours=1)
"""The operator's clock: however slow the machine is, what the server makes now is young, and what becomes ready does so this very moment."""
AHEAD = timedelta(minutes=5)


def ready(now: datetime, *, status: str = "True") -> JsonObject:
    """DomainReady, since just now."""
    since = f"{now:%Y-%m-%dT%H:%M:%SZ}"
    condition = {"type": "DomainReady", "status": status, "reason": "x", "message": "", "lastTransitionTime": since}
    return {"conditions": [{**condition, "observedGeneration": 1}]}


async def apply(m: Machine, name: str, *, is_ready: bool) -> None:
    status = ready(datetime.now(UTC) + m.later + AHEAD) if is_ready else {"conditions": []}
    await m.put(BACKEND.resource, {**given.backend({"name": name}), "status": status})


async def becomes_ready(m: Machine, name: str) -> None:
    status = ready(datetime.now(UTC) + m.later + AHEAD)
    await m.client.patch(BACKEND.resource, Key(m.namespace, name), {"status": status}, subresource="status")


async def rolls(m: Machine) -> int:
    """How often the pods were given a new template since the Keystone was made."""
    found = await m.client.get(DEPLOYMENT, m.key)
    return int(found["metadata"]["generation"]) - 1


async def test_two_backends_that_become_ready_a_second_apart_roll_the_pods_once(m: Machine) -> None:
    """The first one waits for the second, which came with it."""
    await apply(m, "a", is_ready=True)
    await apply(m, "b", is_ready=False)
    await m.drive()
    assert await rolls(m) == 0
    await becomes_ready(m, "b")
    await m.drive()
    assert await rolls(m) == 1
    assert (await m.conditions())["IdentityBackendsReady"] == ("True", "AllBackendsProjected")


async def test_a_lone_backend_waits_for_nobody(m: Machine) -> None:
    """Projected in the very pass that sees it ready."""
    await apply(m, "a", is_ready=True)
    await m.drive()
    assert await rolls(m) == 1


async def test_who_is_ready_waits_two_seconds_at_most(m: Machine) -> None:
    """The second one never comes: the first is served without it, and later the second rolls the pods once more."""
    await apply(m, "a", is_ready=True)
    await apply(m, "b", is_ready=False)
    await m.drive()
    assert await rolls(m) == 0
    m.later = EARLIER + 2 * AHEAD
    await m.drive()
    assert await rolls(m) == 1
    await becomes_ready(m, "b")
    await m.drive()
    assert await rolls(m) == 2


NOW = given.time(given.NOW)


def at(seconds: float) -> str:
    return f"{NOW - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


def one(name: str, *, age: float = 1.0, since: float | None = None, projected: bool = False) -> JsonObject:
    """A backend of this age, whose domain is ready for so long, or not ready."""
    made = given.backend({"name": name, "conditions": ["ConfigProjected"] if projected else []})
    made["metadata"]["creationTimestamp"] = at(age)
    (domain, *others) = made["status"]["conditions"]
    domain |= {"status": "True", "lastTransitionTime": at(since)} if since is not None else {"status": "False"}
    return {**made, "status": {"conditions": [domain, *others]}}


@pytest.mark.parametrize(
    ("backends", "wanted"),
    [
        ([one("a", since=0), one("b")], LOOK),
        ([one("a", since=1), one("b")], LOOK),
        ([one("a", since=GATHER), one("b")], 0.0),
        ([one("a", since=0), one("b", age=YOUNG)], 0.0),
        ([one("a", since=0)], 0.0),
        ([one("a", since=0), one("b", since=0)], 0.0),
        ([one("b")], 0.0),
        ([one("a", since=500, projected=True), one("b")], 0.0),
        ([one("a", since=500), one("c", since=0), one("b")], 0.0),
        ([one("a", since=500, projected=True), one("c", since=0), one("b")], LOOK),
    ],
)
def test_it_waits_for_young_ones_only_and_only_for_a_moment(backends: list[JsonObject], wanted: float) -> None:
    """Neither an edit of who is projected, nor who waits already, is held up."""
    case: dict[str, Any] = {"backends": backends, "world": "settled", "before": {"backends": []}}
    case["keystone"] = {"metadata": {"name": "keystone"}, "spec": BASE}
    assert pause(given.snapshot(case)) == wanted


BASE = {
    "image": {"repository": "moorage/keystone", "tag": "30.0.0"},
    "database": {"embedded": {}},
    "bootstrap": {"adminPasswordSecretRef": {"name": "keystone-admin"}},
}


def test_a_keystone_that_is_being_made_waits_for_no_backend() -> None:
    """Without a Deployment there is nothing to roll."""
    case = {"keystone": {"metadata": {"name": "keystone"}, "spec": BASE}, "backends": [one("a", since=0), one("b")]}
    assert pause(given.snapshot(case)) == 0.0


def leaver(*, type_: str = "OIDC", since: float = 0, closed: bool = False) -> JsonObject:
    """A backend that is being deleted for so long, projected, and not closed yet."""
    reached = ["ConfigProjected", *([] if closed else ["FederationObjectsReady"])]
    made = given.backend({"name": "a", "type": type_, "deleting": True, "conditions": reached})
    made["metadata"]["deletionTimestamp"] = at(since)
    return made


@pytest.mark.case("S1")
@pytest.mark.parametrize(
    ("backend", "wanted"),
    [
        (leaver(), LOOK),
        (leaver(type_="SAML", since=CLOSING - 1), LOOK),
        (leaver(closed=True), 0.0),
        (leaver(since=CLOSING), 0.0),
        (leaver(type_="LDAP", closed=True), 0.0),
    ],
)
def test_the_pods_wait_a_moment_until_one_that_leaves_is_closed(backend: JsonObject, wanted: float) -> None:
    """For a few seconds only: a Keystone that cannot be asked holds nobody in the pods."""
    case: dict[str, Any] = {"backends": [backend], "world": "settled", "before": {"backends": [backend]}}
    case["keystone"] = {"metadata": {"name": "keystone"}, "spec": BASE}
    assert pause(given.snapshot(case)) == wanted
