"""The walk of a client on the embedded API server, with the fake as Pocket-ID: made, kept, lost, let go."""

from __future__ import annotations

import asyncio

import pytest
from tests.crashpoints import passes

from moorage.core.meta import Key
from moorage.core.outcome import Done
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .scene import CALLBACK, KEY, NAMESPACE, SECRET, Scene


async def test_a_client_is_made_and_its_stored_secret_authenticates(here: Scene) -> None:
    """Created, minted, stored, read back, Ready: three requests beside the shared list."""
    await here.make()
    assert isinstance(await here.settle(), Done)
    made = here.server()
    assert await here.ready() == ("True/Reconciled", "Pocket-ID has the client as declared")
    stored = await here.credentials()
    assert stored["client_id"] == made.id
    assert stored["token_url"] == f"{here.url}/api/oidc/token"
    assert stored["callback_urls"] == f'["{CALLBACK}"]'
    await here.proven()
    assert here.fake.journal.lines()[:4] == [
        "GET /api/oidc/clients",
        "POST /api/oidc/clients",
        f"POST /api/oidc/clients/{made.id}/secrets",
        f"GET /api/oidc/clients/{made.id}",
    ]
    status = await here.status()
    assert status["clientID"] == made.id
    assert status["instance"] == {"namespace": NAMESPACE, "name": "pocketid", "url": here.url}
    assert [item["current"] for item in status["secrets"]] == [True]
    assert "initialSecretPending" not in status


@pytest.mark.case("PIDS19")
async def test_when_the_old_secret_is_retired_the_new_one_is_stored(here: Scene) -> None:
    """The server is just asked to delete the old one: both work, and the stored one is the new one."""
    await here.make()
    await here.settle()
    old, id = await here.proven(), here.server().id
    gate = here.fake.faults.add("hold", method="DELETE", path="*/secrets/*")
    await here.annotate(regenerate_client_secret="true")
    async with asyncio.TaskGroup() as group:
        group.create_task(here.settle())
        await asyncio.wait_for(gate.reached.wait(), 30)
        assert await here.proven() != old
        assert await here.login(id, old) == 200
        gate.release()
    assert await here.login(id, old) == 401


@pytest.mark.case("PIDC10")
async def test_a_second_pass_writes_nothing_and_asks_once(here: Scene) -> None:
    """One request, for the list that all clients share."""
    await here.make()
    await here.settle()
    here.fake.journal.clear()
    async with here.world() as world:
        before = world.client.writes
        await passes(ROOM, world, KEY)
        assert world.client.writes == before
    assert here.fake.journal.lines() == ["GET /api/oidc/clients"]


async def test_deleting_the_resource_deletes_the_client(here: Scene) -> None:
    """With its secrets; the finalizer goes last, and the Secret follows its owner."""
    await here.make()
    await here.settle()
    owner = (await here.client.get(SECRETS, Key(NAMESPACE, SECRET)))["metadata"]["ownerReferences"]
    assert [item["kind"] for item in owner] == ["PocketIDOIDCClient"]
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert here.fake.store.clients == {}
    assert await here.stored() is None


@pytest.mark.case("PIDF4")
async def test_a_client_that_is_gone_already_holds_nothing_up(here: Scene) -> None:
    await here.make()
    await here.settle()
    here.fake.store.delete_client(here.server().id)
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert await here.stored() is None


async def test_retain_leaves_the_client_in_pocketid(here: Scene) -> None:
    await here.make(deletionPolicy="Retain")
    await here.settle()
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert len(here.fake.store.clients) == 1
    assert await here.stored() is None
    assert here.told[-1].reason == "ClientRetained"
