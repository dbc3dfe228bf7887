"""A recorded client that was deleted and made anew by hand under the same declared id is another one: it is adopted only where clients may be."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Client

from moorage.core.meta import JsonObject, Key
from moorage.kube.errors import NotFound
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.types import KIND

from .scene import CALLBACK, KEY, Scene
from .test_adoption import SETTINGS, there
from .test_other_instances import place, server
from .test_powers import NOWHERE, TENANT, authenticates, looked, said

pytestmark = pytest.mark.case("B74")
THEIRS = "the-admins-own-secret-xx"
SOURCE = {"clientSecretRef": {"name": "source", "key": "value"}}
VALUE = "declared-by-the-tenant-01"
each = pytest.mark.parametrize("spec", [{}, SOURCE], ids=["own", "declared"])


async def made(here: Scene, key: Key = TENANT, **spec: Any) -> JsonObject:
    """A client with a declared id, Ready."""
    source = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "source", "namespace": key.namespace}}
    await here.client.create(SECRETS, {**source, "stringData": {"value": VALUE}})
    await place(here, key.namespace, KIND, key.name, {"clientID": "wiki-app", "callbackUrls": [CALLBACK], **spec})
    await here.settle(key)
    found = await here.client.get(KIND.resource, key)
    assert said(found) == "True/Reconciled"
    return found


def replaced(here: Scene, *secrets: str, **settings: object) -> Client:
    """Somebody deletes it at the server and makes one of that id."""
    here.later(minutes=1)
    here.fake.store.delete_client("wiki-app")
    client = there(here, "wiki-app", **{"isGroupRestricted": True, **settings})
    for secret in secrets:
        here.fake.place_legacy_secret("wiki-app", secret)
        client.secrets[-1].prefix = secret[:4]
    here.told.clear()
    here.fake.journal.clear()
    return client


@each
@pytest.mark.parametrize("secrets", [(THEIRS,), ()], ids=["a secret", "no secret"])
async def test_a_tenant_does_not_have_what_was_made_in_its_place(
    admitting: Scene, spec: JsonObject, secrets: tuple[str, ...]
) -> None:
    await made(admitting, **spec)
    client = replaced(admitting, *secrets)
    found = await looked(admitting)
    assert said(found) == "False/NotPermitted"
    assert "clientID" not in found["status"]
    assert [event.reason for event in admitting.told] == ["ClientLost", "NotPermitted"]
    assert said(await looked(admitting)) == "False/NotPermitted"
    await admitting.client.delete(KIND.resource, TENANT)
    await admitting.settle(TENANT)
    with pytest.raises(NotFound):
        await admitting.client.get(KIND.resource, TENANT)
    assert admitting.writes() == []
    assert client.settings == {**SETTINGS, "isGroupRestricted": True}
    assert all(admitting.fake.authenticates("wiki-app", secret) for secret in secrets)


@each
async def test_where_the_instance_trusts_the_namespace_it_is_adopted_and_told(
    admitting: Scene, spec: JsonObject
) -> None:
    await made(admitting, KEY, **spec)
    replaced(admitting, THEIRS)
    await admitting.settle()
    assert (await admitting.ready())[0] == "True/Reconciled"
    assert [event.reason for event in admitting.told][-2:] == ["ClientLost", "ClientAdopted"]
    await admitting.proven()
    assert not admitting.fake.authenticates("wiki-app", THEIRS)
    admitting.told.clear()
    admitting.fake.journal.clear()
    await admitting.once()
    assert (admitting.writes(), admitting.told) == ([], [])


@each
@pytest.mark.case("PIDS16")
async def test_a_secret_that_was_replaced_by_hand_is_replaced_again_as_ever(admitting: Scene, spec: JsonObject) -> None:
    """It is the client that it was: what it is called and where it leads is as the status saw it."""
    await made(admitting, **spec)
    admitting.fake.store.clients["wiki-app"].secrets.clear()
    admitting.fake.place_legacy_secret("wiki-app", THEIRS)
    admitting.fake.store.clients["wiki-app"].secrets[-1].prefix = THEIRS[:4]
    assert said(await looked(admitting)) == "True/Reconciled"
    assert await authenticates(admitting)
    assert not admitting.fake.authenticates("wiki-app", THEIRS)


@each
async def test_settings_that_were_edited_by_hand_are_put_right_as_ever(admitting: Scene, spec: JsonObject) -> None:
    await made(admitting, **spec)
    client = admitting.fake.store.clients["wiki-app"]
    client.settings["name"], client.settings["callbackURLs"] = "Other", ["https://other.example.org/cb"]
    assert said(await looked(admitting)) == "True/Reconciled"
    assert (client.settings["name"], client.settings["callbackURLs"]) == ("wiki", [CALLBACK])


@each
async def test_a_secret_and_settings_that_we_changed_before_a_crash_are_ours(
    admitting: Scene, spec: JsonObject
) -> None:
    """The status is as it was before both; the Secret tells."""
    before = await made(admitting, **spec)
    await admitting.client.patch(KIND.resource, TENANT, {"spec": {"name": "Renamed"}})
    note = {"metadata": {"annotations": {"pocketid.internal/regenerate-client-secret": "true"}}}
    await admitting.client.patch(KIND.resource, TENANT, note)
    admitting.later(minutes=1)
    await admitting.settle(TENANT)
    kept = {name: before["status"].get(name) for name in ("name", "secrets", "clientSecret", "lastRotatedAt")}
    await admitting.client.patch(KIND.resource, TENANT, {"status": kept}, subresource="status")
    assert said(await looked(admitting)) == "True/Reconciled"
    assert await authenticates(admitting)


# --- nobody looked for a while

PUBLIC = {"isPublic": True}
kinds = pytest.mark.parametrize("spec", [{}, SOURCE, PUBLIC], ids=["own", "declared", "public"])
SAME = {"name": "wiki", "callbackURLs": [CALLBACK], "logoutCallbackURLs": []}


async def led_away(here: Scene, **spec: Any) -> None:
    """A tenant's client, whose resource selects no instance by now."""
    await made(here, **spec)
    await here.client.patch(KIND.resource, TENANT, {"spec": NOWHERE})
    assert said(await looked(here)) == "False/InstanceSelectionError"


async def led_back(here: Scene) -> str:
    """What its controller says once it selects the instance again."""
    await here.client.patch(KIND.resource, TENANT, {"spec": {"instanceSelector": None, "isPublic": False}})
    return said(await looked(here))


@kinds
async def test_who_looked_away_does_not_have_what_was_made_meanwhile(admitting: Scene, spec: JsonObject) -> None:
    """Also where it is called and leads as the tenant had it declared: that proves nothing in the tenant's favour."""
    await led_away(admitting, **spec)
    client = replaced(admitting, THEIRS, **SAME)
    assert await led_back(admitting) == "False/NotPermitted"
    found = await looked(admitting)
    assert said(found) == "False/NotPermitted"
    assert not {"clientID", "unproven"} & set(found["status"])
    await admitting.client.delete(KIND.resource, TENANT)
    await admitting.settle(TENANT)
    assert admitting.writes() == []
    assert client.settings["isGroupRestricted"] is True
    assert admitting.fake.authenticates("wiki-app", THEIRS)


@each
async def test_who_looked_away_has_what_is_still_there(admitting: Scene, spec: JsonObject) -> None:
    """Its secret tells, whatever people edited meanwhile."""
    await led_away(admitting, **spec)
    admitting.later(days=20)
    admitting.fake.store.clients["wiki-app"].settings["name"] = "Other"
    assert await led_back(admitting) == "True/Reconciled"
    assert "unproven" not in (await looked(admitting))["status"]
    assert await authenticates(admitting)


async def test_a_public_client_outlives_a_server_that_does_not_answer(admitting: Scene) -> None:
    """That is nobody's way to look away."""
    await made(admitting, **PUBLIC)
    admitting.fake.faults.add("status", status=503, times=-1)
    assert said(await looked(admitting)) == "False/GetError"
    await admitting.attach()
    assert said(await looked(admitting)) == "False/InstanceNotReady"
    admitting.fake.faults.clear()
    await admitting.attach()
    assert said(await looked(admitting)) == "True/Reconciled"


@kinds
async def test_a_deletion_after_that_leaves_what_was_made_meanwhile(admitting: Scene, spec: JsonObject) -> None:
    await led_away(admitting, **spec)
    replaced(admitting, THEIRS, **SAME)
    await admitting.client.delete(KIND.resource, TENANT)
    await admitting.settle(TENANT)
    assert not await admitting.is_there(TENANT)
    assert admitting.writes() == []
    assert [event.reason for event in admitting.told] == ["ClientOrphaned"]


@each
async def test_a_deletion_after_that_takes_what_is_still_there(admitting: Scene, spec: JsonObject) -> None:
    await led_away(admitting, **spec)
    await admitting.client.delete(KIND.resource, TENANT)
    await admitting.settle(TENANT)
    assert admitting.fake.store.clients == {}


@kinds
async def test_a_move_after_that_leaves_what_was_made_meanwhile(admitting: Scene, spec: JsonObject) -> None:
    await led_away(admitting, **spec)
    replaced(admitting, THEIRS, **SAME)
    other = Fake()
    async with serving(other) as url:
        await server(admitting, TENANT.namespace, url, other, team="own")
        selector = {"instanceSelector": {"matchLabels": {"team": "own"}}}
        await admitting.client.patch(KIND.resource, TENANT, {"spec": selector})
        assert said(await looked(admitting)) == "True/Reconciled"
    assert admitting.writes() == []
    assert "ClientOrphaned" in [event.reason for event in admitting.told]


@kinds
async def test_a_move_that_does_not_end_is_no_way_to_hold_an_id(admitting: Scene, spec: JsonObject) -> None:
    """The tenant's own server refuses to make the client for weeks."""
    await made(admitting, **spec)
    other = Fake()
    async with serving(other) as url:
        await server(admitting, TENANT.namespace, url, other, team="own")
        other.faults.add("status", method="POST", status=400, code="validation_failed", times=-1)
        own = {"instanceSelector": {"matchLabels": {"team": "own"}}}
        await admitting.client.patch(KIND.resource, TENANT, {"spec": own})
        assert said(await looked(admitting)) == "False/APIClientError"
        client = replaced(admitting, THEIRS, **SAME)
        assert await led_back(admitting) == "False/NotPermitted"
    assert client.settings["isGroupRestricted"] is True
    assert admitting.writes() == []


async def test_a_public_client_that_was_made_anew_with_a_secret_is_another(admitting: Scene) -> None:
    """And elsewhere than where the public one led: nobody looked away, no pass was in between."""
    await made(admitting, **PUBLIC)
    replaced(admitting, THEIRS)
    assert said(await looked(admitting)) == "False/NotPermitted"
    assert admitting.writes() == []
