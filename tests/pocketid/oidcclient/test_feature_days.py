"""What hangs on a client, on its bad days: logos over a day, grants that the server narrows, SCIM providers that nobody remembers."""

from __future__ import annotations

import pytest
from tests.crashpoints import Fence, Killed, passes
from tests.fakes.pocketid.model import Api, Permission, Provider

from moorage.core.meta import Key
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.oidcclient.room import ROOM
from moorage.runtime.walk import Walk

from .hours import running
from .scene import KEY, Scene, condition, fresh, resource
from .test_features import AUDIENCE, access, grants, icon

SCIM = {"endpoint": "https://scim.example.org"}


# --- all of it in the pass that makes the client


async def test_a_client_is_ready_with_all_that_hangs_on_it_or_not_at_all(here: Scene) -> None:
    """One pass from nothing: Ready means SCIM, access, logos and groups as well."""
    id = await here.api("orders", AUDIENCE, "read")
    here.server_group("staff")
    await here.make(
        scim=SCIM, apiAccess=[access("orders", clientPermissions=["read"])], logo={"logoUrl": icon("a"), "darkLogoUrl": icon("b")},
        allowedUserGroups=[{"groupName": "staff"}],
    )  # fmt: skip
    await here.once()
    assert (await here.ready())[0] == "True/Reconciled"
    assert set(grants(here)) == {id}
    assert len(here.fake.store.providers) == 1
    assert set(here.server().logos) == {"light", "dark"}
    assert len(here.server().groups) == 1
    status = await here.status()
    assert status["managedAPIs"] == [id]
    assert status["scimProviderID"] in here.fake.store.providers


async def test_without_a_secret_nothing_waits_for_the_next_look_either(here: Scene) -> None:
    """No write to Kubernetes wakes the client again: what is declared is done all the same."""
    await here.api("orders", AUDIENCE, "read")
    await here.make(
        scim=SCIM, apiAccess=[access("orders", delegatedPermissions=["read"])], isPublic=True, secret={"enabled": False}
    )
    await here.once()
    assert len(grants(here)) == len(here.fake.store.providers) == 1


# --- logos


@pytest.mark.case("PIDL9")
async def test_a_refused_url_is_tried_once_a_day_each_by_itself(here: Scene) -> None:
    """One download a day for a missing icon; a restart clears the memory."""
    x, y = icon("x"), icon("y")
    here.fake.logos |= {x: "missing", y: "missing"}
    await here.make(logo={"logoUrl": x})
    async with here.world() as world:
        tried = []
        for hours in (0, 12, 11.9, 0.2, 11.7, 0.2, 11):
            here.later(hours=hours)
            if hours == 12:
                await here.edit(logo={"darkLogoUrl": y})
                await fresh(here, world)
            await passes(ROOM, world, KEY)
            tried.append([item.rpartition("/")[2][0] for item in here.fake.downloads])
            here.fake.downloads.clear()
        assert tried == [["x"], ["y"], [], ["x"], [], ["y"], []]
    here.fake.logos.clear()
    await here.settle()
    assert set(here.server().logos) == {"light", "dark"}
    assert (await here.status())["darkLogoReachable"] is True


@pytest.mark.case("PIDL5", "PIDL10")
async def test_a_client_with_a_light_url_keeps_a_dark_logo_that_was_uploaded(here: Scene) -> None:
    await here.make(logo={"logoUrl": icon("a")})
    await here.settle()
    here.server().logos["dark"] = ("image/png", b"mine")
    await here.edit(logo=None)
    await here.settle()
    assert here.server().logos == {"dark": ("image/png", b"mine")}
    status = await here.status()
    assert not {"logoUrl", "darkLogoUrl", "logoReachable", "darkLogoReachable"} & status.keys()


@pytest.mark.case("PIDL1")
async def test_precedence_is_by_side(here: Scene) -> None:
    """A deprecated light URL says nothing about the dark side; its text is taken as it is."""
    odd = "https://icons.example.org/{{name}}.svg"
    await here.make(logoUrl=odd, logo={"logoUrl": icon("own"), "darkLogoUrl": icon("{{name}}-dark")})
    await here.settle()
    status = await here.status()
    assert (status["logoUrl"], status["darkLogoUrl"]) == (odd, icon("wiki-dark"))


@pytest.mark.case("PIDL3")
async def test_a_side_without_template_is_not_generated(here: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFAULT_LOGO_URL", icon("{{name}}"))
    monkeypatch.setenv("DEFAULT_DARK_LOGO_URL", "")
    await here.make()
    await here.settle()
    assert set(here.server().logos) == {"light"}
    assert "darkLogoReachable" not in await here.status()


@pytest.mark.case("PIDL4")
async def test_generation_that_is_off_for_all_can_be_on_for_one(here: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEFAULT_LOGO_URL", icon("{{name}}"))
    monkeypatch.setenv("AUTOGENERATE_LOGOS", "false")
    await here.make()
    await here.settle()
    assert here.fake.downloads == []
    await here.edit(logo={"autoGenerate": True})
    await here.settle()
    assert here.fake.downloads == [icon("wiki")]


@pytest.mark.case("PIDL6", "PIDL11")
@pytest.mark.parametrize("outcome", ["missing", "slow", "private", "type", "large"])
async def test_every_refusal_of_a_logo_fails_nothing_else(here: Scene, outcome: str) -> None:
    here.fake.logos[icon("a")] = outcome
    await here.make(description="kept", logo={"logoUrl": icon("a"), "darkLogoUrl": icon("b")})
    await here.settle()
    status = await here.status()
    assert (await here.ready())[0] == "True/Reconciled"
    assert (status["logoReachable"], status["darkLogoReachable"]) == (False, True)
    assert here.server().settings["description"] == "kept"
    assert "LogoRefused" in [event.reason for event in here.told]


@pytest.mark.case("PIDL6")
async def test_a_server_that_fails_on_a_logo_has_not_refused_it(here: Scene) -> None:
    """A 500 or a broken wire is no verdict about the URL: it is tried again, and not after a day."""
    await here.make()
    await here.settle()
    here.fake.faults.add("status", method="PUT", path="*/oidc/clients/*")
    await here.edit(logo={"logoUrl": icon("a")})
    async with here.world() as world:
        await Walk(ROOM, world)(KEY)
        assert (await here.ready())[0] == "False/ReconcileError"
        await passes(ROOM, world, KEY)
    assert (await here.status())["logoReachable"] is True


# --- API access


@pytest.mark.case("PIDA1")
async def test_a_grant_that_the_server_narrows_is_told_and_not_called_ready(here: Scene) -> None:
    """The permission is gone from the server and the PocketIDAPI does not know yet: one write a pass, the rest is granted."""
    id = await here.api("orders", AUDIENCE, "read", "write")
    kept, lost = here.fake.store.apis[id].permissions
    here.fake.store.apis[id].permissions.remove(lost)
    await here.make(apiAccess=[access("orders", clientPermissions=["read", "write"])])
    for _ in range(3):
        here.fake.journal.clear()
        await here.once()
        ready, message = await here.ready()
        assert ready == "False/APIAccessReconcileError"
        assert "orders" in message
        assert len([line for line in here.writes() if line.startswith("PUT apis/")]) == 1
    assert grants(here)[id] == (False, True, set(), {kept.id})
    await here.proven()
    here.fake.store.apis[id].permissions.append(lost)
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert grants(here)[id] == (False, True, set(), {kept.id, lost.id})


async def test_a_narrowed_grant_is_sent_again_once_an_hour(here: Scene) -> None:
    """It is told all the time; every look that says so writes nothing."""
    id = await here.api("orders", AUDIENCE, "read", "write")
    here.fake.store.apis[id].permissions.pop()
    async with running(here) as hours:
        await here.make(apiAccess=[access("orders", clientPermissions=["read", "write"])])
        await hours.run(600)
        assert (await here.ready())[0] == "False/APIAccessReconcileError"
        sent = [line for line in here.writes() if line.startswith("PUT apis/")]
        assert len(sent) == 1
        await hours.run(3600)
        assert len([line for line in here.writes() if line.startswith("PUT apis/")]) == 2


@pytest.mark.case("PIDA5")
async def test_a_grant_that_somebody_narrowed_by_hand_is_restored(here: Scene) -> None:
    id = await here.api("orders", AUDIENCE, "read", "write")
    await here.make(apiAccess=[access("orders", clientPermissions=["read", "write"])])
    await here.settle()
    held = here.fake.store.grants[id, here.server().id]
    whole = set(held.client_permissions)
    held.client_permissions.pop()
    held.user = True
    await here.settle()
    assert grants(here)[id] == (False, True, set(), whole)


@pytest.mark.case("PIDA4")
@pytest.mark.parametrize(("entry", "held"), [
    ({"delegatedAccess": True}, (True, False)), ({"clientAccess": True}, (False, True)),
    ({"delegatedAccess": True, "clientAccess": True}, (True, True)), ({}, None), ({"clientAccess": False}, None),
], ids=["delegated", "client", "both", "neither", "off"])  # fmt: skip
async def test_bare_access_is_what_it_says(here: Scene, entry: dict[str, bool], held: tuple[bool, bool] | None) -> None:
    """An entry that grants nothing writes nothing, and the Secret has no audience of it."""
    id = await here.api("orders", AUDIENCE, "read")
    await here.make(apiAccess=[access("orders", **entry)])
    await here.settle()
    assert {api: flows[:2] for api, flows in grants(here).items()} == ({id: held} if held else {})
    found = await here.credentials()
    assert ("resource" in found, "scopes" in found) == (held is not None, False)


@pytest.mark.case("PIDA8")
async def test_a_second_audience_takes_the_plain_pair_away_and_tokens_are_for_the_one_that_is_asked_for(
    here: Scene,
) -> None:
    """What stands in the Secret is what a token request needs, for each API."""
    await here.api("orders", AUDIENCE, "read")
    await here.api("stock", f"{AUDIENCE}/stock", "count", "move")
    entries = [access("orders", clientPermissions=["read"]), access("stock", clientPermissions=["count", "move"])]
    await here.make(apiAccess=entries[:1])
    await here.settle()
    assert (await here.credentials())["resource"] == AUDIENCE
    await here.edit(apiAccess=entries)
    await here.settle()
    found = await here.credentials()
    assert not {"resource", "scopes"} & found.keys()
    for name in ("orders", "stock"):
        form = {"resource": found[f"resource_{name}"], "scope": found[f"scopes_{name}"]}
        assert await here.token(found["client_id"], found["client_secret"], **form) == 200
    assert await here.token(found["client_id"], found["client_secret"], resource=AUDIENCE, scope="move") == 400
    await here.edit(apiAccess=entries[1:])
    await here.settle()
    found = await here.credentials()
    assert found["resource"] == f"{AUDIENCE}/stock"
    assert await here.token(found["client_id"], found["client_secret"], resource=AUDIENCE) == 403


@pytest.mark.case("PIDA9")
async def test_one_api_name_in_two_namespaces_is_refused_and_the_secret_stays_as_it_was(here: Scene) -> None:
    """Past admission: one key of the Secret cannot hold two audiences."""
    await here.make()
    await here.settle()
    before = await here.credentials()
    await here.api("orders", AUDIENCE, "read")
    await elsewhere(here, "orders", f"{AUDIENCE}/other")
    await here.edit(apiAccess=[
        access("orders", clientPermissions=["read"]), {"apiRef": {"name": "orders", "namespace": "default"}, "clientPermissions": ["read"]},
    ])  # fmt: skip
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/SecretReconcileError"
    assert "resource_orders" in message
    assert await here.credentials() == before


@pytest.mark.case("PIDA5")
async def test_an_api_says_which_namespaces_may_have_its_permissions(here: Scene) -> None:
    """Who is not named gets nothing, and loses what it had, whatever else is wrong with its declaration."""
    await elsewhere(here, "orders", AUDIENCE)
    named = Key("default", "orders")
    wanted = {"apiRef": {"name": "orders", "namespace": "default"}, "clientPermissions": ["read"]}
    await here.client.patch(API.resource, named, {"spec": {"allowedNamespaces": []}})
    await here.make(apiAccess=[wanted])
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/APIAccessReconcileError"
    assert "PocketIDAPI default/orders admits no clients of namespace apps: spec.allowedNamespaces there" in message
    assert here.fake.store.grants == {}
    await here.client.patch(API.resource, named, {"spec": {"allowedNamespaces": ["apps"]}})
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    found = await here.credentials()
    form = {"resource": found["resource"], "scope": "read"}
    assert await here.token(found["client_id"], found["client_secret"], **form) == 200
    await here.edit(apiAccess=[wanted, access("missing", clientPermissions=["read"])])
    await here.settle()
    assert await here.token(found["client_id"], found["client_secret"], **form) == 200
    await here.client.patch(API.resource, named, {"spec": {"allowedNamespaces": ["others"]}})
    await here.settle()
    assert here.fake.store.grants == {}
    assert await here.token(found["client_id"], found["client_secret"], **form) == 403


async def elsewhere(here: Scene, name: str, audience: str) -> None:
    """A PocketIDAPI of another namespace, Ready."""
    made = Api(name, audience, here.fake.clock.now(), [Permission("read", "read", "")])
    here.fake.store.apis[made.id] = made
    body = resource(API, name, {"resource": audience})
    body["metadata"]["namespace"] = "default"
    await here.client.create(API.resource, body)
    listed = [{"id": item.id, "key": item.key, "name": item.name} for item in made.permissions]
    status = {"apiID": made.id, "resource": audience, "permissions": listed, "conditions": [condition()]}
    await here.client.patch(API.resource, Key("default", name), {"status": status}, subresource="status")


# --- SCIM


@pytest.mark.case("PIDP1")
async def test_a_provider_that_is_there_is_adopted_and_one_that_somebody_deleted_is_made_again(here: Scene) -> None:
    await here.make()
    await here.settle()
    there = Provider("https://old.example.org", "old", here.server().id, here.fake.clock.now())
    here.fake.store.providers[there.id] = there
    await here.edit(scim=SCIM)
    await here.settle()
    assert [(item.id, item.endpoint, item.token) for item in here.fake.store.providers.values()] == [
        (there.id, SCIM["endpoint"], "")
    ]
    here.fake.store.providers.clear()
    await here.settle()
    (made,) = here.fake.store.providers
    assert (await here.status())["scimProviderID"] == made != there.id


@pytest.mark.case("PIDP1")
async def test_a_provider_of_a_pass_that_was_killed_goes_although_nothing_remembers_it(here: Scene) -> None:
    """Made, killed before the status was written, and then declared no more."""
    await here.make()
    await here.settle()
    await here.edit(scim=SCIM)
    with pytest.raises(Killed):
        async with here.world(Fence(1)) as world:
            await passes(ROOM, world, KEY)
    assert len(here.fake.store.providers) == 1
    assert "scimProviderID" not in await here.status()
    await here.edit(scim=None)
    await here.settle()
    assert here.fake.store.providers == {}


@pytest.mark.case("PIDP1")
async def test_a_provider_that_somebody_made_for_a_settled_client_is_left_alone(here: Scene) -> None:
    """Without spec.scim it is not ours, and nobody asks for it."""
    await here.make()
    await here.settle()
    there = Provider("https://ui.example.org", "t", here.server().id, here.fake.clock.now())
    here.fake.store.providers[there.id] = there
    here.fake.journal.clear()
    await here.settle()
    assert list(here.fake.store.providers) == [there.id]
    assert here.fake.journal.lines() == ["GET /api/oidc/clients"]


@pytest.mark.case("PIDP1")
async def test_a_token_that_changes_is_sent_and_one_that_is_lost_leaves_the_provider(here: Scene) -> None:
    await here.secret("scim", token="one")
    await here.make(scim={**SCIM, "tokenSecretRef": {"name": "scim", "key": "token"}})
    await here.settle()
    await here.secret("scim", token="two")
    await here.settle()
    (provider,) = here.fake.store.providers.values()
    assert provider.token == "two"
    await here.edit(scim={"tokenSecretRef": {"name": "gone", "key": "token"}})
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/SCIMReconcileError"
    assert "gone/token" in message
    assert provider.token == "two"
