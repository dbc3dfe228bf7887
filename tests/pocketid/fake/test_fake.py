"""The fake beyond the records: newer versions, faults, journal, secrets that authenticate, users that log in."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from tests.fakes.idp.keys import SigningKey
from tests.fakes.pocketid import API_KEY, Fake, running, serving
from tests.fakes.pocketid.probes import authorize, code_flow, log_in, machine_token

from moorage.core.secret import SecretText
from moorage.net.calls import Calls
from moorage.pocketid.rest import (
    Access,
    LogoRefused,
    Permission,
    PocketID,
    Refused,
    Server,
    ServerFailed,
    Unauthorized,
    Unreachable,
)

CALLBACK = "https://app.example/cb"
PRIVATE = {"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "d": "BBBB", "kid": "k"}


@pytest.fixture
def fake() -> Fake:
    return Fake("2.17.0")


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as found:
        yield found


@pytest.fixture
async def pocketid(fake: Fake) -> AsyncIterator[PocketID]:
    async with serving(fake) as url, Calls() as calls:
        yield PocketID(calls, Server(url, SecretText(fake.api_key)))


async def _app(pocketid: PocketID, **write: Any) -> str:
    made = await pocketid.create_oidc_client({"id": "app", "name": "app", "callbackURLs": [CALLBACK], **write})
    return made.secret.value.reveal() if made.secret else ""


async def test_a_secret_authenticates_until_it_is_deleted(pocketid: PocketID, http: aiohttp.ClientSession) -> None:
    first = await _app(pocketid)
    second = await pocketid.create_oidc_client_secret("app", SecretText("odd %+:&= secret"))
    for value in (first, "odd %+:&= secret"):
        assert (await machine_token(http, pocketid.url, "app", value)).granted
    await pocketid.delete_oidc_client_secret("app", second.secret.id)
    assert (await machine_token(http, pocketid.url, "app", first)).granted
    assert (await machine_token(http, pocketid.url, "app", "odd %+:&= secret")).status == 401


async def test_a_user_gets_tokens_with_the_secret_and_pkce(pocketid: PocketID, http: aiohttp.ClientSession) -> None:
    secret = await _app(pocketid)
    user = await pocketid.create_user({"username": "ann", "email": "ann@example.com", "firstName": "Ann"})
    browser = await log_in(http, pocketid.url, API_KEY, user.id)
    assert (await code_flow(browser, "app", secret, CALLBACK)).granted
    assert (await code_flow(browser, "app", "not-the-secret", CALLBACK)).status == 401
    await pocketid.update_oidc_client("app", (await pocketid.get_oidc_client("app")).body({"isPublic": True}))
    assert (await code_flow(browser, "app", "", CALLBACK)).granted
    assert "error" in (await code_flow(browser, "app", "", CALLBACK, pkce=False)).body


async def test_a_group_that_may_not_use_the_client_ends_at_an_error(
    pocketid: PocketID, http: aiohttp.ClientSession
) -> None:
    secret = await _app(pocketid, isGroupRestricted=True)
    user = await pocketid.create_user({"username": "ann", "email": "ann@example.com"})
    browser = await log_in(http, pocketid.url, API_KEY, user.id)
    assert "refused" in await authorize(browser, "app", CALLBACK)
    group = await pocketid.create_user_group("devs", "Developers")
    await pocketid.update_user_group_users(group.id, [user.id])
    await pocketid.update_oidc_client_allowed_groups("app", [group.id])
    assert (await code_flow(browser, "app", secret, CALLBACK)).granted


async def test_a_machine_token_holds_what_the_client_holds(pocketid: PocketID, http: aiohttp.ClientSession) -> None:
    secret = await _app(pocketid)
    api = await pocketid.create_api("Orders", "https://orders.example")
    api = await pocketid.update_api_permissions(api.id, [Permission("read", "Read")])
    refused = await machine_token(http, pocketid.url, "app", secret, resource=api.resource)
    assert (refused.status, refused.body["error"]) == (403, "access_denied")
    await pocketid.set_api_client_grant(
        api.id, "app", Access(client_permissions=frozenset(api.permission_ids().values()))
    )
    assert (await machine_token(http, pocketid.url, "app", secret, resource=api.resource)).body["scope"] == "read"


async def test_public_keys_are_kept_by_newer_servers_and_never_private_ones(fake: Fake, pocketid: PocketID) -> None:
    key = SigningKey().jwk
    identity: dict[str, Any] = {"issuer": "https://i.example", "publicKeys": [{**key, "x5c": ["dropped"]}]}
    await _app(pocketid, credentials={"federatedIdentities": [identity]})
    assert (await pocketid.get_oidc_client("app")).federated_identities[0]["publicKeys"] == [key]
    for wrong in ([PRIVATE], [{"kty": "oct", "k": "AAAA", "kid": "k"}], ["text"], "text", [{**key, "kid": ""}]):
        with pytest.raises(Refused):
            await pocketid.create_oidc_client(
                {
                    "name": "x",
                    "credentials": {"federatedIdentities": [{"issuer": "https://i.example", "publicKeys": wrong}]},
                }
            )
    both = {"issuer": "https://i.example", "jwks": "https://i.example/jwks", "publicKeys": [key]}
    with pytest.raises(Refused):
        await pocketid.create_oidc_client({"name": "x", "credentials": {"federatedIdentities": [both]}})
    fake.upgrade("2.14.0")
    assert "publicKeys" not in (await pocketid.get_oidc_client("app")).federated_identities[0]


@pytest.mark.case("PIDX16")
async def test_an_upgrade_in_place_shows_what_the_newer_server_knows(fake: Fake, pocketid: PocketID) -> None:
    fake.upgrade("2.14.0")
    await _app(pocketid)
    assert "backchannelLogoutURL" not in (await pocketid.get_oidc_client("app")).raw
    fake.upgrade("2.17.0")
    assert (await pocketid.get_oidc_client("app")).raw["backchannelLogoutURL"] == ""
    assert (await pocketid.get_current_version()).text == "2.17.0"


async def test_a_forced_prefix_makes_secrets_that_look_alike(fake: Fake, pocketid: PocketID) -> None:
    fake.forced_prefixes.extend(["same", "same", "othr"])
    await _app(pocketid)
    made = [await pocketid.create_oidc_client_secret("app") for _ in range(2)]
    assert [item.secret.prefix for item in made] == ["same", "othr"]


async def test_a_row_survives_the_loss_of_its_answer(fake: Fake, pocketid: PocketID) -> None:
    fake.faults.add("drop_after", method="POST", path="/api/oidc/clients")
    with pytest.raises(Unreachable):
        await _app(pocketid)
    assert [item.id for item in await pocketid.list_oidc_clients()] == ["app"]


async def test_faults_strike_where_and_as_often_as_they_say(fake: Fake, pocketid: PocketID) -> None:
    fake.faults.add("status", method="GET", path="/api/user-groups", skip=1, times=2, status=503)
    assert await pocketid.list_user_groups() == ()
    for _ in range(2):
        with pytest.raises(ServerFailed):
            await pocketid.list_user_groups()
    assert await pocketid.list_user_groups() == ()
    committed = fake.faults.add("status", method="POST", commit=True)
    with pytest.raises(ServerFailed):
        await pocketid.create_user_group("devs", "Developers")
    assert (len(await pocketid.list_user_groups()), committed.struck) == (1, 1)


async def test_a_held_request_waits_until_it_is_let_go(fake: Fake, pocketid: PocketID) -> None:
    held = fake.faults.add("hold", method="POST")
    task = asyncio.create_task(pocketid.create_user_group("devs", "Developers"))
    await held.reached.wait()
    assert await pocketid.list_user_groups() == ()
    held.release()
    assert (await task).name == "devs"


async def test_the_journal_tells_writes_from_reads_and_keeps_no_body(
    fake: Fake, pocketid: PocketID, http: aiohttp.ClientSession
) -> None:
    secret = await _app(pocketid)
    await pocketid.list_oidc_clients()
    await machine_token(http, pocketid.url, "app", secret)
    assert [(entry.method, entry.route, entry.status) for entry in fake.journal.writes()] == [
        ("POST", "/api/oidc/clients", 201)
    ]
    assert secret not in repr(list(fake.journal))


async def test_logos_come_to_what_the_table_says(fake: Fake, pocketid: PocketID) -> None:
    fake.logos |= {
        "https://a.example/gone.png": "missing",
        "https://a.example/text.png": "type",
        "https://a.example/in.png": "private",
    }
    await _app(pocketid)
    for url in fake.logos:
        with pytest.raises(LogoRefused):
            await pocketid.update_oidc_client("app", {"name": "written all the same", "logoUrl": url})
    seen = await pocketid.get_oidc_client("app")
    assert (seen.name, seen.has_logo) == ("written all the same", False)
    assert fake.downloads == list(fake.logos)


async def test_a_metadata_client_is_made_at_its_first_authorization(
    fake: Fake, pocketid: PocketID, http: aiohttp.ClientSession
) -> None:
    url = "https://app.example/client.json"
    fake.documents[url] = {"client_name": "From its document", "redirect_uris": [CALLBACK]}
    user = await pocketid.create_user({"username": "ann", "email": "ann@example.com"})
    browser = await log_in(http, pocketid.url, API_KEY, user.id)
    assert "refused" in await authorize(browser, url, CALLBACK)
    fake.config["cimdUrlAllowlist"] = '["https://app.example/"]'
    assert (await code_flow(browser, url, "", CALLBACK)).granted
    assert (await pocketid.get_oidc_client(url)).name == "From its document"


async def test_a_rotated_key_is_refused_at_once(fake: Fake, pocketid: PocketID) -> None:
    await pocketid.get_current_version()
    fake.api_key = "rotated-key-0123456789"
    with pytest.raises(Unauthorized):
        await pocketid.get_current_version()


def test_it_runs_in_a_thread_for_tests_without_a_loop() -> None:
    async def ask(url: str) -> str:
        async with Calls() as http:
            return (await PocketID(http, Server(url, SecretText(API_KEY))).get_current_version()).text

    with running(Fake("2.15.0")) as url:
        assert asyncio.run(ask(url)) == "2.15.0"


async def test_it_is_a_program_with_a_remote_control(http: aiohttp.ClientSession) -> None:
    options = ("-m", "tests.fakes.pocketid", "--port", "0", "--version", "2.15.0")
    env = os.environ | {"FAKE_POCKETID_API_KEY": "key-0123456789abcdef"}
    program = await asyncio.create_subprocess_exec(sys.executable, *options, stdout=asyncio.subprocess.PIPE, env=env)
    try:
        assert program.stdout is not None
        url = (await program.stdout.readline()).decode().strip()
        calls = Calls()
        pocketid = PocketID(calls, Server(url, SecretText("key-0123456789abcdef")))
        await pocketid.create_oidc_client({"id": "app", "name": "app"})
        await http.post(f"{url}/_fake/faults", json={"kind": "status", "status": 503, "path": "/api/oidc/*"})
        with pytest.raises(ServerFailed):
            await pocketid.get_oidc_client("app")
        await http.post(f"{url}/_fake/server", json={"version": "2.17.0", "clock_offset": 60})
        assert (await pocketid.get_current_version()).text == "2.17.0"
        async with http.get(f"{url}/_fake/journal") as answer:
            entries = (await answer.json())["entries"]
        assert [(entry["method"], entry["status"]) for entry in entries] == [("POST", 201), ("GET", 503), ("GET", 200)]
        await calls.close()
    finally:
        program.terminate()
        assert await program.wait() == 0
