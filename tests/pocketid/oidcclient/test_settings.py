"""What the client is set to: an overlay on what the server has, lists of callbacks, features of newer servers."""

from __future__ import annotations

import pytest
from tests.crashpoints import passes

from moorage.core.outcome import Waiting
from moorage.pocketid.instance.room import ROOM as INSTANCE_ROOM
from moorage.pocketid.oidcclient.room import ROOM

from .scene import CALLBACK, INSTANCE_KEY, KEY, Scene


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
