"""What the client is set to: an overlay on what the server has, lists of callbacks, features of newer servers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from tests.crashpoints import passes

from moorage.core.meta import JsonObject, Key
from moorage.core.outcome import Waiting
from moorage.pocketid.instance.room import ROOM as INSTANCE_ROOM
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.pocketid.reach import Lists
from moorage.pocketid.rest import Feature, Version

from .scene import CALLBACK, INSTANCE_KEY, KEY, NAMESPACE, Scene, fresh


@pytest.mark.case("PIDC1")
async def test_every_declared_field_arrives(here: Scene) -> None:
    """The write says everything that the server's DTO has."""
    await here.make(
        name="Wiki", description="pages", logoutCallbackUrls=["https://wiki.example.org/out"], launchUrl="https://wiki.example.org",
        pkceEnabled=True, requiresReauthentication=True, requiresPushedAuthorizationRequests=True, skipConsent=True,
        accessTokenDurationMinutes=5, refreshTokenDurationMinutes=6,
        federatedIdentities=[{"issuer": "https://ci.example.org", "subject": "job", "audience": "wiki", "replayProtection": True}],
    )  # fmt: skip
    await here.settle()
    found = here.server().settings
    identity = found.pop("federatedIdentities")[0]
    assert found == {
        "name": "Wiki", "description": "pages", "callbackURLs": [CALLBACK], "logoutCallbackURLs": ["https://wiki.example.org/out"],
        "isPublic": False, "pkceEnabled": True, "requiresReauthentication": True, "requiresPushedAuthorizationRequests": True,
        "skipConsent": True, "launchURL": "https://wiki.example.org", "isGroupRestricted": False, "accessTokenDurationMinutes": 5,
        "refreshTokenDurationMinutes": 6, "backchannelLogoutURL": "",
    }  # fmt: skip
    assert (identity["issuer"], identity["subject"], identity["replayProtection"]) == (
        "https://ci.example.org",
        "job",
        True,
    )
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


async def test_an_edit_by_hand_is_put_right_by_one_write(here: Scene) -> None:
    """And what is not declared stays as somebody set it."""
    await here.make(callbackUrls=None)
    await here.settle()
    here.server().settings |= {"skipConsent": True, "callbackURLs": ["https://ui.example.org/cb"]}
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == [f"PUT oidc/clients/{here.server().id}"]
    assert here.server().settings["skipConsent"] is False
    assert here.server().settings["callbackURLs"] == ["https://ui.example.org/cb"]
    assert (await here.status())["callbackUrls"] == ["https://ui.example.org/cb"]


@pytest.mark.case("PIDC3", "B73")
async def test_an_empty_list_of_callbacks_clears_and_an_absent_one_leaves(here: Scene) -> None:
    await here.make()
    await here.settle()
    await here.edit(callbackUrls=None)
    await here.settle()
    assert here.server().settings["callbackURLs"] == [CALLBACK]
    assert "callback_urls" not in await here.credentials()
    await here.edit(callbackUrls=[])
    await here.settle()
    assert here.server().settings["callbackURLs"] == []


@pytest.mark.case("PIDC4")
async def test_the_order_of_callbacks_counts(here: Scene) -> None:
    urls = ["https://a.example.org", "https://b.example.org"]
    await here.make(callbackUrls=urls)
    await here.settle()
    await here.edit(callbackUrls=urls[::-1])
    await here.settle()
    assert here.server().settings["callbackURLs"] == urls[::-1]


@pytest.mark.case("PIDX8")
async def test_a_public_client_without_pkce_does_not_drift(here: Scene) -> None:
    """The server requires PKCE of it whatever it is sent."""
    await here.make(isPublic=True)
    await here.settle()
    assert "client_secret" not in await here.credentials()
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDC12")
async def test_ready_is_said_after_a_readback_only(here: Scene) -> None:
    """The write is taken, the readback fails: not Ready, and no second write later."""
    await here.make()
    await here.settle()
    await here.edit(description="new")
    here.fake.faults.add("status", method="GET", path="*/oidc/clients/*", skip=2)
    await here.once()
    assert (await here.ready())[0] == "False/GetError"
    assert here.server().settings["description"] == "new"
    here.fake.journal.clear()
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert here.writes() == []


@pytest.mark.case("PIDX16")
async def test_a_field_of_a_newer_server_is_told_and_sent_after_the_upgrade(here: Scene) -> None:
    await here.make(backchannelLogoutUrl="https://wiki.example.org/logout")
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/UnsupportedVersion"
    assert "2.17" in message
    await here.proven()
    here.fake.upgrade("2.17.0")
    await here.attach()
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert here.server().settings["backchannelLogoutURL"] == "https://wiki.example.org/logout"


@pytest.mark.parametrize(("says", "hours"), [("unknown", 0), ("2.17.0", 1)])
@pytest.mark.case("PIDX16")
async def test_what_a_server_lacked_is_forgotten_with_its_version_or_after_an_hour(
    here: Scene, says: str, hours: int
) -> None:
    """One process all the while: an upgrade in place is seen by the version, or, where the old server had said it already, by trying again."""
    here.fake.upgrade(says, (2, 14))
    await here.attach()
    await here.make(backchannelLogoutUrl="https://wiki.example.org/logout")
    async with here.world() as world:
        await passes(ROOM, world, KEY)
        assert (await here.ready())[0] == "False/UnsupportedVersion"
        here.fake.upgrade("2.17.0")
        await passes(INSTANCE_ROOM, world, INSTANCE_KEY)
        here.later(hours=hours)
        await passes(ROOM, world, KEY)
    assert (await here.ready())[0] == "True/Reconciled"
    assert here.server().settings["backchannelLogoutURL"] == "https://wiki.example.org/logout"


async def test_a_version_that_cannot_be_read_is_judged_by_the_readback(here: Scene) -> None:
    """What does not come back is not sent again and again."""
    here.fake.upgrade("unknown", (2, 14))
    await here.attach()
    await here.make(backchannelLogoutUrl="https://wiki.example.org/logout")
    await here.settle()
    assert (await here.ready())[0] == "False/UnsupportedVersion"
    assert len(here.writes()) < 5


@pytest.mark.case("PIDC8", "PIDX15")
async def test_a_rate_limit_is_waited_for(here: Scene) -> None:
    here.fake.faults.add("rate_limit", path="*/oidc/clients", times=-1, retry_after="17")
    await here.make()
    outcome = await here.settle()
    assert isinstance(outcome, Waiting)
    assert outcome.after is not None
    assert 10 < outcome.after <= 17


@pytest.mark.case("PIDX13")
async def test_a_rotated_api_key_is_used_at_once(here: Scene) -> None:
    await here.make()
    await here.settle()
    here.fake.api_key = "another-static-api-key-0123456789"
    await here.settle()
    assert (await here.ready())[0] == "False/GetError"
    await here.secret("pocketid-key", token=here.fake.api_key)
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"


def keyed(kid: str) -> JsonObject:
    """A workload that authenticates by a key."""
    key = {"kty": "OKP", "crv": "Ed25519", "kid": kid, "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
    return {"issuer": "https://ci.example.org", "subject": kid, "publicKeys": [{"value": key}]}


@pytest.mark.case("PIDX16")
async def test_a_key_that_is_there_stays_whatever_the_server_is_thought_to_lack(here: Scene) -> None:
    """A replica of an older version answered one write of another client during a roll: nobody who has a key is locked out."""
    here.fake.upgrade("2.17.0")
    await here.attach()
    await here.make(federatedIdentities=[keyed("mine")])
    await here.settle()
    id = here.server().id
    await here.make("other", federatedIdentities=[keyed("others")])
    async with here.world() as world:
        here.fake.upgrade("2.14.0")
        await passes(ROOM, world, Key(NAMESPACE, "other"))
        here.fake.upgrade("2.17.0")
        began = here.now()
        await here.edit(description="written meanwhile")
        await fresh(here, world)
        await passes(ROOM, world, KEY)
        assert (await here.ready())[0] == "True/Reconciled"
        assert [item["publicKeys"][0]["kid"] for item in identities(here, id)] == ["mine"]
        await here.edit(federatedIdentities=[keyed("mine"), keyed("second")])
        await fresh(here, world)
        await passes(ROOM, world, KEY)
        ready, message = await here.ready()
        assert ready == "False/UnsupportedVersion"
        assert "the server says that it has 2.17.0, and did not take it over at " in message
        assert f"sent again at {began + timedelta(hours=1):%H:}" in message or began.minute == 59
        assert [item["subject"] for item in identities(here, id)] == ["mine"]
        here.later(hours=1)
        for key in (KEY, Key(NAMESPACE, "other")):
            await passes(ROOM, world, key)
            assert (await here.ready(key.name))[0] == "True/Reconciled"
    assert [item["subject"] for item in identities(here, id)] == ["mine", "second"]


def identities(here: Scene, id: str) -> list[JsonObject]:
    """Who may be that client without a secret."""
    found: list[JsonObject] = here.server(id).settings["federatedIdentities"]
    return found


async def test_an_instance_that_was_never_let_in_forgets_nothing_of_the_server(here: Scene) -> None:
    """It has the same address and no key: what it knows of the version is nothing."""
    here.fake.upgrade("2.17.0", (2, 14))
    await here.attach()
    await here.make(backchannelLogoutUrl="https://wiki.example.org/logout")
    await here.secret("wrong", token="no-key-of-that-server-0123456789")
    await here.instance("stranger", external={"url": here.url, "apiKeySecretRef": {"name": "wrong", "key": "token"}})
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"at": "ours"}}})
    await here.client.patch(INSTANCE.resource, Key(NAMESPACE, "stranger"), {"metadata": {"labels": {"at": "theirs"}}})
    await here.attach(Key(NAMESPACE, "stranger"))
    await here.edit(instanceSelector={"matchLabels": {"at": "ours"}})
    await here.make("theirs", name="Theirs", instanceSelector={"matchLabels": {"at": "theirs"}})
    async with here.world() as world:
        await passes(ROOM, world, KEY)
        here.fake.journal.clear()
        for key in (Key(NAMESPACE, "theirs"), KEY):
            await passes(ROOM, world, key)
    assert here.writes() == []
    assert (await here.ready())[0] == "False/UnsupportedVersion"
    await here.client.delete(KIND.resource, Key(NAMESPACE, "theirs"))
    await here.settle(Key(NAMESPACE, "theirs"))


def test_what_a_server_lacked_is_remembered_while_it_does_not_tell_its_version() -> None:
    lists, now = Lists(), datetime.now(UTC)
    version = Version.of("2.17.0")
    assert lists.lacking(version, now) == {}
    lists.lacks[Feature.PUBLIC_KEYS] = now
    assert lists.lacking(None, now) == lists.lacking(version, now) == {Feature.PUBLIC_KEYS: now}
    assert lists.lacking(Version.of("2.17.1"), now) == {}
