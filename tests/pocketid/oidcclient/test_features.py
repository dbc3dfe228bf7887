"""What hangs on a client: API access, SCIM, public keys, logos, metadata documents. A failure of one never delays a secret."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moorage.core.meta import Key
from moorage.kube.resources import CONFIG_MAPS
from moorage.pocketid.oidcclient.types import KIND, REFRESH

from .scene import KEY, NAMESPACE, Scene

AUDIENCE = "https://api.example.org"
DOCUMENT = "https://app.example.org/client.json"
JWK = {"kty": "EC", "crv": "P-256", "x": "AAAA", "y": "BBBB", "kid": "one", "alg": "ES256", "use": "sig"}


def access(name: str, **more: Any) -> dict[str, Any]:
    """One entry of apiAccess."""
    return {"apiRef": {"name": name}, **more}


def grants(here: Scene) -> dict[str, tuple[bool, bool, set[str], set[str]]]:
    """What the client holds, by API id."""
    found = here.fake.store.grants
    return {
        api: (item.user, item.client, set(item.user_permissions), set(item.client_permissions))
        for (api, _), item in found.items()
        if item.user or item.client
    }


# --- API access


@pytest.mark.case("PIDA1", "PIDA4", "PIDA8")
async def test_access_is_granted_by_key_and_told_in_the_secret(here: Scene) -> None:
    id = await here.api("orders", AUDIENCE, "read", "write")
    await here.make(apiAccess=[access("orders", clientPermissions=["read"], delegatedAccess=True)])
    await here.settle()
    read = next(item.id for item in here.fake.store.apis[id].permissions if item.key == "read")
    assert grants(here) == {id: (True, True, set(), {read})}
    found = await here.credentials()
    assert (found["resource"], found["scopes"]) == (AUDIENCE, "read")
    assert (found["resource_orders"], found["scopes_orders"]) == (AUDIENCE, "read")
    status = await here.status()
    assert (status["managedAPIs"], status["managedAPIPermissionIDs"]) == ([id], [read])
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


@pytest.mark.case("PIDA2", "PIDA3")
@pytest.mark.parametrize("case", ["permission", "not ready", "absent"])
async def test_access_that_cannot_be_granted_is_told_and_the_secret_is_there(here: Scene, case: str) -> None:
    if case != "absent":
        await here.api("orders", AUDIENCE, "read", ready=case != "not ready")
    wanted = ["nothing"] if case == "permission" else ["read"]
    await here.make(apiAccess=[access("orders", clientPermissions=wanted)])
    await here.settle()
    assert (await here.ready())[0] == "False/APIAccessReconcileError"
    assert grants(here) == {}
    await here.proven()


@pytest.mark.case("PIDA5", "PIDA6")
async def test_a_grant_that_is_not_declared_is_revoked(here: Scene) -> None:
    """One made by hand, and the one whose entry goes; then nothing is managed any more."""
    from tests.fakes.pocketid.model import Grant

    one, two = await here.api("one", AUDIENCE, "read"), await here.api("two", f"{AUDIENCE}/two", "read")
    await here.make(apiAccess=[access("one", clientPermissions=["read"])])
    await here.settle()
    here.fake.store.grants[two, here.server().id] = Grant(user=True)
    await here.settle()
    assert set(grants(here)) == {one}
    await here.edit(apiAccess=None)
    await here.settle()
    assert grants(here) == {}
    assert "managedAPIs" not in await here.status()
    here.fake.store.grants[two, here.server().id] = Grant(user=True)
    await here.settle()
    assert set(grants(here)) == {two}


@pytest.mark.case("PIDA6")
async def test_an_empty_list_holds_a_client_to_no_access_at_all(here: Scene) -> None:
    """As `callbackUrls: []` does; without a list what people granted by hand stays."""
    from tests.fakes.pocketid.model import Grant

    id = await here.api("orders", AUDIENCE, "read")
    await here.make(apiAccess=[])
    await here.settle()
    here.fake.store.grants[id, here.server().id] = Grant(client=True)
    await here.settle()
    assert grants(here) == {}
    assert "managedAPIs" not in await here.status()
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


# --- SCIM


@pytest.mark.case("PIDP1")
async def test_a_scim_provider_is_made_kept_and_taken_away(here: Scene) -> None:
    await here.secret("scim", token="scim-token")
    endpoint = {"endpoint": "https://scim.example.org", "tokenSecretRef": {"name": "scim", "key": "token"}}
    await here.make(scim=endpoint)
    await here.settle()
    (made,) = here.fake.store.providers.values()
    assert (made.endpoint, made.token) == ("https://scim.example.org", "scim-token")
    assert (await here.status())["scimProviderID"] == made.id
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []
    await here.edit(scim={"endpoint": "https://scim.example.org", "tokenSecretRef": None})
    await here.settle()
    assert next(iter(here.fake.store.providers.values())).token == ""
    await here.edit(scim=None)
    await here.settle()
    assert here.fake.store.providers == {}
    assert "scimProviderID" not in await here.status()


@pytest.mark.case("PIDP1")
async def test_a_scim_service_that_cannot_be_set_delays_no_secret(here: Scene) -> None:
    await here.make(scim={"endpoint": "https://s.example.org", "tokenSecretRef": {"name": "no", "key": "token"}})
    await here.settle()
    assert (await here.ready())[0] == "False/SCIMReconcileError"
    assert here.fake.store.providers == {}
    await here.proven()


@pytest.mark.case("PIDP1")
async def test_a_provider_whose_creation_was_cut_short_is_not_made_twice(here: Scene) -> None:
    here.fake.faults.add("drop_after", method="POST", path="*/scim/service-provider")
    await here.make(scim={"endpoint": "https://scim.example.org"})
    await here.settle()
    await here.settle()
    assert len(here.fake.store.providers) == 1
    assert (await here.ready())[0] == "True/Reconciled"


# --- public keys


def identity(*keys: dict[str, Any]) -> list[dict[str, Any]]:
    """One federated identity with these keys."""
    return [{"issuer": "https://ci.example.org", "publicKeys": list(keys)}]


async def config_map(here: Scene, text: str) -> dict[str, Any]:
    """A ConfigMap with keys; a reference to it."""
    body = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "keys", "namespace": NAMESPACE},
        "data": {"jwks": text},
    }
    await here.client.create(CONFIG_MAPS, body)
    return {"valueFrom": {"configMapKeyRef": {"name": "keys", "key": "jwks"}}}


@pytest.mark.case("PIDC11")
async def test_keys_of_all_sources_arrive_in_order_and_do_not_drift(here: Scene) -> None:
    here.fake.upgrade("2.17.0")
    await here.attach()
    ref = await config_map(here, json.dumps({"keys": [{**JWK, "kid": "two"}, {**JWK, "kid": "three"}]}))
    await here.make(federatedIdentities=identity({"value": {**JWK, "extra": "dropped"}}, ref))
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    kids = [key["kid"] for key in here.server().settings["federatedIdentities"][0]["publicKeys"]]
    assert kids == ["one", "two", "three"]
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []


async def test_private_material_never_leaves_the_cluster(here: Scene) -> None:
    """A signing key in a Secret by mistake: nothing is sent, nothing of it is told."""
    here.fake.upgrade("2.17.0")
    await here.attach()
    await here.secret("signing", key=json.dumps({"keys": [JWK, {**JWK, "d": "private-part-0123456789"}]}))
    ref = {"valueFrom": {"secretKeyRef": {"name": "signing", "key": "key"}}}
    here.fake.journal.clear()
    await here.make(federatedIdentities=identity(ref))
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/PublicKeyError"
    assert "private-part" not in message + repr(here.told)
    assert here.writes() == []


async def test_keys_that_resolve_to_nothing_are_an_error_and_change_nothing(here: Scene) -> None:
    here.fake.upgrade("2.17.0")
    await here.attach()
    await here.make(federatedIdentities=identity({"value": JWK}))
    await here.settle()
    gone = {"valueFrom": {"configMapKeyRef": {"name": "gone", "key": "jwks", "optional": True}}}
    await here.edit(federatedIdentities=identity(gone))
    here.fake.journal.clear()
    await here.settle()
    assert (await here.ready())[0] == "False/PublicKeyError"
    assert here.server().settings["federatedIdentities"][0]["publicKeys"] != []
    assert here.writes() == []


async def test_keys_are_not_sent_to_a_server_that_would_ignore_them(here: Scene) -> None:
    """It would trust the issuer's own address instead."""
    await here.make(federatedIdentities=identity({"value": JWK}))
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/UnsupportedVersion"
    assert "2.15" in message
    assert all(not client.settings["federatedIdentities"] for client in here.fake.store.clients.values())


# --- logos


def icon(name: str) -> str:
    """The URL of an icon."""
    return f"https://icons.example.org/{name}.png"


@pytest.mark.case("PIDL2", "PIDL5", "PIDL6", "PIDL11", "PIDL12")
async def test_a_logo_that_is_refused_costs_its_side_alone(here: Scene) -> None:
    """The other side is applied, everything else is written, nothing is Ready=False."""
    here.fake.logos[icon("dark")] = "missing"
    await here.make(
        description="pages", logo={"logoUrl": icon("{{name}}"), "darkLogoUrl": icon("dark"), "nameOverride": "book"}
    )
    await here.settle()
    status = await here.status()
    assert here.writes()[0] == "POST oidc/clients"
    assert (status["logoUrl"], status["logoReachable"]) == (icon("book"), True)
    assert ("darkLogoUrl" in status, status["darkLogoReachable"]) == (False, False)
    assert set(here.server().logos) == {"light"}
    assert here.server().settings["description"] == "pages"
    assert (await here.ready())[0] == "True/Reconciled"
    assert here.fake.downloads.count(icon("dark")) >= 1


@pytest.mark.case("PIDL6", "PIDL9")
async def test_a_refused_logo_is_not_tried_again_by_the_same_process(here: Scene) -> None:
    from tests.crashpoints import passes

    from moorage.pocketid.oidcclient.room import ROOM

    from .scene import fresh

    here.fake.logos[icon("x")] = "missing"
    await here.make(logo={"logoUrl": icon("x")})
    async with here.world() as world:
        await passes(ROOM, world, KEY)
        await here.edit(description="new")
        await fresh(here, world)
        await passes(ROOM, world, KEY)
    assert here.fake.downloads == [icon("x")]


@pytest.mark.case("PIDL7")
async def test_a_logo_that_moved_to_a_refused_url_is_deleted(here: Scene) -> None:
    await here.make(logo={"logoUrl": icon("a")})
    await here.settle()
    here.fake.logos[icon("b")] = "missing"
    await here.edit(logo={"logoUrl": icon("b")})
    await here.settle()
    assert here.server().logos == {}
    assert "logoUrl" not in await here.status()


@pytest.mark.case("PIDL8")
async def test_a_refused_url_that_is_still_the_applied_one_is_left_alone(here: Scene) -> None:
    """The logo was taken away by hand and cannot be fetched now: the record stays, nothing is deleted."""
    await here.make(logo={"logoUrl": icon("a")})
    await here.settle()
    here.server().logos.clear()
    here.fake.logos[icon("a")] = "missing"
    here.fake.journal.clear()
    await here.settle()
    assert (await here.status())["logoUrl"] == icon("a")
    assert not [line for line in here.writes() if line.startswith("DELETE")]


@pytest.mark.case("PIDL10")
async def test_a_logo_uploaded_by_hand_is_never_touched(here: Scene) -> None:
    await here.make()
    await here.settle()
    here.server().logos["light"] = ("image/png", b"mine")
    await here.settle()
    assert here.server().logos["light"] == ("image/png", b"mine")


@pytest.mark.case("PIDL5")
async def test_a_logo_that_is_declared_no_more_is_deleted_once(here: Scene) -> None:
    await here.make(logo={"logoUrl": icon("a")})
    await here.settle()
    await here.edit(logo=None)
    await here.settle()
    assert here.server().logos == {}
    here.server().logos["light"] = ("image/png", b"mine")
    await here.settle()
    assert here.server().logos["light"] == ("image/png", b"mine")


@pytest.mark.case("PIDL1", "PIDL3", "PIDL4")
async def test_the_templates_of_the_operator_are_a_default(here: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFAULT_LOGO_URL", icon("{{name}}"))
    await here.make()
    await here.settle()
    assert (await here.status())["logoUrl"] == icon("wiki")
    await here.edit(logo={"autoGenerate": False})
    await here.settle()
    assert here.server().logos == {}
    await here.edit(logoUrl=icon("deprecated"), logo={"logoUrl": icon("own")})
    await here.settle()
    assert (await here.status())["logoUrl"] == icon("deprecated")


# --- metadata documents


@pytest.mark.case("PIDF5", "PIDC2", "B75")
async def test_a_document_client_waits_for_the_application_and_is_then_adopted(here: Scene) -> None:
    """Nothing is created; of the record only what an administrator owns is written, once."""
    await here.make(clientID=DOCUMENT, callbackUrls=None, description="ours", skipConsent=True)
    await here.settle()
    assert (await here.ready())[0] == "False/AwaitingFirstAuthorization"
    assert here.writes() == []
    here.fake.place_cimd_client(DOCUMENT, "App", ["https://app.example.org/cb"])
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert [line.split()[0] for line in here.writes()] == ["PUT"]
    assert here.server().settings["description"] == "ours"
    assert here.server().settings["name"] == "App"
    status = await here.status()
    assert (status["clientType"], status["callbackUrls"]) == ("cimd", ["https://app.example.org/cb"])
    found = await here.credentials()
    assert found["client_id"] == DOCUMENT
    assert "client_secret" not in found
    here.fake.journal.clear()
    await here.settle()
    assert here.writes() == []
    here.server().settings |= {"name": "App 2", "callbackURLs": ["https://app.example.org/new"], "pkceEnabled": True}
    await here.settle()
    assert here.writes() == [], "what the document says now is no drift"
    assert (await here.status())["callbackUrls"] == ["https://app.example.org/new"]


@pytest.mark.case("PIDF6")
async def test_a_refresh_is_asked_for_once_even_when_it_fails(here: Scene) -> None:
    here.fake.place_cimd_client(DOCUMENT, "App", ["https://app.example.org/cb"])
    await here.make(clientID=DOCUMENT, callbackUrls=None)
    await here.settle()
    here.fake.journal.clear()
    await here.annotate(refresh_client_metadata="true")
    await here.once()
    assert (await here.ready())[0] == "False/MetadataRefreshError"
    stored = await here.stored()
    assert stored is not None
    assert REFRESH not in (stored["metadata"].get("annotations") or {})
    await here.settle()
    assert len([line for line in here.writes() if line.endswith("/refresh")]) == 1
    assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.case("PIDA7")
async def test_what_every_document_client_is_granted_is_reported(here: Scene) -> None:
    id = await here.api("orders", AUDIENCE, "read")
    here.fake.store.apis[id].cimd = True
    here.fake.place_cimd_client(DOCUMENT, "App", ["https://app.example.org/cb"])
    await here.make(clientID=DOCUMENT, callbackUrls=None)
    await here.settle()
    assert (await here.status()).get("cimdGrantedAPIs") == [AUDIENCE]
    assert "managedAPIs" not in await here.status()
    assert not [line for line in here.writes() if "apis" in line], "it is reported only"
    await here.client.delete(KIND.resource, Key(NAMESPACE, "wiki"))
    await here.settle()
    assert here.fake.store.clients == {}
