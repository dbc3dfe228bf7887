"""A recorded client that was deleted and made anew by hand under the same declared id is another one: it is adopted only where clients may be."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.pocketid import Fake, serving
from tests.fakes.pocketid.model import Client

from moorage.core.meta import JsonObject, Key
from moorage.kube.errors import NotFound
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.types import KIND

from .scene import CALLBACK, KEY, Scene, scene
from .test_adoption import SETTINGS, there
from .test_other_instances import namespace, place, server
from .test_powers import NOWHERE, TENANT, authenticates, looked, said

pytestmark = pytest.mark.case("B74")
THEIRS = "the-admins-own-secret-xx"
SOURCE = {"clientSecretRef": {"name": "source", "key": "value"}}
VALUE = "declared-by-the-tenant-01"
each = pytest.mark.parametrize("spec", [{}, SOURCE], ids=["own", "declared"])


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene with a namespace that the instance admits."""
    async with scene(tmp_path) as made:
        await namespace(made, TENANT.namespace)
        yield made


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
    apart: Scene, spec: JsonObject, secrets: tuple[str, ...]
) -> None:
    await made(apart, **spec)
    client = replaced(apart, *secrets)
    found = await looked(apart)
    assert said(found) == "False/NotPermitted"
    assert "clientID" not in found["status"]
    assert [event.reason for event in apart.told] == ["ClientLost", "NotPermitted"]
    assert said(await looked(apart)) == "False/NotPermitted"
    await apart.client.delete(KIND.resource, TENANT)
    await apart.settle(TENANT)
    with pytest.raises(NotFound):
        await apart.client.get(KIND.resource, TENANT)
    assert apart.writes() == []
    assert client.settings == {**SETTINGS, "isGroupRestricted": True}
    assert all(apart.fake.authenticates("wiki-app", secret) for secret in secrets)


@each
async def test_where_the_instance_trusts_the_namespace_it_is_adopted_and_told(apart: Scene, spec: JsonObject) -> None:
    await made(apart, KEY, **spec)
    replaced(apart, THEIRS)
    await apart.settle()
    assert (await apart.ready())[0] == "True/Reconciled"
    assert [event.reason for event in apart.told][-2:] == ["ClientLost", "ClientAdopted"]
    await apart.proven()
    assert not apart.fake.authenticates("wiki-app", THEIRS)
    apart.told.clear()
    apart.fake.journal.clear()
    await apart.once()
    assert (apart.writes(), apart.told) == ([], [])


@each
@pytest.mark.case("PIDS16")
async def test_a_secret_that_was_replaced_by_hand_is_replaced_again_as_ever(apart: Scene, spec: JsonObject) -> None:
    """It is the client that it was: what it is called and where it leads is as the status saw it."""
    await made(apart, **spec)
    apart.fake.store.clients["wiki-app"].secrets.clear()
    apart.fake.place_legacy_secret("wiki-app", THEIRS)
    apart.fake.store.clients["wiki-app"].secrets[-1].prefix = THEIRS[:4]
    assert said(await looked(apart)) == "True/Reconciled"
    assert await authenticates(apart)
    assert not apart.fake.authenticates("wiki-app", THEIRS)


@each
async def test_settings_that_were_edited_by_hand_are_put_right_as_ever(apart: Scene, spec: JsonObject) -> None:
    await made(apart, **spec)
    client = apart.fake.store.clients["wiki-app"]
    client.settings["name"], client.settings["callbackURLs"] = "Other", ["https://other.example.org/cb"]
    assert said(await looked(apart)) == "True/Reconciled"
    assert (client.settings["name"], client.settings["callbackURLs"]) == ("wiki", [CALLBACK])


@each
async def test_a_secret_and_settings_that_we_changed_before_a_crash_are_ours(apart: Scene, spec: JsonObject) -> None:
    """The status is as it was before both; the Secret tells."""
    before = await made(apart, **spec)
    await apart.client.patch(KIND.resource, TENANT, {"spec": {"name": "Renamed"}})
    note = {"metadata": {"annotations": {"pocketid.internal/regenerate-client-secret": "true"}}}
    await apart.client.patch(KIND.resource, TENANT, note)
    apart.later(minutes=1)
    await apart.settle(TENANT)
    kept = {name: before["status"].get(name) for name in ("name", "secrets", "clientSecret", "lastRotatedAt")}
    await apart.client.patch(KIND.resource, TENANT, {"status": kept}, subresource="status")
    assert said(await looked(apart)) == "True/Reconciled"
    assert await authenticates(apart)


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
async def test_who_looked_away_does_not_have_what_was_made_meanwhile(apart: Scene, spec: JsonObject) -> None:
    """Also where it is called and leads as the tenant had it declared: that proves nothing in the tenant's favour."""
    await led_away(apart, **spec)
    client = replaced(apart, THEIRS, **SAME)
    assert await led_back(apart) == "False/NotPermitted"
    found = await looked(apart)
    assert said(found) == "False/NotPermitted"
    assert not {"clientID", "unproven"} & set(found["status"])
    await apart.client.delete(KIND.resource, TENANT)
    await apart.settle(TENANT)
    assert apart.writes() == []
    assert client.settings["isGroupRestricted"] is True
    assert apart.fake.authenticates("wiki-app", THEIRS)


@each
async def test_who_looked_away_has_what_is_still_there(apart: Scene, spec: JsonObject) -> None:
    """Its secret tells, whatever people edited meanwhile."""
    await led_away(apart, **spec)
    apart.later(days=20)
    apart.fake.store.clients["wiki-app"].settings["name"] = "Other"
    assert await led_back(apart) == "True/Reconciled"
    assert "unproven" not in (await looked(apart))["status"]
    assert await authenticates(apart)


async def test_a_public_client_outlives_a_server_that_does_not_answer(apart: Scene) -> None:
    """That is nobody's way to look away."""
    await made(apart, **PUBLIC)
    apart.fake.faults.add("status", status=503, times=-1)
    assert said(await looked(apart)) == "False/GetError"
    await apart.attach()
    assert said(await looked(apart)) == "False/InstanceNotReady"
    apart.fake.faults.clear()
    await apart.attach()
    assert said(await looked(apart)) == "True/Reconciled"


@kinds
async def test_a_deletion_after_that_leaves_what_was_made_meanwhile(apart: Scene, spec: JsonObject) -> None:
    await led_away(apart, **spec)
    replaced(apart, THEIRS, **SAME)
    await apart.client.delete(KIND.resource, TENANT)
    await apart.settle(TENANT)
    assert not await apart.is_there(TENANT)
    assert apart.writes() == []
    assert [event.reason for event in apart.told] == ["ClientOrphaned"]


@each
async def test_a_deletion_after_that_takes_what_is_still_there(apart: Scene, spec: JsonObject) -> None:
    await led_away(apart, **spec)
    await apart.client.delete(KIND.resource, TENANT)
    await apart.settle(TENANT)
    assert apart.fake.store.clients == {}


@kinds
async def test_a_move_after_that_leaves_what_was_made_meanwhile(apart: Scene, spec: JsonObject) -> None:
    await led_away(apart, **spec)
    replaced(apart, THEIRS, **SAME)
    other = Fake()
    async with serving(other) as url:
        await server(apart, TENANT.namespace, url, other, team="own")
        selector = {"instanceSelector": {"matchLabels": {"team": "own"}}}
        await apart.client.patch(KIND.resource, TENANT, {"spec": selector})
        assert said(await looked(apart)) == "True/Reconciled"
    assert apart.writes() == []
    assert "ClientOrphaned" in [event.reason for event in apart.told]


@kinds
async def test_a_move_that_does_not_end_is_no_way_to_hold_an_id(apart: Scene, spec: JsonObject) -> None:
    """The tenant's own server refuses to make the client for weeks."""
    await made(apart, **spec)
    other = Fake()
    async with serving(other) as url:
        await server(apart, TENANT.namespace, url, other, team="own")
        other.faults.add("status", method="POST", status=400, code="validation_failed", times=-1)
        own = {"instanceSelector": {"matchLabels": {"team": "own"}}}
        await apart.client.patch(KIND.resource, TENANT, {"spec": own})
        assert said(await looked(apart)) == "False/APIClientError"
        client = replaced(apart, THEIRS, **SAME)
        assert await led_back(apart) == "False/NotPermitted"
    assert client.settings["isGroupRestricted"] is True
    assert apart.writes() == []


async def test_a_public_client_that_was_made_anew_with_a_secret_is_another(apart: Scene) -> None:
    """And elsewhere than where the public one led: nobody looked away, no pass was in between."""
    await made(apart, **PUBLIC)
    replaced(apart, THEIRS)
    assert said(await looked(apart)) == "False/NotPermitted"
    assert apart.writes() == []
