"""One namespace fills the list that all clients of a server share: its own clients are looked at one by one, and everybody else's as before."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.crashpoints import passes

from moorage.core.meta import Key
from moorage.kube.resources import SECRETS
from moorage.pocketid import rest_rows
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .scene import CALLBACK, INSTANCE_KEY, KEY, Scene, scene
from .test_adoption import there
from .test_other_instances import namespace, place

HEAVY = tuple(Key("crowd", f"heavy{number}") for number in range(4))
URLS = [f"https://heavy.example.org/{index}" for index in range(250)]


@pytest.fixture
async def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    """A client of ours, beside many large ones of another namespace."""
    async with scene(tmp_path) as made:
        await namespace(made, "crowd")
        for key in HEAVY:
            await place(made, key.namespace, KIND, key.name, {"callbackUrls": URLS})
            await made.settle(key)
        await made.make()
        await made.settle()
        monkeypatch.setattr(rest_rows, "WEIGHT_LIMIT", 64 << 10)
        made.fake.journal.clear()
        yield made


async def test_clients_of_others_go_on_with_the_list_alone(crowded: Scene) -> None:
    here = crowded
    async with here.world() as world:
        await passes(ROOM, world, KEY)
    assert [item.path for item in here.fake.journal.entries] == ["/api/oidc/clients"]
    assert (await here.ready())[0] == "True/Reconciled"
    await here.proven()


async def test_a_heavy_client_is_looked_at_by_itself_and_kept_as_declared(crowded: Scene) -> None:
    """A steady pass writes nothing and asks once more; drift is repaired, and a deletion takes it away."""
    here, (key, *_) = crowded, HEAVY
    id = (await here.client.get(KIND.resource, key))["status"]["clientID"]
    await here.settle(key)
    assert here.writes() == []
    assert [item.path for item in here.fake.journal.entries] == ["/api/oidc/clients", f"/api/oidc/clients/{id}"]
    here.server(id).settings["callbackURLs"] = [CALLBACK]
    await here.settle(key)
    assert here.server(id).settings["callbackURLs"] == URLS
    secret = await here.client.get(SECRETS, Key(key.namespace, f"{key.name}-oidc-credentials"))
    assert secret["data"]
    await here.client.delete(KIND.resource, key)
    await here.settle(key)
    assert id not in here.fake.store.clients


async def test_a_heavy_client_that_was_made_by_hand_is_found_by_its_name(crowded: Scene) -> None:
    """The name is among what is kept of it; what nobody declares stays as it is."""
    here = crowded
    there(here, "by-hand", name="by-hand", callbackURLs=URLS)
    await here.make("by-hand", callbackUrls=None)
    await here.settle(Key(KEY.namespace, "by-hand"))
    assert (await here.status("by-hand"))["clientID"] == "by-hand"
    assert here.server("by-hand").settings["callbackURLs"] == URLS


async def test_the_instance_says_how_many_they_are_and_whose_and_no_tenant_is_told(crowded: Scene) -> None:
    here = crowded
    await here.attach()
    (said,) = (await here.client.get(INSTANCE.resource, INSTANCE_KEY))["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("True", "Ready")
    assert "clients are too large for the list that all share and are looked at one by one" in said["message"]
    assert (
        "of them of namespace crowd: a ResourceQuota on count/pocketidoidcclients.pocketid.internal bounds them"
        in said["message"]
    )
    await here.settle()
    assert "crowd" not in str(await here.status())
