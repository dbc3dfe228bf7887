"""APIs that name their namespaces: who is taken out loses what it has, whatever becomes of its own pass."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid.model import Grant

from moorage.core.meta import Key
from moorage.core.outcome import Done
from moorage.core.secret import SecretText
from moorage.kube.resources import NAMESPACES
from moorage.net.calls import Calls
from moorage.pocketid.api.room import ROOM
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.references import LEAVE
from moorage.pocketid.rest import PocketID, Server
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import NAMESPACE, Scene, ready, scene
from .test_api import AUDIENCE, KIND, NAME, READ, only

TENANT = "team"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with settled(tmp_path) as made:
        yield made


@contextlib.asynccontextmanager
async def settled(folder: Path) -> AsyncIterator[Scene]:
    """An API that is Ready and names no namespaces yet; a namespace beside its own."""
    async with scene(folder, ROOM) as made:
        await made.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TENANT}})
        await made.make(KIND, NAME, resource=AUDIENCE, permissions=[READ])
        assert isinstance(await made.settle(NAME), Done)
        yield made


async def granted(here: Scene, id: str, name: str = "") -> None:
    """A client at the server that holds the permission."""
    async with Calls() as http:
        remote = PocketID(http, Server(here.url, SecretText(here.fake.api_key)))
        await remote.create_oidc_client({"id": id, "name": name or id})
    api = only(here)
    here.fake.store.grants[api.id, id] = Grant(client=True, client_permissions={item.id for item in api.permissions})


async def resource(here: Scene, namespace: str, called: str, id: str | None = None, **spec: Any) -> None:
    """A PocketIDOIDCClient; `id`: of the client that its status tells of at the instance."""
    meta = {"name": called, "namespace": namespace}
    body = {"apiVersion": CLIENT.resource.api_version, "kind": CLIENT.kind, "metadata": meta, "spec": spec}
    await here.client.create(CLIENT.resource, body)
    if id is not None:
        bound = {"namespace": NAMESPACE, "name": "main", "url": here.url}
        status = {"status": {"clientID": id, "instance": bound}}
        await here.client.patch(CLIENT.resource, Key(namespace, called), status, subresource="status")


def holders(here: Scene) -> list[str]:
    """Ids of the clients that hold something."""
    return sorted(id for _, id in here.fake.store.grants)


@pytest.mark.parametrize("allowed", [[], ["another"]])
async def test_who_is_taken_out_loses_what_it_has_though_its_own_pass_never_comes(
    here: Scene, allowed: list[str]
) -> None:
    """Deleted with Retain, or turned to no instance: whoever is barred decides whether its own room looks again."""
    await granted(here, "retained")
    await granted(here, "turned-away")
    await granted(here, "own")
    await resource(here, TENANT, "turned", "turned-away", instanceSelector={"matchLabels": {"no": "where"}})
    await resource(here, NAMESPACE, "own", "own")
    told: list[Event] = []
    await here.edit(KIND, NAME, allowedNamespaces=allowed)
    assert isinstance(await here.settle(NAME, told), Done)
    assert holders(here) == ["own"]
    assert [event.reason for event in told] == ["AccessRevoked", "AccessRevoked"]
    assert all(event.type == "Warning" for event in told)
    assert "client 'retained' (id retained)" in told[0].message
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"


async def test_a_second_pass_asks_once_who_holds_something_and_takes_nothing(here: Scene) -> None:
    """Of an API that names its namespaces; of another one nothing is asked."""
    await granted(here, "theirs")
    await resource(here, TENANT, "theirs", "theirs")
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(Key(NAMESPACE, NAME))
        assert await here.second_pass(walk, NAME) == []
    await here.edit(KIND, NAME, allowedNamespaces=[TENANT])
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(Key(NAMESPACE, NAME))
        asked = await here.second_pass(walk, NAME)
        assert [line.split("?")[0] for line in asked] == [f"GET /api/apis/{only(here).id}/clients"]
    assert holders(here) == ["theirs"]


@pytest.mark.parametrize("spec", [{"clientID": "coming"}, {"name": "Coming"}])
async def test_a_client_that_is_just_being_made_keeps_its_grant(here: Scene, spec: dict[str, str]) -> None:
    """Its pass grants before its status tells the id; another one's client of that id is no such client."""
    await granted(here, "coming", "Coming")
    await resource(here, TENANT, "coming", **spec)
    await here.edit(KIND, NAME, allowedNamespaces=[TENANT])
    await here.settle(NAME)
    assert holders(here) == ["coming"]
    await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "barred"}})
    await resource(here, "barred", "first", "coming")
    await here.settle(NAME)
    assert holders(here) == []


async def test_an_instance_that_leaves_everything_leaves_grants(here: Scene) -> None:
    """Who takes Moorage away deletes the clients' resources first, perhaps."""
    await granted(here, "left")
    patch = {"metadata": {"annotations": {LEAVE: "true"}}}
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "main"), patch)
    await here.edit(KIND, NAME, allowedNamespaces=[])
    await here.settle(NAME)
    assert holders(here) == ["left"]


async def test_a_grant_that_cannot_be_taken_back_is_told_and_holds_up_no_other(here: Scene) -> None:
    """The API is not Ready until it is."""
    await granted(here, "aa")
    await granted(here, "bb")
    here.fake.faults.add(
        "status", method="DELETE", path=f"/api/apis/{only(here).id}/clients/aa", status=403, code="", times=-1
    )
    await here.edit(KIND, NAME, allowedNamespaces=[])
    await here.settle(NAME)
    assert holders(here) == ["aa"]
    assert ready(await here.stored(KIND, NAME)) == "False/ReconcileError"


async def test_every_crash_point_ends_with_nothing_held(tmp_path: Path) -> None:
    """Killed after any write: the rest is taken back."""
    counter = itertools.count()

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with settled(tmp_path / str(next(counter))) as made:
            await granted(made, "aa")
            await granted(made, "bb")
            await made.edit(KIND, NAME, allowedNamespaces=[])
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        return holders(here), ready(await here.stored(KIND, NAME))

    assert await every_crash_point(fresh, drive, state) == 3
