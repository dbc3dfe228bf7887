"""The walk of a user on the embedded API server, with the fake as Pocket-ID: create, adopt, link, keys, deletion, secrecy."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid.model import STATIC_OWNER, User, digest

from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed, Waiting
from moorage.kube.resources import SECRETS
from moorage.pocketid.user.room import ROOM
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import NAMESPACE, Scene, message, ready, scene

KIND = "User"
NAME = "ada"
PLAIN = {"isAdmin": False, "locale": None, "disabled": False, "emailVerified": True, "lastName": "", "displayName": "D"}


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path, ROOM) as made:
        yield made


def only(here: Scene) -> User:
    """The one user at the server, the owner of the key aside."""
    (user,) = (user for user in here.fake.store.users.values() if user.id != STATIC_OWNER)
    return user


def place(here: Scene, username: str, email: str, **settings: Any) -> User:
    """A user that was there before."""
    user = User(f"0000000{len(here.fake.store.users)}-0000-4000-8000-000000000000", {
        **PLAIN, "username": username, "email": email, "firstName": "Theirs", **settings,
    })  # fmt: skip
    here.fake.store.users[user.id] = user
    return user


async def status(here: Scene) -> dict[str, Any]:
    """Status without conditions."""
    stored = await here.stored(KIND, NAME)
    assert stored is not None
    return {name: value for name, value in stored["status"].items() if name != "conditions"}


async def settled(here: Scene, **spec: Any) -> User:
    """A user that is Ready."""
    await here.make(KIND, NAME, **spec)
    outcome = await here.settle(NAME)
    assert isinstance(outcome, Done), outcome
    assert ready(await here.stored(KIND, NAME)) == "True/Reconciled"
    return only(here)


async def test_a_user_is_made_with_a_link_in_a_secret(here: Scene) -> None:
    """The code lets in once; no status, event or condition holds it."""
    told: list[Event] = []
    await here.make(
        KIND, NAME, firstName={"value": "Ada"}, lastName={"value": "L."}, customClaims=[{"key": "a", "value": "b"}]
    )
    assert isinstance(await here.settle(NAME, told), Done)
    user, data = only(here), await here.secret_data("ada-user-data")
    assert {name: user.settings[name] for name in ("username", "email", "firstName", "displayName", "isAdmin")} == {
        "username": "ada", "email": "ada@placeholder.local", "firstName": "Ada", "displayName": "Ada L.", "isAdmin": False,
    }  # fmt: skip
    assert user.claims == [("a", "b")]
    assert data["userID"] == user.id
    assert data["oneTimeLoginURL"] == f"{here.url}/lc/{data['oneTimeLoginToken']}"
    assert here.fake.store.login_codes[digest(data["oneTimeLoginToken"])][0] == user.id
    stored = await here.stored(KIND, NAME)
    said = json.dumps([stored, [event.message for event in told]])
    assert data["oneTimeLoginToken"] not in said
    assert (await status(here))["oneTimeLoginExpiresAt"] == data["oneTimeLoginExpiresAt"]
    assert (await status(here))["userInfoSecretName"] == "ada-user-data"


async def test_a_second_pass_sends_nothing(here: Scene) -> None:
    """The shared list tells everything; one code is made, not one a pass."""
    await settled(here, apiKeys=[{"name": "ci-key"}])
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(Key(NAMESPACE, NAME))
        assert await here.second_pass(walk, NAME) == []


async def test_a_link_that_ended_leaves_the_secret(here: Scene) -> None:
    """An hour later nothing of it is left, in Secret and status; no new one is made."""
    await settled(here)
    async with here.world() as world:
        world.clock = lambda: datetime.now(UTC) + timedelta(minutes=61)
        assert await passes(ROOM, world, Key(NAMESPACE, NAME)) == Done(after=120.0)
    assert not [name for name in await here.secret_data("ada-user-data") if name.startswith("oneTime")]
    assert "oneTimeLoginExpiresAt" not in await status(here)
    assert len(here.fake.store.login_codes) == 1


@pytest.mark.parametrize("by", ["username", "email"])
async def test_a_user_that_is_there_is_adopted_without_a_link(here: Scene, by: str) -> None:
    """What is not declared stays as people set it: names, address, locale, that the address was verified."""
    there = place(here, "ADA" if by == "username" else "lovelace", "ada@example.org", locale="de")
    spec: dict[str, Any] = {} if by == "username" else {"email": {"value": "Ada@example.org"}}
    told: list[Event] = []
    await here.make(KIND, NAME, **spec)
    assert isinstance(await here.settle(NAME, told), Done)
    user = only(here)
    assert user.id == there.id
    assert (user.settings["username"], user.settings["firstName"], user.settings["locale"]) == ("ada", "Theirs", "de")
    assert user.settings["emailVerified"] is True
    assert "UserAdopted" in [event.reason for event in told]
    assert here.fake.store.login_codes == {}
    assert "oneTimeLoginToken" not in await here.secret_data("ada-user-data")


@pytest.mark.case("PIDX3")
async def test_a_user_whose_answer_was_lost_is_known_again_and_gets_its_link(here: Scene) -> None:
    """By the id that we gave it: it is ours, not adopted."""
    here.fake.faults.add("drop_after", method="POST", path="/api/users")
    await here.make(KIND, NAME)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Failed)
        assert isinstance(await walk(Key(NAMESPACE, NAME)), Done)
    assert (await status(here))["userID"] == only(here).id
    assert "oneTimeLoginToken" in await here.secret_data("ada-user-data")


async def test_values_come_from_secrets_and_follow_them(here: Scene) -> None:
    """A missing one is told by name; an edit is taken over."""
    await here.secret("who", username="countess", mail="c@example.org\n", firstName="Augusta")
    source = {"valueFrom": {"secretKeyRef": {"name": "who", "key": "address"}}}
    await here.make(KIND, NAME, userInfoSecretRef={"name": "who"}, email=source)
    text = "spec.email: key address of Secret who is missing, empty or no UTF-8 text"
    assert await here.settle(NAME) == Waiting("ValueNotFound", text, after=120.0)
    await here.edit(KIND, NAME, email={"valueFrom": {"secretKeyRef": {"name": "who", "key": "mail"}}})
    assert isinstance(await here.settle(NAME), Done)
    user = only(here)
    assert [user.settings[name] for name in ("username", "email", "firstName")] == [
        "countess",
        "c@example.org",
        "Augusta",
    ]
    await here.secret("who", firstName="Ada")
    await here.settle(NAME)
    assert user.settings["firstName"] == "Ada"


async def test_edits_at_the_server_are_undone_and_undeclared_ones_stay(here: Scene) -> None:
    """An administrator made by hand is none; a locale that nobody declared is the person's."""
    user = await settled(here, firstName={"value": "Ada"}, customClaims=[{"key": "a", "value": "b"}])
    user.settings |= {"isAdmin": True, "firstName": "X", "locale": "fr", "emailVerified": True}
    user.claims = []
    assert isinstance(await here.settle(NAME), Done)
    assert [user.settings[name] for name in ("isAdmin", "firstName", "locale", "emailVerified")] == [
        False,
        "Ada",
        "fr",
        True,
    ]
    assert user.claims == [("a", "b")]


async def test_a_declared_id_is_the_only_way_to_its_user(here: Scene) -> None:
    """Somebody else with the name is no match: the server's refusal is told."""
    place(here, "ada", "x@example.org")
    await here.make(KIND, NAME, userID="11111111-1111-4111-8111-111111111111")
    outcome = await here.settle(NAME)
    assert isinstance(outcome, Waiting)
    assert (outcome.reason, outcome.after) == ("APIClientError", 300.0)
    assert message(await here.stored(KIND, NAME)) == outcome.message
    assert only(here).settings["firstName"] == "Theirs"


async def test_the_owner_of_the_operators_key_is_never_taken(here: Scene) -> None:
    """It is the operator itself."""
    await here.make(KIND, NAME, userID=STATIC_OWNER)
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/ReconcileError"
    assert here.fake.journal.writes() == []


async def test_a_user_of_the_directory_takes_claims_only(here: Scene) -> None:
    """What differs is named; nothing is sent that the server must refuse."""
    there = place(here, "ada", "ada@example.org")
    there.ldap_id = "uid=ada"
    await here.make(KIND, NAME, firstName={"value": "Ours"}, customClaims=[{"key": "a", "value": "b"}])
    outcome = await here.settle(NAME)
    assert isinstance(outcome, Waiting)
    assert outcome.reason == "ManagedByDirectory"
    assert "firstName" in outcome.message
    assert there.claims == [("a", "b")]
    assert [entry.path for entry in here.fake.journal.writes()] == [f"/api/custom-claims/user/{there.id}"]


async def test_keys_are_made_kept_replaced_and_taken_back(here: Scene) -> None:
    """Each in its Secret; a new end makes a new key and deletes the old one; what is declared no more goes."""
    end = (datetime.now(UTC) + timedelta(days=90)).strftime("%Y-%m-%dT%H:%M:%SZ")
    both = [
        {"name": "ci-key", "expiresAt": end},
        {"name": "cron", "secretRef": {"name": "shared", "key": "cron-token"}},
    ]
    user = await settled(here, apiKeys=both)
    first = (await here.secret_data("ada-ci-key-key"))["token"]
    cron = (await here.secret_data("shared"))["cron-token"]
    held = {key.digest: key for key in here.fake.store.keys.values()}
    assert {held[digest(first)].owner, held[digest(cron)].owner} == {user.id}
    assert [item["name"] for item in (await status(here))["apiKeys"]] == ["ci-key", "cron"]
    assert first not in json.dumps(await here.stored(KIND, NAME))
    later = (datetime.now(UTC) + timedelta(days=91)).strftime("%Y-%m-%dT%H:%M:%SZ")
    await here.edit(KIND, NAME, apiKeys=[{"name": "ci-key", "expiresAt": later}, both[1]])
    assert isinstance(await here.settle(NAME), Done)
    second = (await here.secret_data("ada-ci-key-key"))["token"]
    assert second != first
    assert {key.digest for key in here.fake.store.keys.values()} == {digest(second), digest(cron)}
    await here.edit(KIND, NAME, apiKeys=None)
    assert isinstance(await here.settle(NAME), Done)
    assert here.fake.store.keys == {}
    names = {item["metadata"]["name"] for item in (await here.client.list(SECRETS, NAMESPACE)).items}
    assert names == {"api-key", "ada-user-data"}


async def test_a_key_whose_secret_is_gone_is_made_anew(here: Scene) -> None:
    """A token cannot be read back."""
    await settled(here, apiKeys=[{"name": "ci-key"}])
    await here.client.delete(SECRETS, Key(NAMESPACE, "ada-ci-key-key"))
    await here.settle(NAME)
    token = (await here.secret_data("ada-ci-key-key"))["token"]
    assert digest(token) in {key.digest for key in here.fake.store.keys.values()}


@pytest.mark.parametrize("name", ["ada-user-data", "ada-ci-key-key"])
async def test_a_secret_of_somebody_else_is_never_written_over(here: Scene, name: str) -> None:
    """Nothing is made at the server that could not be kept."""
    await here.secret(name, theirs="x")
    await here.make(KIND, NAME, apiKeys=[{"name": "ci-key"}])
    await here.settle(NAME)
    assert ready(await here.stored(KIND, NAME)) == "False/ForeignSecret"
    assert await here.secret_data(name) == {"theirs": "x"}
    assert here.fake.journal.writes() == []


async def test_a_user_deleted_elsewhere_is_made_again_with_keys_that_work(here: Scene) -> None:
    """Its keys went with it; the Secrets do not go on holding dead ones."""
    user = await settled(here, apiKeys=[{"name": "ci-key"}])
    before = (await here.secret_data("ada-ci-key-key"))["token"]
    here.fake.store.delete_user(user.id)
    assert isinstance(await here.settle(NAME), Done)
    after = (await here.secret_data("ada-ci-key-key"))["token"]
    assert after != before
    assert [key.digest for key in here.fake.store.keys.values()] == [digest(after)]


@pytest.mark.parametrize(("annotation", "stays"), [("", True), ("false", True), ("true", False)])
async def test_only_the_annotation_deletes_the_user(here: Scene, annotation: str, stays: bool) -> None:
    """By default the person stays; keys that we made go in either case."""
    user = await settled(here, apiKeys=[{"name": "ci-key"}])
    if annotation:
        await here.annotate(KIND, NAME, delete_from_pocket_id=annotation)
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None
    assert (user.id in here.fake.store.users) is stays
    assert here.fake.store.keys == {}


@pytest.mark.case("PIDF3", "PIDF4")
@pytest.mark.parametrize("gone", ["instance", "user"])
async def test_deletion_ends_when_there_is_nothing_left_to_delete(here: Scene, gone: str) -> None:
    """No instance, or a 404."""
    user = await settled(here, deletionPolicy="Delete")
    if gone == "user":
        here.fake.store.delete_user(user.id)
    else:
        await here.delete("Instance", "main")
    await here.delete(KIND, NAME)
    await here.settle(NAME)
    assert await here.stored(KIND, NAME) is None


async def test_every_crash_point_ends_with_one_user_whose_secrets_work(tmp_path: Path) -> None:
    """Killed after any write: the user, a login code that lets in, a key that is the server's."""
    counter = itertools.count()

    @contextlib.asynccontextmanager
    async def fresh() -> AsyncIterator[Scene]:
        async with scene(tmp_path / str(next(counter)), ROOM) as made:
            await made.make(KIND, NAME, customClaims=[{"key": "a", "value": "b"}], apiKeys=[{"name": "ci-key"}])
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, Key(NAMESPACE, NAME))

    async def state(here: Scene) -> Any:
        user, data = only(here), await here.secret_data("ada-user-data")
        token = (await here.secret_data("ada-ci-key-key"))["token"]
        works = digest(token) in {key.digest for key in here.fake.store.keys.values()}
        enters = here.fake.store.login_codes[digest(data["oneTimeLoginToken"])][0] == user.id
        return user.settings["username"], user.claims, works, enters, sorted(data), ready(await here.stored(KIND, NAME))

    assert await every_crash_point(fresh, drive, state) > 6
