"""The walk of a group on the embedded API server, with the fake as Pocket-ID: create, adopt, members, claims, deletion, bad days."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Group, User

from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed, Waiting
from moorage.kube.resources import NAMESPACES
from moorage.pocketid.instance.types import KIND as INSTANCE_KIND
from moorage.pocketid.oidcclient.types import KIND as CLIENT_KIND
from moorage.pocketid.usergroup.room import ROOM
from moorage.pocketid.usergroup.types import CLIENT_FINALIZER, FINALIZER
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import NAMESPACE, Scene, condition, message, ready, scene

KIND = "UserGroup"
NAME = "admins"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path, ROOM) as made:
        yield made


def user(here: Scene, name: str) -> str:
    """A user at the server; its id."""
    id = f"00000000-0000-4000-8000-{sum(map(ord, name)):012d}"
    settings = {
        "username": name, "email": f"{name}@example.org", "emailVerified": False, "firstName": name, "lastName": "", "displayName": name,
        "isAdmin": False, "locale": None, "disabled": False,
    }  # fmt: skip
    here.fake.store.users[id] = User(id, settings)
    return id


def only(here: Scene) -> Group:
    """The one group at the server."""
    (group,) = here.fake.store.groups.values()
    return group


async def settled(here: Scene, **spec: Any) -> Group:
    """A group that is Ready."""
    await here.make(KIND, NAME, **spec)
    assert isinstance(await here.settle(NAME), Done)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    return only(here)


@pytest.mark.case("PIDF1")
async def test_a_group_is_made_with_claims_and_members(here: Scene) -> None:
    """Finalizer and instance first; then the group, its claims, its members; the status says so."""
    ada, bob = user(here, "ada"), user(here, "bob")
    await here.make("User", "bob")
    instance = {"namespace": NAMESPACE, "name": "main", "url": here.url}
    await here.says("User", "bob", userID=bob, instance=instance)
    told: list[Event] = []
    members = {"usernames": ["ADA"], "userRefs": [{"name": "bob"}]}
    await here.make(
        KIND, NAME, friendlyName="The admins", customClaims=[{"key": "role", "value": "root"}], users=members
    )
    assert await here.settle(NAME, told) == Done(after=120.0)
    group, stored = only(here), await here.stored(KIND, NAME)
    assert (group.name, group.friendly, group.claims, group.users) == (
        NAME,
        "The admins",
        [("role", "root")],
        {ada, bob},
    )
    assert stored is not None
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    status = {name: value for name, value in stored["status"].items() if name not in ("conditions", "createdAt")}
    assert status == {
        "observedGeneration": 1, "instance": instance, "groupID": group.id, "name": NAME, "friendlyName": "The admins",
        "totalUserCount": 2, "managedUserIDs": sorted([ada, bob]), "customClaims": [{"key": "role", "value": "root"}],
    }  # fmt: skip
    assert [event.reason for event in told] == ["GroupCreated", "GroupUpdated", "GroupUpdated"]


async def test_a_second_pass_asks_for_the_members_alone_and_writes_nothing(here: Scene) -> None:
    """The lists are shared and young; members stand in no list."""
    group = await settled(here, users={"usernames": []}, customClaims=[{"key": "a", "value": "b"}])
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(Key(NAMESPACE, NAME))
        assert await here.second_pass(walk, NAME) == []
        await here.edit(KIND, NAME, users={"userIDs": [user(here, "eve")]})
        await passes(ROOM, world, Key(NAMESPACE, NAME))
        here.fake.journal.clear()
        await walk(Key(NAMESPACE, NAME))
        assert here.fake.journal.lines() == [f"GET /api/user-groups/{group.id}"]


@pytest.mark.case("PIDX6")
async def test_a_group_of_that_name_is_adopted_with_its_members(here: Scene) -> None:
    """Names are compared as the server keeps them (NFC); claims become exactly ours, members are joined."""
    eve = user(here, "eve")
    there = Group("Caf\u00e9", "old", 0, claims=[("theirs", "1")], users={eve})
    here.fake.store.groups[there.id] = there
    told: list[Event] = []
    await here.make(KIND, NAME, name="Cafe\u0301", friendlyName="new", users={"usernames": ["eve"]})
    assert isinstance(await here.settle(NAME, told), Done)
    group, stored = only(here), await here.stored(KIND, NAME)
    assert (group.id, group.friendly, group.claims, group.users) == (there.id, "new", [], {eve})
    assert stored is not None
    assert "managedUserIDs" not in stored["status"]
    assert "GroupAdopted" in [event.reason for event in told]
    await here.edit(KIND, NAME, users=None)
    await here.settle(NAME)
    assert only(here).users == {eve}


@pytest.mark.case("PIDX3")
async def test_a_group_whose_answer_was_lost_is_found_by_its_name(here: Scene) -> None:
    """Committed, then the connection breaks: the next pass makes no second one."""
    here.fake.faults.add("drop_after", method="POST", path="/api/user-groups")
    await here.make(KIND, NAME)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Failed)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Done)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    assert stored["status"]["groupID"] == only(here).id


async def test_only_members_that_we_added_are_taken_out(here: Scene) -> None:
    """Those of others stay, and so do ours while somebody else declared cannot be found."""
    ada, bob, eve = user(here, "ada"), user(here, "bob"), user(here, "eve")
    group = await settled(here, users={"usernames": ["ada", "bob"]})
    group.users.add(eve)
    await here.edit(KIND, NAME, users={"usernames": ["bob", "nobody"]})
    outcome = await here.settle(NAME)
    assert outcome == Waiting("UserNotFound", "spec.users: Pocket-ID has no user named 'nobody'", after=120.0)
    assert group.users == {ada, bob, eve}
    await here.edit(KIND, NAME, users={"usernames": ["bob"]})
    await here.settle(NAME)
    assert group.users == {bob, eve}
    await here.edit(KIND, NAME, users=None)
    await here.settle(NAME)
    assert group.users == {eve}
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    assert "managedUserIDs" not in stored["status"]


async def test_edits_at_the_server_are_undone(here: Scene) -> None:
    """Names and claims are ours; nothing else is written."""
    group = await settled(here, customClaims=[{"key": "a", "value": "b"}])
    group.friendly, group.claims = "theirs", [("a", "b"), ("c", "d")]
    here.fake.journal.clear()
    await here.settle(NAME)
    assert (group.friendly, group.claims) == (NAME, [("a", "b")])
    assert len(here.fake.journal.writes()) == 2


async def test_a_group_deleted_elsewhere_is_made_again(here: Scene) -> None:
    """With its members; the event says why its id changed."""
    ada = user(here, "ada")
    before = await settled(here, users={"usernames": ["ada"]})
    here.fake.store.delete_group(before.id)
    told: list[Event] = []
    assert isinstance(await here.settle(NAME, told), Done)
    assert only(here).id != before.id
    assert only(here).users == {ada}
    assert "DeletedElsewhere" in [event.reason for event in told]


async def test_a_group_of_the_directory_takes_claims_only(here: Scene) -> None:
    """What else is declared and differs is told, tried no more than every few minutes, and never written."""
    there = Group(NAME, "From LDAP", 0, ldap_id="cn=admins")
    here.fake.store.groups[there.id] = there
    await here.make(KIND, NAME, customClaims=[{"key": "a", "value": "b"}])
    assert isinstance(await here.settle(NAME), Done)
    assert (there.friendly, there.claims) == ("From LDAP", [("a", "b")])
    await here.edit(KIND, NAME, friendlyName="Ours")
    text = "the directory (LDAP) manages group 'admins': change spec.friendlyName there, and here to match"
    assert await here.settle(NAME) == Waiting("ManagedByDirectory", text, after=300.0)
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None
    assert there.id in here.fake.store.groups


async def test_a_refused_claim_is_told_and_holds_up_nothing_else(here: Scene) -> None:
    """Members are written all the same; the message is the same each time."""
    ada = user(here, "ada")
    await here.make(KIND, NAME, customClaims=[{"key": "sub", "value": "x"}], users={"usernames": ["ada"]})
    first = await here.settle(NAME)
    assert isinstance(first, Waiting)
    assert (first.reason, first.after) == ("ReconcileError", 300.0)
    assert only(here).users == {ada}
    assert await here.settle(NAME) == first
    assert ready(await here.stored(KIND, NAME)) == "False/ReconcileError"


async def test_two_resources_never_write_one_group(here: Scene) -> None:
    """The one that has it keeps it; the other is told, and takes nothing."""
    group = await settled(here)
    await here.make(KIND, "other", name=NAME, friendlyName="mine")
    assert isinstance(await here.settle("other"), Waiting)
    assert ready(await here.stored(KIND, "other")) == "False/Conflict"
    assert group.friendly == NAME
    await here.delete(KIND, "other")
    await here.settle("other")
    assert await here.stored(KIND, "other") is None
    assert only(here).id == group.id


@pytest.mark.case("PIDF2", "PIDF1")
async def test_deletion_waits_for_clients_that_name_the_group(here: Scene) -> None:
    """Ready all the while; the finalizer that tells of clients comes and goes with them."""
    group = await settled(here)
    await here.make("OIDCClient", "app", allowedUserGroups=[{"name": NAME}])
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    assert stored["metadata"]["finalizers"] == [FINALIZER, CLIENT_FINALIZER]
    await here.delete(KIND, NAME)
    text = "deletion waits until these PocketIDOIDCClients name it no more: pocket-id/app"
    assert await here.settle(NAME) == Waiting("DeletionBlocked", text, after=5.0, keep=True)
    assert ready(await here.stored(KIND, NAME)) == "True/DeletionBlocked"
    assert group.id in here.fake.store.groups
    await here.edit("OIDCClient", "app", allowedUserGroups=None)
    told: list[Event] = []
    await here.settle(NAME, told)
    assert await here.stored(KIND, NAME) is None
    assert here.fake.store.groups == {}
    assert [event.reason for event in told] == ["GroupDeleted"]


@pytest.mark.case("PIDF3")
async def test_deletion_ends_when_the_instance_is_gone(here: Scene) -> None:
    """There is nothing to talk to."""
    await settled(here)
    await here.delete("Instance", "main")
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None


@pytest.mark.case("PIDF4")
async def test_deletion_of_what_is_gone_ends(here: Scene) -> None:
    """404 is as good as done."""
    group = await settled(here)
    here.fake.store.delete_group(group.id)
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None


async def test_a_retained_group_stays(here: Scene) -> None:
    """By policy."""
    group = await settled(here, deletionPolicy="Retain")
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None
    assert only(here).id == group.id


async def test_listed_clients_are_shown_and_never_written(here: Scene) -> None:
    """The client's room is the only writer of that table; a client that does not exist is told."""
    await here.make("OIDCClient", "app", callbackUrls=["https://app.example.org"])
    await here.says("OIDCClient", "app", clientID="app-id", conditions=condition())
    told: list[Event] = []
    await here.make(KIND, NAME, allowedOIDCClients=[{"name": "app"}, {"name": "none"}])
    assert isinstance(await here.settle(NAME, told), Done)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    assert stored["status"]["allowedOIDCClientIDs"] == ["app-id"]
    assert [event.message for event in told if event.type == "Warning"] == [
        "spec.allowedOIDCClients: PocketIDOIDCClient pocket-id/none does not exist"
    ]
    assert not [line for line in here.fake.journal.lines() if "clients" in line]


@pytest.mark.case("PIDX14")
async def test_a_moved_selector_makes_the_group_at_the_other_instance(here: Scene) -> None:
    """What is at the old one stays and is told; its ids count for nothing at the new one."""
    group = await settled(here)
    async with serving(Fake()) as url:
        await here.instance("second", url, tier="new")
        await here.edit(KIND, NAME, instanceSelector={"matchLabels": {"tier": "new"}})
        told: list[Event] = []
        assert isinstance(await here.settle(NAME, told), Done)
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    assert stored["status"]["instance"]["name"] == "second"
    assert stored["status"]["groupID"] != group.id
    assert f"group {group.id} stays at PocketIDInstance pocket-id/main" in [event.message for event in told]
    assert only(here).id == group.id


@pytest.mark.case("PIDX13")
async def test_a_refused_key_is_told_and_a_new_one_is_used_at_once(here: Scene) -> None:
    """A failed look is no fact: Ready stays; nothing is written; the next pass reads the Secret again."""
    await settled(here)
    here.fake.api_key = "another-key-0123456789"
    outcome = await here.settle(NAME)
    assert isinstance(outcome, Waiting)
    assert (outcome.reason, outcome.after) == ("GetError", 300.0)
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    await here.secret("api-key", token="another-key-0123456789")
    assert isinstance(await here.settle(NAME), Done)


@pytest.mark.case("PIDX15")
async def test_a_server_that_limits_the_rate_is_left_alone_for_as_long_as_it_says(here: Scene) -> None:
    """One refusal ends the pass."""
    here.fake.faults.add("rate_limit", method="POST", retry_after="42")
    await here.make(KIND, NAME, customClaims=[{"key": "a", "value": "b"}])
    async with here.world() as world:
        outcome = await Walk(ROOM, world)(Key(NAMESPACE, NAME))
    assert outcome == Waiting("APIClientError", "Pocket-ID asks us to slow down (429)", after=42.0)
    assert len(here.fake.journal.writes()) == 1
    assert isinstance(await here.settle(NAME), Done)


async def test_what_must_come_first_is_told(here: Scene) -> None:
    """No instance, an instance that is not ready, no key: each its own reason, and nothing is sent."""
    await here.ready(up=False)
    await here.make(KIND, NAME)
    await here.settle(NAME)
    stored = await here.stored(KIND, NAME)
    assert ready(stored) == "False/InstanceNotReady"
    assert message(stored) == "PocketIDInstance pocket-id/main is not ready: said by the test"
    await here.ready()
    await here.secret("api-key", token="")
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/APIClientNotReady"
    await here.delete("Instance", "main")
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/InstanceSelectionError"
    assert here.fake.journal.lines() == []


async def test_every_crash_point_ends_in_the_same_group(tmp_path: Path) -> None:
    """Killed after any write of making, changing and emptying it: the same group, and nobody of ours left in it."""
    counter = itertools.count()

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with scene(tmp_path / str(next(counter)), ROOM) as made:
            user(made, "ada")
            await made.make(KIND, NAME, customClaims=[{"key": "a", "value": "b"}], users={"usernames": ["ada"]})
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))
        if not (await here.stored(KIND, NAME) or {})["spec"].get("friendlyName"):
            await here.edit(KIND, NAME, friendlyName="later", users=None)
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        group, stored = only(here), await here.stored(KIND, NAME)
        assert stored is not None
        kept = {
            name: value
            for name, value in stored["status"].items()
            if name in ("name", "managedUserIDs", "totalUserCount")
        }
        return group.friendly, group.claims, group.users, kept, ready(stored)

    assert await every_crash_point(fresh, drive, state) == 10


async def test_clients_of_a_namespace_that_the_instance_does_not_admit_hold_no_group(here: Scene) -> None:
    """The way out of such a wait would lie in somebody else's namespace."""
    group = await settled(here)
    rt = CLIENT_KIND.resource
    await here.client.patch(INSTANCE_KIND.resource, Key(NAMESPACE, "main"), {"spec": {"allowedNamespaces": []}})
    await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "elsewhere"}})
    spec = {"callbackUrls": ["https://a.example/cb"], "allowedUserGroups": [{"name": NAME, "namespace": NAMESPACE}]}
    meta = {"name": "leech", "namespace": "elsewhere"}
    await here.client.create(rt, {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": meta, "spec": spec})
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None
    assert group.id not in here.fake.store.groups
