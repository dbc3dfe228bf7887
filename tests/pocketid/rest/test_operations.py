"""Every operation against the fake: what goes out comes back, and is counted by its name."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from tests.fakes.pocketid import Fake

from moorage.core.secret import SecretText
from moorage.net.calls import Calls
from moorage.pocketid.rest import (
    Access,
    AlreadyExists,
    Claim,
    Forbidden,
    Nonsense,
    NotFound,
    Permission,
    PocketID,
    Refused,
    Server,
    dropped,
)

OPERATIONS = {
    "get_current_version", "list_oidc_clients", "get_oidc_client", "create_oidc_client", "update_oidc_client", "delete_oidc_client",
    "refresh_oidc_client_metadata", "update_oidc_client_allowed_groups", "create_oidc_client_secret", "delete_oidc_client_secret",
    "get_oidc_client_scim_service_provider", "create_scim_service_provider", "update_scim_service_provider",
    "delete_scim_service_provider", "list_apis", "get_api", "create_api", "update_api", "delete_api", "update_api_permissions",
    "set_api_cimd_access", "list_api_client_grants", "list_api_holders", "set_api_client_grant", "remove_api_client_grant", "list_user_groups",
    "get_user_group", "create_user_group", "update_user_group", "delete_user_group", "update_user_group_users",
    "update_user_group_custom_claims", "list_users", "get_user", "create_user", "update_user", "delete_user",
    "update_user_custom_claims", "create_one_time_access_token", "create_api_key_for_user", "delete_api_key",
}  # fmt: skip
WHOLE = {
    "id": "whole", "name": "Whole", "description": "d", "callbackURLs": ["https://a.example/cb", "app:/cb"],
    "logoutCallbackURLs": ["https://a.example/out"], "isPublic": False, "pkceEnabled": True, "requiresReauthentication": True,
    "requiresPushedAuthorizationRequests": True, "skipConsent": True, "launchURL": "https://a.example", "isGroupRestricted": True,
    "accessTokenDurationMinutes": 5, "refreshTokenDurationMinutes": 6, "backchannelLogoutURL": "https://a.example/bc",
    "credentials": {"federatedIdentities": [
        {"issuer": "https://i.example", "subject": "s", "audience": "a", "jwks": "https://i.example/jwks", "replayProtection": True},
        {"issuer": "https://j.example", "publicKeys": [{"kty": "OKP", "crv": "Ed25519", "x": "AAAA", "kid": "k"}]},
    ]},
}  # fmt: skip


def test_every_operation_of_the_specification_is_a_method() -> None:
    assert {name for name in OPERATIONS if not callable(getattr(PocketID, name, None))} == set()


async def test_a_client_lives_and_is_deleted(pocketid: PocketID) -> None:
    made = await pocketid.create_oidc_client({"name": "app"})
    assert made.secret is None
    assert (await pocketid.get_oidc_client(made.client.id)).name == "app"
    changed = await pocketid.update_oidc_client(made.client.id, made.client.body({"description": "new"}))
    assert changed.raw["description"] == "new"
    await pocketid.delete_oidc_client(made.client.id)
    with pytest.raises(NotFound):
        await pocketid.get_oidc_client(made.client.id)
    with pytest.raises(NotFound):
        await pocketid.delete_oidc_client(made.client.id)


@pytest.mark.parametrize("version", ["2.14.0", "2.15.0", "2.17.0"])
@pytest.mark.case("PIDC1")
async def test_writing_back_what_was_read_changes_nothing(fake: Fake, pocketid: PocketID, version: str) -> None:
    fake.upgrade(version)
    group = await pocketid.create_user_group("devs", "Developers")
    await pocketid.create_oidc_client(WHOLE)
    await pocketid.update_oidc_client_allowed_groups("whole", [group.id])
    await pocketid.create_oidc_client_secret("whole")
    before = await pocketid.get_oidc_client("whole")
    await pocketid.update_oidc_client("whole", before.body())
    after = await pocketid.get_oidc_client("whole")
    assert after == before
    assert after.group_ids == {group.id}


@pytest.mark.case("PIDC1")
async def test_what_is_written_back_covers_every_member_of_the_write(fake: Fake, pocketid: PocketID) -> None:
    fake.upgrade("2.17.0")
    made = await pocketid.create_oidc_client(WHOLE)
    kept = {name for name in fake.store.clients["whole"].settings if name != "federatedIdentities"} | {"credentials"}
    assert set(made.client.body()) == kept
    assert made.client.body().keys() == WHOLE.keys() - {"id"}


async def test_members_that_we_do_not_know_go_back_untouched(pocketid: PocketID) -> None:
    made = (await pocketid.create_oidc_client({"name": "app"})).client
    made.raw["brandNew"] = {"deep": [1]}
    body = made.body({"name": "other"})
    body["brandNew"]["deep"].append(2)
    assert (body["name"], made.raw["brandNew"]) == ("other", {"deep": [1]})


@pytest.mark.case("PIDX16")
async def test_what_an_older_server_drops_is_named(fake: Fake, pocketid: PocketID) -> None:
    old = (await pocketid.create_oidc_client(WHOLE)).client
    assert set(dropped(WHOLE, old.raw)) == {"backchannelLogoutURL", "credentials.federatedIdentities[1].publicKeys"}
    fake.upgrade("2.17.0")
    new = await pocketid.update_oidc_client("whole", WHOLE)
    assert dropped(WHOLE, new.raw) == ()


async def test_a_newer_server_makes_a_secret_with_the_client(fake: Fake, pocketid: PocketID) -> None:
    fake.upgrade("2.17.0")
    made = await pocketid.create_oidc_client({"name": "app"})
    assert made.secret is not None
    assert fake.authenticates(made.client.id, made.secret.value.reveal())
    assert [item.id for item in made.client.secrets] == [made.secret.secret.id]
    assert made.secret.value.reveal() not in str(made.client.raw)


async def test_a_public_client_comes_without_a_secret(fake: Fake, pocketid: PocketID) -> None:
    fake.upgrade("2.17.0")
    assert (await pocketid.create_oidc_client({"name": "app", "isPublic": True})).secret is None


async def test_ids_that_mean_something_in_a_path_reach_their_client(fake: Fake, pocketid: PocketID) -> None:
    for id in ("..", "...", ".-", "A_b.c"):
        await pocketid.create_oidc_client({"id": id, "name": "x"})
        assert (await pocketid.get_oidc_client(id)).id == id
        await pocketid.delete_oidc_client(id)
    url = "https://app.example/client.json?a=b"
    fake.place_cimd_client(url, "doc", ["https://app.example/cb"])
    assert (await pocketid.get_oidc_client(url)).client_type == "cimd"
    await pocketid.delete_oidc_client(url)


async def test_an_id_cannot_climb_to_another_path(fake: Fake, pocketid: PocketID) -> None:
    for id in ("../users", "a/b", "x?y=1", "x#y", "%2e%2e", "a b"):
        with pytest.raises((NotFound, Nonsense)):
            await pocketid.delete_oidc_client(id)
    assert {entry.route for entry in fake.journal} <= {"/api/oidc/clients/{id}"}


async def test_groups_are_set_and_read_back(pocketid: PocketID) -> None:
    client = (await pocketid.create_oidc_client({"id": "app", "name": "app"})).client
    groups = [await pocketid.create_user_group(name, name) for name in ("aa", "bb")]
    await pocketid.update_oidc_client_allowed_groups("app", [group.id for group in groups] + ["nope"])
    assert (await pocketid.get_oidc_client(client.id)).group_ids == {group.id for group in groups}
    listed = (await pocketid.list_oidc_clients())[0]
    assert (listed.groups, listed.group_count) == (None, 2)
    await pocketid.update_oidc_client_allowed_groups("app", [])
    assert (await pocketid.get_oidc_client(client.id)).group_ids == frozenset()


async def test_a_collision_of_group_writers_is_tried_again(fake: Fake, pocketid: PocketID) -> None:
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    fake.faults.add("status", method="PUT", path="*/allowed-user-groups")
    await pocketid.update_oidc_client_allowed_groups("app", [])
    assert pocketid.calls["update_oidc_client_allowed_groups"] == 2


async def test_secrets_are_made_supplied_and_deleted(fake: Fake, pocketid: PocketID) -> None:
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    made = await pocketid.create_oidc_client_secret("app")
    given = await pocketid.create_oidc_client_secret(
        "app", SecretText("supplied value 1"), datetime.now(UTC) + timedelta(days=1)
    )
    assert fake.authenticates("app", made.value.reveal())
    assert fake.authenticates("app", "supplied value 1")
    assert given.secret.prefix == "supp"
    assert given.secret.expires_at is not None
    await pocketid.delete_oidc_client_secret("app", made.secret.id)
    assert not fake.authenticates("app", made.value.reveal())
    held = (await pocketid.get_oidc_client("app")).secrets
    assert [item.id for item in held] == [given.secret.id]
    with pytest.raises(NotFound):
        await pocketid.delete_oidc_client_secret("app", made.secret.id)


async def test_a_secret_that_will_not_do_is_refused_without_being_told(pocketid: PocketID) -> None:
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    with pytest.raises(Refused) as refusal:
        await pocketid.create_oidc_client_secret("app", SecretText("tiny-secret"))
    assert [str(item) for item in refusal.value.fields] == ["secret (too_short)"]
    assert "tiny" not in str(refusal.value)


async def test_logos_go_by_side(fake: Fake, pocketid: PocketID) -> None:
    logos = {"logoUrl": "https://a.example/l.png", "darkLogoUrl": "https://a.example/d.png"}
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    seen = await pocketid.update_oidc_client("app", {"name": "app", **logos})
    assert (seen.has_logo, seen.has_dark_logo) == (True, True)
    await pocketid.delete_oidc_client_logo("app", "light")
    seen = await pocketid.get_oidc_client("app")
    assert (seen.has_logo, seen.has_dark_logo) == (False, True)
    with pytest.raises(NotFound):
        await pocketid.delete_oidc_client_logo("app", "light")


async def test_a_scim_provider_lives_and_is_deleted(pocketid: PocketID) -> None:
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    assert await pocketid.get_oidc_client_scim_service_provider("app") is None
    made = await pocketid.create_scim_service_provider("app", "https://s.example/scim", SecretText("scim-token"))
    assert await pocketid.get_oidc_client_scim_service_provider("app") == made
    cleared = await pocketid.update_scim_service_provider(made.id, "app", made.endpoint, SecretText(""))
    assert not cleared.token
    await pocketid.delete_scim_service_provider(made.id)
    assert await pocketid.get_oidc_client_scim_service_provider("app") is None


async def test_an_api_its_permissions_and_grants(pocketid: PocketID) -> None:
    await pocketid.create_oidc_client({"id": "app", "name": "app"})
    api = await pocketid.create_api("Orders", "https://orders.example/")
    assert api.resource == "https://orders.example"
    assert (await pocketid.find_api_of("https://orders.example//")) == await pocketid.get_api(api.id)
    api = await pocketid.update_api_permissions(
        api.id, [Permission("read", "Read", "may read"), Permission("write", "Write")]
    )
    assert [item.key for item in api.permissions] == ["read", "write"]
    ids = api.permission_ids()
    wanted = Access(client=True, client_permissions=frozenset(ids.values()))
    assert await pocketid.set_api_client_grant(api.id, "app", wanted) == wanted
    assert [(row.api.id, row.access) for row in await pocketid.list_api_client_grants("app")] == [(api.id, wanted)]
    assert [(row.id, row.name, row.access) for row in await pocketid.list_api_holders(api.id)] == [
        ("app", "app", wanted)
    ]
    narrowed = await pocketid.set_api_client_grant(
        api.id, "app", Access(client=True, client_permissions=frozenset({ids["read"], "nope"}))
    )
    assert narrowed.client_permissions == {ids["read"]}
    opened = await pocketid.set_api_cimd_access(api.id, True, [ids["read"]])
    assert (opened.allow_cimd, [item.key for item in opened.permissions if item.allowed_for_cimd]) == (True, ["read"])
    await pocketid.remove_api_client_grant(api.id, "app")
    await pocketid.remove_api_client_grant(api.id, "app")
    assert await pocketid.list_api_client_grants("app") == ()
    assert await pocketid.list_api_holders(api.id) == ()
    assert (await pocketid.update_api(api.id, "Orders 2")).name == "Orders 2"
    await pocketid.delete_api(api.id)
    assert await pocketid.list_apis() == ()


async def test_a_group_its_members_and_claims(pocketid: PocketID) -> None:
    user = await pocketid.create_user({"username": "ann", "email": "ann@example.com", "firstName": "Ann"})
    group = await pocketid.create_user_group("devs", "Developers")
    assert (await pocketid.update_user_group_users(group.id, [user.id, "nope"])).users == {user.id}
    claims = (Claim("team", "a"), Claim("level", "1"))
    assert await pocketid.update_user_group_custom_claims(group.id, claims) == claims
    read = await pocketid.get_user_group(group.id)
    assert (read.claims, read.user_count, read.client_ids) == (claims, 1, frozenset())
    with pytest.raises(AlreadyExists) as taken:
        await pocketid.create_user_group("devs", "Others")
    assert taken.value.property == "name"
    assert (await pocketid.update_user_group(group.id, "engineers", "Engineers")).name == "engineers"
    assert [(row.id, row.user_count, row.users) for row in await pocketid.list_user_groups()] == [(group.id, 1, None)]
    await pocketid.delete_user_group(group.id)
    assert await pocketid.find_user_group_named("engineers") is None


async def test_a_user_comes_in_with_a_code_and_gets_a_key(fake: Fake, pocketid: PocketID, http: Calls) -> None:
    user = await pocketid.create_user({"username": "Ann", "email": "ann@example.com", "isAdmin": True})
    assert await pocketid.find_user_named("aNN") == user
    assert await pocketid.update_user_custom_claims(user.id, [Claim("k", "v")]) == (Claim("k", "v"),)
    code = await pocketid.create_one_time_access_token(user.id, timedelta(hours=1))
    assert len(code.reveal()) == 12
    made = await pocketid.create_api_key_for_user(
        user.id, "automation", datetime.now(UTC) + timedelta(days=1), "for CI"
    )
    own = PocketID(http, Server(pocketid.url, made.token))
    assert user.id in {item.id for item in await own.list_users()}
    await pocketid.delete_api_key(user.id, made.key.id)
    with pytest.raises(NotFound):
        await pocketid.delete_api_key(user.id, made.key.id)
    changed = await pocketid.update_user(user.id, (await pocketid.get_user(user.id)).body({"disabled": True}))
    assert (changed.disabled, changed.is_admin, changed.email) == (True, True, "ann@example.com")
    with pytest.raises(Forbidden):
        await pocketid.create_api_key_for_user(user.id, "again", datetime.now(UTC) + timedelta(days=1))
    await pocketid.delete_user(user.id)
    assert await pocketid.find_user_named("ann") is None


async def test_a_metadata_client_is_refreshed_and_others_are_not(fake: Fake, pocketid: PocketID) -> None:
    url = "https://app.example/client.json"
    fake.place_cimd_client(url, "old", [])
    fake.documents[url] = {"client_name": "new", "redirect_uris": ["https://app.example/cb"]}
    assert (await pocketid.refresh_oidc_client_metadata(url)).name == "new"
    with pytest.raises(Refused):
        await pocketid.refresh_oidc_client_metadata("standard")


async def test_requests_are_counted_by_operation_and_told_with_their_result(
    fake: Fake, pocketid: PocketID, http: Calls
) -> None:
    told: list[tuple[str, str]] = []
    asking = PocketID(
        http, Server(pocketid.url, SecretText(fake.api_key)), lambda name, result, _s: told.append((name, result))
    )
    await asking.get_current_version()
    with pytest.raises(NotFound):
        await asking.get_oidc_client("nope")
    with pytest.raises(Refused):
        await asking.create_oidc_client({})
    assert told == [
        ("get_current_version", "success"),
        ("get_oidc_client", "not_found"),
        ("create_oidc_client", "error"),
    ]
    assert dict(asking.calls) == {"get_current_version": 1, "get_oidc_client": 1, "create_oidc_client": 1}


async def test_the_clock_of_the_server_is_noted(fake: Fake, pocketid: PocketID) -> None:
    fake.clock.offset = 300
    await pocketid.get_current_version()
    assert pocketid.date is not None
    assert timedelta(seconds=290) < pocketid.date - datetime.now(UTC) < timedelta(seconds=310)


async def test_the_first_use_of_a_key_by_many_is_no_wrong_key(fake: Fake, pocketid: PocketID, http: Calls) -> None:
    fake.refuse_first = 3
    asking = [PocketID(http, Server(pocketid.url, SecretText(fake.api_key))) for _ in range(4)]
    versions = await asyncio.gather(*[item.get_current_version() for item in asking])
    assert {item.text for item in versions} == {"2.14.0"}
