"""The backend's controller at a real Keystone 30: what the stub made believable, Keystone itself does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from tests.crashpoints import passes
from tests.real.keystone import PASSWORD, keystone

from moorage.core.outcome import Done
from moorage.core.secret import SecretText
from moorage.keystone.backend import ROOM
from moorage.keystone.identity import Identity, Login, Tokens
from moorage.keystone.identity_access import Grant, Scope
from moorage.keystone.identity_federation import Protocol
from moorage.net.calls import Calls

from .scene import BACKENDS, ISSUER, KEY, Scene, conditions, scene
from .waiting import fresh, settle

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("keystone")]


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[tuple[Scene, Identity]]:
    """A scene whose Keystone is a real one, and an administrator who looks at it from aside."""
    with keystone(tmp_path / "keystone") as real:
        async with scene(tmp_path / "scene") as here, Calls() as http:
            here.stub.port = urlsplit(real.url).port or 0
            tokens = Tokens(lambda: datetime.now(UTC))
            yield here, Identity(http, Login(real.url, "admin", SecretText(PASSWORD)), tokens)


@pytest.mark.case("S1", "S4", "K1", "K2", "K4", "B37")
async def test_a_whole_life_at_a_real_keystone(served: tuple[Scene, Identity]) -> None:
    """Attach, steady, edit, rename, lost projection, deletion with the domain; each step as Keystone then has it."""
    here, seen = served
    made = await here.oidc(domain={"name": "corp", "deletionPolicy": "Delete"})
    domain = made["metadata"]["uid"].replace("-", "")
    await settle(here)
    acme = await seen.federation.provider("acme")
    assert acme is not None
    assert (acme.enabled, acme.domain_id, acme.remote_ids) == (False, domain, (ISSUER,))
    await here.attach(KEY.name)
    assert await settle(here) == Done()
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert await seen.federation.protocols("acme") == (Protocol("openid", "acme-mapping", "HTTP_OIDC_ISS"),)
    group, role = await seen.access.group(domain, "eng"), (await seen.access.roles())["member"]
    assert await seen.access.grants_of(group) == {Grant(group, role, Scope("domain", domain))}
    async with here.world() as world:
        before = world.client.writes
        assert await passes(ROOM, world, KEY) == Done()
        assert world.client.writes == before

    await here.edit(
        groups=[{"name": "eng", "roleAssignments": [{"role": "reader", "domain": True}]}],
        oidc={"identityProviderName": "umbrella", "protocolID": "mapped"},
    )
    await settle(here)
    assert [(await seen.federation.provider(name)).enabled for name in ("acme", "umbrella")] == [True, False]  # type: ignore[union-attr]
    await here.attach(KEY.name)
    assert await settle(here) == Done()
    assert await seen.federation.provider("acme") is None
    assert await seen.federation.mapping("acme-mapping") is None
    umbrella = await seen.federation.provider("umbrella")
    assert umbrella is not None
    assert (umbrella.enabled, umbrella.remote_ids) == (True, (ISSUER,))
    reader = (await seen.access.roles())["reader"]
    assert await seen.access.grants_of(group) == {Grant(group, reader, Scope("domain", domain))}

    await here.project()
    await settle(here)
    closed = await seen.federation.provider("umbrella")
    assert closed is not None
    assert closed.enabled is False

    await here.client.delete(BACKENDS, KEY)
    async with here.world() as world:
        await fresh(here, world)
        await passes(ROOM, world, KEY)
    await here.rolled_out()
    await settle(here)
    assert await here.stored() is None
    assert await seen.federation.providers() == ()
    assert await seen.domain(domain) is None
