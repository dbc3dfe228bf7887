"""Instances of one address in namespaces that do not trust each other: what an administrator's key there keeps, and what any other key does not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import passes
from tests.fakes.pocketid import Fake

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.room import ROOM as INSTANCES
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .proof import prove
from .scene import CALLBACK, INSTANCE_KEY, KEY, Scene, scene
from .test_other_instances import label, namespace, place, server

pytestmark = pytest.mark.case("B74", "PIDX4")
THEIRS = Key("team-b", "theirs")
THEIR_INSTANCE = Key("team-b", "own")


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene whose instance has a label, and a namespace that it does not trust."""
    async with scene(tmp_path) as made:
        await label(made, team="a")
        await namespace(made, THEIRS.namespace)
        yield made
        await prove(made)


async def mine(here: Scene) -> None:
    """Our client, at our instance."""
    await here.make(instanceSelector={"matchLabels": {"team": "a"}})


async def theirs(here: Scene, **spec: str) -> None:
    """Theirs, at their own instance, of the same name."""
    chosen: JsonObject = {"instanceSelector": {"matchLabels": {"team": "b"}}, "callbackUrls": [CALLBACK]}
    await place(here, THEIRS.namespace, KIND, THEIRS.name, {"name": KEY.name, **chosen, **spec})
    await here.settle(THEIRS)


async def ready(here: Scene, kind: Any = KIND, key: Key = THEIRS) -> tuple[str, str]:
    """`Status/Reason` and message of Ready."""
    (said,) = (await here.client.get(kind.resource, key))["status"]["conditions"]
    return f"{said['status']}/{said['reason']}", said["message"]


async def plain(here: Scene) -> None:
    """Their instance names our address, with the key of a user who is no administrator."""
    stranger = Fake(api_key=here.fake.plain_key())
    await server(here, THEIRS.namespace, here.url, stranger, team="b")


async def test_two_administrators_of_one_server_take_no_client_from_each_other(apart: Scene) -> None:
    """Each could adopt by name what the other made, and end its secret, for ever in turn."""
    here = apart
    await mine(here)
    await here.settle()
    secret, made = await here.proven(), here.server()
    await server(here, THEIRS.namespace, here.url, here.fake, team="b")
    here.fake.journal.clear()
    await theirs(here)
    state, message = await ready(here)
    assert state == "False/Conflict"
    assert str(KEY) in message
    await here.settle()
    assert here.writes() == []
    assert (here.server(), await here.proven()) == (made, secret)


async def test_a_name_is_theirs_who_came_first_where_both_administer_the_server(apart: Scene) -> None:
    """The other one is told, and makes no second client of that name."""
    here = apart
    await server(here, THEIRS.namespace, here.url, here.fake, team="b")
    await theirs(here)
    assert (await ready(here))[0] == "True/Reconciled"
    await mine(here)
    await here.settle()
    assert (await here.ready())[0] == "False/Conflict"
    assert len(here.fake.store.clients) == 1


async def test_the_key_of_a_plain_user_makes_no_instance_ready(apart: Scene) -> None:
    """Each of its clients would fail with a 403. The message names the Secret and what to put there; with a better key it is Ready."""
    here = apart
    await plain(here)
    state, message = await ready(here, INSTANCE, THEIR_INSTANCE)
    assert state == "False/NotAdministrator"
    assert 'Secret team-b/pocketid-key, key "token"' in message
    assert "put an API key of an administrator there" in message
    await here.client.patch(SECRETS, Key("team-b", "pocketid-key"), {"stringData": {"token": here.fake.api_key}})
    await here.attach(THEIR_INSTANCE)
    assert (await ready(here, INSTANCE, THEIR_INSTANCE))[0] == "True/Ready"


async def test_whoever_only_names_an_address_keeps_no_name_from_others(apart: Scene) -> None:
    """Its client came first, and its key is a valid one of that server: it may not make clients there."""
    here = apart
    await plain(here)
    await theirs(here)
    await mine(here)
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"


async def test_what_was_seen_elsewhere_is_nobodys_here_even_with_an_administrators_key_afterwards(apart: Scene) -> None:
    """The status tells of a client at another address: an id that a server of one's own gave, before the instance was pointed at ours."""
    here = apart
    await mine(here)
    await here.settle()
    id = here.server().id
    await server(here, THEIRS.namespace, here.url, here.fake, team="b")
    chosen: JsonObject = {"instanceSelector": {"matchLabels": {"team": "b"}}, "callbackUrls": [CALLBACK]}
    await place(here, THEIRS.namespace, KIND, THEIRS.name, chosen)
    told = {"instance": {"namespace": "team-b", "name": "own", "url": "https://elsewhere.example.org"}, "clientID": id}
    await here.client.patch(KIND.resource, THEIRS, {"status": told}, subresource="status")
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert here.fake.store.clients == {}


async def test_that_a_key_is_an_administrators_costs_no_request_where_clients_are(apart: Scene) -> None:
    """The list that shows it is the one that all clients of the instance share."""
    here = apart
    await mine(here)
    async with here.world() as world:
        here.fake.journal.clear()
        for _ in range(2):
            await passes(INSTANCES, world, INSTANCE_KEY)
            await passes(ROOM, world, KEY)
    listed = [item for item in here.fake.journal.entries if item.method == "GET" and item.path == "/api/oidc/clients"]
    assert len(listed) == 1
