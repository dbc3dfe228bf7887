"""Whose client it is: adopted by id and by exact name, lost and made again, claimed by two, moved to another instance."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from tests.crashpoints import passes
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Client

from moorage.core.meta import Key
from moorage.core.outcome import Done
from moorage.kube.errors import ApiError
from moorage.kube.resources import CRDS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .scene import KEY, NAMESPACE, Scene, fresh

SETTINGS = {
    "name": "wiki", "description": "", "callbackURLs": ["https://ui.example.org/cb"], "logoutCallbackURLs": [], "isPublic": False,
    "pkceEnabled": False, "requiresReauthentication": False, "requiresPushedAuthorizationRequests": False, "skipConsent": False,
    "launchURL": None, "isGroupRestricted": False, "accessTokenDurationMinutes": 60, "refreshTokenDurationMinutes": 43200,
    "backchannelLogoutURL": "", "federatedIdentities": [],
}  # fmt: skip


def there(here: Scene, id: str, **settings: object) -> Client:
    """A client that somebody made in the UI."""
    made = Client(id, {**SETTINGS, **settings})
    here.fake.store.clients[id] = made
    return made


def creations(here: Scene) -> int:
    """How many clients were created."""
    return here.writes().count("POST oidc/clients")


@pytest.mark.case("PIDC5", "B74")
async def test_a_client_with_the_declared_id_is_adopted(here: Scene) -> None:
    """The create is answered 409, nothing is made twice, and its secret is made anew."""
    there(here, "wiki-app", name="Old")
    here.fake.place_legacy_secret("wiki-app", "somebody-elses-secret")
    await here.make(clientID="wiki-app")
    assert isinstance(await here.settle(), Done)
    assert list(here.fake.store.clients) == ["wiki-app"]
    assert here.server().settings["name"] == "wiki"
    await here.proven()
    assert not here.fake.authenticates("wiki-app", "somebody-elses-secret")
    assert "ClientAdopted" in [event.reason for event in here.told]


@pytest.mark.case("PIDC6", "PIDX7", "B74")
async def test_a_client_of_exactly_that_name_is_adopted(here: Scene) -> None:
    """Names that the server's search takes for the same are other names."""
    there(here, "one", name="100% w_ki")
    there(here, "two", name="100x wiki")
    await here.make(name="100% w_ki")
    await here.settle()
    assert (await here.status())["clientID"] == "one"
    assert creations(here) == 0


@pytest.mark.case("PIDC6", "B74")
async def test_a_client_that_was_made_by_hand_a_moment_ago_is_adopted(here: Scene) -> None:
    """The list that other passes asked for is older than the resource: before a create it is asked for again."""
    here.later(seconds=-5)
    await here.make("first")
    async with here.world() as world:
        await passes(ROOM, world, Key(NAMESPACE, "first"))
        here.later(seconds=5)
        there(here, "hand-made")
        await here.make()
        await fresh(here, world)
        await passes(ROOM, world, KEY)
    assert (await here.status())["clientID"] == "hand-made"


@pytest.mark.case("B74")
async def test_two_clients_of_one_name_are_told_and_left_alone(here: Scene) -> None:
    there(here, "one")
    there(here, "two")
    await here.make()
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/APIClientError"
    assert "one, two" in message
    assert here.writes() == []


@pytest.mark.case("PIDX6")
async def test_a_name_in_nfd_is_made_once_and_never_drifts(here: Scene) -> None:
    await here.make(name="Cafe\u0301")
    await here.settle()
    here.fake.journal.clear()
    await here.settle()
    assert here.server().settings["name"] == "Caf\u00e9"
    assert here.writes() == []


@pytest.mark.case("PIDC9", "B74")
async def test_a_client_that_somebody_deleted_is_made_again_with_a_new_secret(here: Scene) -> None:
    await here.make()
    await here.settle()
    old, secret = here.server().id, await here.proven()
    here.fake.store.delete_client(old)
    await here.settle()
    assert here.server().id != old
    assert await here.proven() != secret
    assert (await here.credentials())["client_id"] == (await here.status())["clientID"] == here.server().id
    assert "ClientLost" in [event.reason for event in here.told]


@pytest.mark.case("B74", "PIDX4")
async def test_of_two_resources_with_one_client_the_later_is_held_back(here: Scene) -> None:
    """Both are told; the one that has it goes on, and when it goes the other takes over."""
    await here.make("first", name="Wiki")
    first = Key(NAMESPACE, "first")
    await here.settle(first)
    await here.make(name="Wiki")
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/Conflict"
    assert "apps/first" in message
    assert creations(here) == 1
    assert await here.credentials() == {}


@pytest.mark.case("PIDX4")
async def test_a_conflict_is_told_on_both(here: Scene) -> None:
    """Two ids that are the same, once admission is not asked."""
    await here.make("first", clientID="wiki-app")
    await here.settle(Key(NAMESPACE, "first"))
    await here.make(clientID="wiki-app")
    await here.settle()
    await here.settle(Key(NAMESPACE, "first"))
    assert (await here.ready())[0] == "False/Conflict"
    ready, message = await here.ready("first")
    assert ready == "True/Reconciled"
    assert "apps/wiki" in message
    await here.client.delete(KIND.resource, Key(NAMESPACE, "wiki"))
    await here.settle()
    assert list(here.fake.store.clients) == ["wiki-app"]


async def moves(here: Scene, url: str) -> None:
    """A second instance, at this address, which the client means from now on."""
    await here.instance("new", url)
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "new"), {"metadata": {"labels": {"at": "new"}}})
    await here.attach(Key(NAMESPACE, "new"))
    await here.edit(instanceSelector={"matchLabels": {"at": "new"}})


@pytest.mark.case("PIDX14")
async def test_a_moved_selector_leaves_nothing_behind(here: Scene) -> None:
    """The client is deleted where it was and made where it belongs now; the Secret works there."""
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "pocketid"), {"metadata": {"labels": {"at": "old"}}})
    await here.make(instanceSelector={"matchLabels": {"at": "old"}})
    await here.settle()
    other = Fake()
    async with serving(other) as url:
        await here.secret("pocketid-key", token=other.api_key)
        await moves(here, url)
        await here.settle()
        assert here.fake.store.clients == {}
        (made,) = other.store.clients.values()
        stored = await here.credentials()
        assert other.authenticates(made.id, stored["client_secret"])
        assert stored["client_id"] == made.id == (await here.status())["clientID"]
        assert (await here.status())["instance"]["name"] == "new"


@pytest.mark.case("PIDX14")
async def test_a_client_that_cannot_be_deleted_where_it_was_is_not_forgotten(here: Scene) -> None:
    """The former server is down when the selector moves: the client is at the new one, and the old one is on record until it is gone."""
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "pocketid"), {"metadata": {"labels": {"at": "old"}}})
    await here.make(instanceSelector={"matchLabels": {"at": "old"}})
    await here.settle()
    here.fake.faults.add("status", method="DELETE", status=503)
    other = Fake(api_key=here.fake.api_key)
    async with serving(other) as url:
        await moves(here, url)
        await here.once()
        await here.once()
        assert (await here.ready())[0] == "False/APIClientError"
        assert (await here.status())["clientID"] == here.server().id
        (made,) = other.store.clients.values()
        assert other.authenticates(made.id, (await here.credentials())["client_secret"])
        await here.settle()
        assert here.fake.store.clients == {}
        assert len(other.store.clients) == 1


@pytest.mark.case("PIDX14")
async def test_a_client_that_cannot_be_made_where_it_moves_to_stays_where_it_was(here: Scene) -> None:
    """A reference leads nowhere there: what works goes on working, and the Secret with it."""
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "pocketid"), {"metadata": {"labels": {"at": "old"}}})
    here.server_group("staff")
    await here.make(instanceSelector={"matchLabels": {"at": "old"}}, allowedUserGroups=[{"groupName": "staff"}])
    await here.settle()
    other = Fake(api_key=here.fake.api_key)
    async with serving(other) as url:
        await moves(here, url)
        await here.settle()
        assert (await here.ready())[0] == "False/UserGroupNotFound"
        assert other.store.clients == {}
        await here.proven()


async def test_two_instances_of_one_server_share_the_client_that_moves(here: Scene) -> None:
    """It is one client: it is neither made anew nor deleted."""
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "pocketid"), {"metadata": {"labels": {"at": "old"}}})
    await here.make(instanceSelector={"matchLabels": {"at": "old"}}, clientID="wiki-app")
    await here.settle()
    secret = await here.proven()
    await here.instance("new")
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "new"), {"metadata": {"labels": {"at": "new"}}})
    await here.attach(Key(NAMESPACE, "new"))
    here.fake.journal.clear()
    await here.edit(instanceSelector={"matchLabels": {"at": "new"}})
    await here.settle()
    assert here.writes() == []
    assert await here.proven() == secret
    assert (await here.status())["instance"]["name"] == "new"


async def test_an_instance_that_points_to_another_server_now_is_told(here: Scene) -> None:
    """Nobody deleted the client: the event says where it stays."""
    await here.make()
    await here.settle()
    other = Fake(api_key=here.fake.api_key)
    async with serving(other) as url:
        await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "pocketid"), {"spec": {"external": {"url": url}}})
        await here.attach()
        await here.settle()
        (made,) = other.store.clients.values()
        assert other.authenticates(made.id, (await here.credentials())["client_secret"])
    (told,) = [event for event in here.told if event.reason in ("InstanceMoved", "ClientLost")]
    assert (told.type, told.reason) == ("Warning", "InstanceMoved")
    assert here.url in told.message


@pytest.mark.case("PIDF3")
async def test_deletion_ends_when_the_instance_is_gone(here: Scene) -> None:
    await here.make()
    await here.settle()
    await here.client.delete(INSTANCE.resource, Key(NAMESPACE, "pocketid"))
    here.later(seconds=30)
    await here.attach()
    await here.client.delete(KIND.resource, Key(NAMESPACE, "wiki"))
    await here.settle()
    assert await here.stored() is None
    assert here.told[-1].reason == "ClientOrphaned"


@pytest.mark.case("PIDX3")
async def test_a_first_secret_whose_answer_was_lost_goes_at_once_whatever_the_overlap(here: Scene) -> None:
    """Nobody was given it: the client is ours, and its first secret was not stored yet."""
    here.fake.faults.add("drop_after", method="POST", path="*/secrets")
    await here.make(clientSecretOverlap="24h")
    await here.once()
    assert (await here.status())["initialSecretPending"] is True
    await here.settle()
    await here.proven()
    assert len(here.server().secrets) == 1
    assert "initialSecretPending" not in await here.status()


@pytest.mark.parametrize("path", ["*/oidc/clients", "*/secrets"])
@pytest.mark.case("PIDX3")
async def test_a_write_whose_answer_is_lost_is_found_again(here: Scene, path: str) -> None:
    """The server committed, the connection broke: one client, one secret, and the stored one works."""
    here.fake.faults.add("drop_after", method="POST", path=path)
    await here.make()
    await here.settle()
    await here.settle()
    await here.proven()
    assert len(here.server().secrets) == 1


async def test_an_id_of_dots_alone_is_never_sent(here: Scene) -> None:
    """Its CRD refuses it by now; an object that is older has it, and a proxy may make the way up of it that it is in an address."""
    crd = await here.client.get(CRDS, Key("", "pocketidoidcclients.pocketid.internal"))
    schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    del schema["properties"]["spec"]["properties"]["clientID"]["x-kubernetes-validations"]
    await here.client.replace(CRDS, crd)
    async with asyncio.timeout(30):
        while True:
            with contextlib.suppress(ApiError):
                await here.make(clientID="..")
                break
    await here.settle()
    assert (await here.ready())[0] == "False/APIClientError"
    assert "recreate this resource" in (await here.ready())[1]
    assert here.fake.journal.lines() == []
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert here.writes() == []
