"""Two instances that stand for one server, or that only say so: what a move between them takes along, and what it leaves."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.pocketid import Fake, serving

from moorage.core.meta import JsonObject, Key
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.types import KIND

from .proof import prove
from .scene import INSTANCE_KEY, NAMESPACE, Scene, scene
from .test_other_instances import namespace, server
from .test_powers import MODES, TENANT, asks, authenticates, looked, said

pytestmark = pytest.mark.case("PIDX14")
MAIN, OTHER = (
    {"instanceSelector": {"matchLabels": {"at": "main"}}},
    {"instanceSelector": {"matchLabels": {"at": "other"}}},
)


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene with a namespace that the instance admits and does not trust."""
    async with scene(tmp_path) as made:
        await namespace(made, TENANT.namespace)
        await made.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"at": "main"}}})
        yield made


async def selects(here: Scene, spec: JsonObject) -> str:
    """What a tenant's client says once it selects another instance."""
    await here.client.patch(KIND.resource, TENANT, {"spec": spec})
    return said(await looked(here))


def told(here: Scene) -> list[str]:
    """Reasons of events."""
    return [event.reason for event in here.told]


@pytest.mark.parametrize("spec", [MODES["drawn"], MODES["declared"]], ids=["drawn", "declared"])
async def test_a_tenants_client_moves_between_two_addresses_of_one_server(apart: Scene, spec: JsonObject) -> None:
    """Both instances are of one namespace: the server drew the id of the secret that tells it, and it is told that nothing was deleted."""
    here, second = apart, Key(NAMESPACE, "second")
    await here.instance("second", here.url.replace("127.0.0.1", "localhost"))
    await here.client.patch(INSTANCE.resource, second, {"metadata": {"labels": {"at": "other"}}})
    await here.attach(second)
    assert said(await asks(here, **MAIN, **spec)) == "True/Reconciled"
    (id,) = here.fake.store.clients
    for to, left in ((OTHER, "apps/pocketid"), (MAIN, "apps/second")):
        here.fake.journal.clear()
        here.told.clear()
        assert await selects(here, to) == "True/Reconciled"
        assert (here.writes(), list(here.fake.store.clients)) == ([], [id])
        assert await authenticates(here)
        (message,) = [event.message for event in here.told if event.reason == "ClientRetained"]
        assert f"client {id} stays at PocketIDInstance {left}" in message
    await prove(here)


@pytest.mark.parametrize("said_issuer", [False, True], ids=["ids of secrets", "its issuer, too"])
@pytest.mark.parametrize("spec", [MODES["drawn"], MODES["declared"]], ids=["drawn", "declared"])
async def test_a_server_of_ones_own_that_copies_all_ids_keeps_nothing_alive(
    apart: Scene, spec: JsonObject, said_issuer: bool
) -> None:
    """What is left does not trust the namespace of that instance: the client goes with its secrets, as in any move."""
    here, own = apart, Fake()
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"appUrl": "https://id.example.org"}})
    async with serving(own) as url:
        await server(here, TENANT.namespace, url, own, at="other")
        if said_issuer:
            issuer: dict[str, Any] = {"spec": {"appUrl": "https://id.example.org"}}
            await here.client.patch(INSTANCE.resource, Key(TENANT.namespace, "own"), issuer)
        await here.attach()
        await here.attach(Key(TENANT.namespace, "own"))
        assert said(await asks(here, **MAIN, **spec)) == "True/Reconciled"
        own.store.clients = copy.deepcopy(here.fake.store.clients)
        assert await selects(here, OTHER) == "True/Reconciled"
        assert here.fake.store.clients == {}
        assert "ClientMoved" in told(here)
        assert "ClientRetained" not in told(here)
