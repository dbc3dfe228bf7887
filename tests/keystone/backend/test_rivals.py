"""Two backends of one claim, admission passed by: the one that comes first is served, the other one is told, and both can be deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.crashpoints import passes

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend import ROOM
from moorage.keystone.backend.precedence import EDITED, NEW, SERVED, standing
from moorage.keystone.backend.types import KIND
from moorage.runtime.room import Event

from .scene import BACKENDS, KEY, NAMESPACE, Scene, conditions, oidc, scene
from .waiting import fresh, settle

SECOND = Key(NAMESPACE, "second")


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


async def look(here: Scene, key: Key = SECOND) -> tuple[JsonObject | None, list[Event]]:
    """A pass of a process that just started over one backend: its object afterwards, and what was told."""
    told: list[Event] = []
    async with here.world() as world:
        await fresh(here, world)
        await passes(ROOM, world, key, told=told)
    return await here.stored(key.name), told


def said(obj: JsonObject | None, type_: str) -> str:
    assert obj is not None
    return next(item["message"] for item in obj["status"]["conditions"] if item["type"] == type_)


@pytest.mark.case("B28")
async def test_a_newcomer_with_the_issuer_of_a_sibling_is_told_whose_it_is(here: Scene) -> None:
    """In its condition, with the way out, and by a Warning; the sibling's objects in Keystone are not touched."""
    await here.oidc()
    await settle(here)
    await here.attach(KEY.name)
    await settle(here)
    here.stub.requests.clear()
    await here.client.create(
        BACKENDS, oidc("second", domain={"name": "other"}, oidc={"identityProviderName": "second"})
    )
    obj, told = await look(here)
    assert conditions(obj)["ConfigProjected"] == "False/WaitingForProjection"
    assert said(obj, "ConfigProjected") == (
        "backend corp-ldap comes first and is served: spec.oidc.issuer is the remote id of backend corp-ldap already (scheme and trailing slash do"
        " not count). Change this backend, or delete one of them"
    )
    assert said(obj, "ConfigProjected") in [event.message for event in told if event.reason == "IdentityBackendSkipped"]
    assert here.stub.federated.providers["acme"]["enabled"] is True
    first, told = await look(here, KEY)
    assert conditions(first)["Ready"] == "True/AllReady"
    assert told == []


@pytest.mark.case("B28", "P6")
async def test_a_directory_that_was_served_in_anothers_place_does_not_hold_its_deletion(here: Scene) -> None:
    """The file of the domain is the sibling's: the newcomer is told, and leaves without waiting for it to go."""
    here.stub.add("corp")
    await here.backend(mode="Adopt")
    await settle(here)
    await here.attach(KEY.name)
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    await here.secret("other-bind", username="cn=other", password="other")
    body = (await here.stored()) or {}
    spec = {**body["spec"], "ldap": {**body["spec"]["ldap"], "bindCredentialsSecretRef": {"name": "other-bind"}}}
    meta = {"name": "second", "namespace": NAMESPACE}
    await here.client.create(BACKENDS, {**{k: body[k] for k in ("apiVersion", "kind")}, "metadata": meta, "spec": spec})
    obj, told = await look(here)
    assert "backend corp-ldap comes first and is served: spec.domain.name" in said(obj, "ConfigProjected")
    assert "IdentityBackendSkipped" in [event.reason for event in told]
    await here.client.delete(BACKENDS, SECOND)
    obj, _ = await look(here)
    assert obj is None
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


@pytest.mark.case("P6")
async def test_who_is_served_waits_for_its_own_file_whoever_else_wants_the_domain(here: Scene) -> None:
    """Its deletion waits until no replica runs the file, also while a newcomer stands in the queue."""
    here.stub.add("corp")
    await here.backend(mode="Adopt")
    await settle(here)
    await here.attach(KEY.name)
    await settle(here)
    await here.backend("second", mode="Adopt")
    await here.client.delete(BACKENDS, KEY)
    obj, _ = await look(here, KEY)
    assert "no longer mounts keystone.corp.conf" in said(obj, "Ready")
    await here.attach()
    obj, _ = await look(here, KEY)
    assert obj is None


@pytest.mark.parametrize(
    ("found", "leaving", "wanted"),
    [
        ([("ConfigProjected", "True", "ConfigProjected", 2)], False, SERVED),
        ([("ConfigProjected", "False", "WaitingForRollout", 2)], False, SERVED),
        ([("ConfigProjected", "True", "ConfigProjected", 1)], False, EDITED),
        ([("ConfigProjected", "False", "WaitingForProjection", 2)], False, NEW),
        ([("ConfigProjected", "False", "WaitingForProjection", 2), ("FederationObjectsReady", "True", "x", 2)], False, EDITED),
        ([], False, NEW),
        ([], True, EDITED),
        ([("ConfigProjected", "True", "ConfigProjected", 2)], True, SERVED),
    ],
)  # fmt: skip
def test_what_a_status_says_of_who_is_served(
    found: list[tuple[str, str, str, int]], leaving: bool, wanted: int
) -> None:
    """As declared now, in an earlier form, or not at all."""
    since = "2026-01-01T00:00:00Z"
    rows = [
        {"type": t, "status": s, "reason": r, "message": "", "lastTransitionTime": since, "observedGeneration": g}
        for t, s, r, g in found
    ]
    meta = {"name": "a", "namespace": "n", "generation": 2, **({"deletionTimestamp": since} if leaving else {})}
    obj = {**oidc("a"), "metadata": meta, "status": {"conditions": rows}}
    assert standing(KIND.parse(obj)) == wanted
