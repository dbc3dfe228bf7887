"""The sidecar's image is taken away while people log in: closed, told in words, opened again; and a login of the operator that is refused (F11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from moorage.core.meta import JsonObject
from moorage.keystone.backend import ROOM
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import BACKENDS, KEY, KEYSTONE_KEY, PROXY, Scene, conditions, scene
from .test_federated_walk import attached, message, rolled
from .waiting import fresh, settle


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


async def declare(here: Scene, federation: JsonObject | None) -> None:
    await here.client.patch(KEYSTONE.resource, KEYSTONE_KEY, {"spec": {"federation": federation}})


async def one_pass(here: Scene) -> list[Event]:
    """One pass of a process that just started, failed or not."""
    told: list[Event] = []
    async with here.world() as world:
        await fresh(here, world)
        await Walk(ROOM, world, lambda _ref, event: told.append(event))(KEY)
    return told


@pytest.mark.case("S1")
async def test_without_the_image_the_provider_is_closed_and_the_status_says_what_to_set(here: Scene) -> None:
    """One PATCH; protocol, mapping and users stay; with the image again people log in as before."""
    await attached(here)
    await declare(here, None)
    await here.project()
    await settle(here)
    assert [body for _, _, body in here.stub.writes()] == [{"identity_provider": {"enabled": False}}]
    stored = await here.stored()
    assert conditions(stored)["FederationObjectsReady"] == "False/WaitingForConfigProjection"
    wanted = "spec.federation.proxyImage of Keystone keystone is not set, and there is no sidecar without it"
    assert message(stored, "ConfigProjected") == wanted
    assert message(stored, "Ready") == f"ConfigProjected: WaitingForProjection: {wanted}"
    await declare(here, PROXY)
    await rolled(here)
    assert here.stub.federated.providers["acme"]["enabled"] is True
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


@pytest.mark.case("S1", "P3")
async def test_a_refused_login_of_the_operator_is_named_where_it_keeps_a_provider_open(here: Scene) -> None:
    """The identity provider should be closed and cannot be: status and event say why; with the right password it is closed at once."""
    await attached(here)
    await here.secret("keystone-admin", password="not-the-right-one")
    await declare(here, None)
    await here.project()
    told = await one_pass(here)
    stored = await here.stored()
    assert here.stub.federated.providers["acme"]["enabled"] is True
    assert (
        "the identity provider is still open, because Keystone cannot be asked: login at Keystone: Keystone answered 401"
        in message(stored, "ConfigProjected")
    )
    assert conditions(stored)["Ready"] == "False/NotAllReady"
    assert "login at Keystone: Keystone answered 401" in message(stored, "Ready")
    assert any(event.reason == "IdentityAPIError" and "login at Keystone" in event.message for event in told)
    await here.secret("keystone-admin", password="admin-password")
    await settle(here)
    assert here.stub.federated.providers["acme"]["enabled"] is False


@pytest.mark.case("P3")
async def test_a_refused_login_is_named_by_a_new_backend_and_by_one_on_its_way_out(here: Scene) -> None:
    """DomainReady of the first, Ready of the second; neither holds the password."""
    await here.secret("keystone-admin", password="not-the-right-one")
    await here.oidc()
    await one_pass(here)
    stored = await here.stored()
    assert conditions(stored)["DomainReady"] == "False/IdentityAPIError"
    assert message(stored, "DomainReady").startswith("login at Keystone: Keystone answered 401")
    await here.secret("keystone-admin", password="admin-password")
    await settle(here)
    await rolled(here)
    await here.secret("keystone-admin", password="not-the-right-one")
    await here.client.delete(BACKENDS, KEY)
    await one_pass(here)
    stored = await here.stored()
    assert conditions(stored)["Ready"] == "False/FederationTeardownFailed"
    assert message(stored, "Ready").startswith("login at Keystone: Keystone answered 401")
    assert "not-the-right-one" not in str(stored)
