"""Clients of a namespace that only uses an instance: one that exists is not taken over, unless the instance says so; a new one is known as ours."""

from __future__ import annotations

import base64
import contextlib
import copy
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes
from tests.fakes.pocketid import Fake, serving

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

from .proof import prove
from .scene import CALLBACK, INSTANCE_KEY, Scene, scene
from .test_adoption import there
from .test_other_instances import namespace, place, server

TENANT = Key("team", "wiki")
MODES = {"drawn": {}, "kept": {"secret": {"storeClientSecret": False}}, "declared": {"clientID": "wiki-app"}}


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene with a namespace that the instance admits."""
    async with scene(tmp_path) as made:
        await namespace(made, TENANT.namespace)
        yield made
        await prove(made)


async def asks(here: Scene, **spec: Any) -> JsonObject:
    """The tenant's client, after its controller looked at it."""
    await place(here, TENANT.namespace, KIND, TENANT.name, {"callbackUrls": [CALLBACK], **spec})
    return await looked(here)


async def looked(here: Scene) -> JsonObject:
    """The tenant's client, looked at once more."""
    await here.settle(TENANT)
    return await here.client.get(KIND.resource, TENANT)


def said(found: JsonObject) -> str:
    """`Status/Reason` of Ready."""
    (ready,) = found["status"]["conditions"]
    return f"{ready['status']}/{ready['reason']}"


async def authenticates(here: Scene) -> bool:
    """Whether the tenant's stored secret is one of its client."""
    found = await here.client.get(SECRETS, Key(TENANT.namespace, "wiki-oidc-credentials"))
    data = {key: base64.b64decode(text).decode() for key, text in found["data"].items()}
    return here.fake.authenticates(data["client_id"], data["client_secret"])


async def trusts(here: Scene, *spaces: str) -> None:
    """The word of whoever keeps the instance."""
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"adminNamespaces": list(spaces)}})


@pytest.mark.case("B74")
@pytest.mark.parametrize(
    "spec", [{}, {"clientID": "payroll"}, {"clientID": "payroll", **MODES["kept"]}], ids=["name", "id", "kept"]
)
async def test_a_client_that_exists_is_not_taken_over_from_elsewhere(apart: Scene, spec: JsonObject) -> None:
    """Its restriction, its callback URLs and its secret are those of whoever made it."""
    here = apart
    client = there(here, "payroll", isGroupRestricted=True)
    here.fake.place_legacy_secret("payroll", "somebody-elses-secret")
    before = copy.deepcopy(client.settings)
    found = await asks(here, **spec)
    assert said(found) == "False/NotPermitted"
    (ready,) = found["status"]["conditions"]
    assert "client 'wiki' (id payroll) exists already" in ready["message"]
    assert "name team in spec.adminNamespaces of PocketIDInstance apps/pocketid" in ready["message"]
    assert not {"clientID", "initialSecretPending"} & set(found["status"])
    await here.client.delete(KIND.resource, TENANT)
    await here.settle(TENANT)
    assert here.writes() == []
    assert client.settings == before
    assert here.fake.authenticates("payroll", "somebody-elses-secret")
    assert "ClientAdopted" not in [event.reason for event in here.told]


@pytest.mark.case("PIDC5", "PIDC6")
@pytest.mark.parametrize("spec", [{}, {"clientID": "payroll"}], ids=["name", "id"])
async def test_the_instance_can_trust_a_namespace_with_clients_that_exist(apart: Scene, spec: JsonObject) -> None:
    """Then it is adopted, as the seed says."""
    here = apart
    there(here, "payroll", isGroupRestricted=True)
    await trusts(here, TENANT.namespace)
    found = await asks(here, **spec)
    assert said(found) == "True/Reconciled"
    assert found["status"]["clientID"] == "payroll"
    assert await authenticates(here)


async def test_who_may_have_a_client_does_not_wait_for_who_may_not(apart: Scene) -> None:
    """A tenant's resource that came first keeps nothing that exists from a namespace that the instance trusts."""
    here = apart
    there(here, "payroll")
    assert said(await asks(here, clientID="payroll")) == "False/NotPermitted"
    await here.make(clientID="payroll")
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    await here.proven()
    assert said(await looked(here)) == "False/Conflict"


NOWHERE = {"instanceSelector": {"matchLabels": {"team": "none"}}}


@pytest.mark.parametrize("status", [400, 500, 503])
@pytest.mark.parametrize("spec", MODES.values(), ids=MODES)
async def test_a_client_that_is_made_by_hand_while_ours_is_refused_is_not_ours(
    apart: Scene, spec: JsonObject, status: int
) -> None:
    """A create that the server refuses or fails leaves no claim behind, whatever is made there later, and wherever the tenant looked meanwhile."""
    here = apart
    code = "validation_failed" if status == 400 else "internal"
    here.fake.faults.add("status", method="POST", path="/api/oidc/clients", status=status, code=code, times=-1)
    found = await asks(here, **spec)
    assert said(found) == "False/APIClientError"
    assert "initialSecretPending" not in found["status"]
    await here.client.patch(KIND.resource, TENANT, {"spec": NOWHERE})
    assert said(await looked(here)) == "False/InstanceSelectionError"
    here.fake.faults.clear()
    client = there(here, spec.get("clientID", "payroll"), isGroupRestricted=True)
    here.fake.place_legacy_secret(client.id, "somebody-elses-secret")
    assert said(await looked(here)) == "False/InstanceSelectionError"
    await here.client.patch(KIND.resource, TENANT, {"spec": {"instanceSelector": None}})
    assert said(await looked(here)) == "False/NotPermitted"
    assert client.settings["isGroupRestricted"] is True
    assert here.fake.authenticates(client.id, "somebody-elses-secret")


async def test_a_status_that_still_announces_a_client_proves_nothing(apart: Scene) -> None:
    """Whose it is says its id as it was recorded, or its first name; a word from before it was made may be years old."""
    here = apart
    client = there(here, "payroll", isGroupRestricted=True)
    await place(here, TENANT.namespace, KIND, TENANT.name, {"callbackUrls": [CALLBACK], "clientID": "payroll"})
    await here.client.patch(KIND.resource, TENANT, {"status": {"initialSecretPending": True}}, subresource="status")
    assert said(await looked(here)) == "False/NotPermitted"
    assert client.settings["isGroupRestricted"] is True
    assert here.writes() == []


async def test_a_tenants_client_with_a_declared_id_gets_its_name_once_the_status_has_its_id(apart: Scene) -> None:
    """Before, its first name is all that says whose it is."""
    here = apart
    await place(here, TENANT.namespace, KIND, TENANT.name, {"callbackUrls": [CALLBACK], **MODES["declared"]})
    await here.once(TENANT)
    first = here.server().settings["name"]
    assert first != "wiki"
    found = await here.client.get(KIND.resource, TENANT)
    assert (said(found), found["status"]["clientID"]) == ("False/Creating", "wiki-app")
    assert said(await looked(here)) == "True/Reconciled"
    assert here.server().settings["name"] == "wiki"
    assert "ClientAdopted" not in [event.reason for event in here.told]


@pytest.mark.parametrize("spec", MODES.values(), ids=MODES)
async def test_every_crash_point_of_a_tenants_client_heals(tmp_path: Path, spec: JsonObject) -> None:
    """Killed after any write: the client is known as ours, and its stored secret works."""
    numbers = itertools.count()

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        async with scene(tmp_path / str(next(numbers))) as here:
            await namespace(here, TENANT.namespace)
            await place(here, TENANT.namespace, KIND, TENANT.name, {"callbackUrls": [CALLBACK], **spec})
            yield here

    async def drive(here: Scene, fence: Fence) -> None:
        async with here.world(fence) as world:
            await passes(ROOM, world, TENANT)

    async def state(here: Scene) -> Any:
        found = await here.client.get(KIND.resource, TENANT)
        client = here.server()
        return said(found), found["status"]["clientID"] == client.id, len(client.secrets), await authenticates(here)

    assert await every_crash_point(anew, drive, state) >= 5


@pytest.mark.case("PIDX3")
@pytest.mark.parametrize("spec", MODES.values(), ids=MODES)
async def test_a_tenants_client_whose_answer_was_lost_is_known_again(apart: Scene, spec: JsonObject) -> None:
    """The server committed, the connection broke: one client, one secret, and the stored one works."""
    here = apart
    here.fake.faults.add("drop_after", method="POST", path="/api/oidc/clients")
    assert said(await asks(here, **spec)) in ("True/Reconciled", "False/APIClientError")
    assert said(await looked(here)) == "True/Reconciled"
    assert len(here.server().secrets) == 1
    assert await authenticates(here)


@pytest.mark.case("PIDX14")
@pytest.mark.parametrize("kind", ["drop_after", "status"])
async def test_a_tenants_client_with_a_declared_id_moves_whatever_becomes_of_the_first_try(
    apart: Scene, kind: str
) -> None:
    """The create at the other instance is not answered, or fails: one client there, none here, and the stored secret is its own."""
    here, other = apart, Fake(api_key=apart.fake.api_key)
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"at": "first"}}})
    async with serving(other) as url:
        await here.instance("second", url)
        second = Key(INSTANCE_KEY.namespace, "second")
        await here.client.patch(INSTANCE.resource, second, {"metadata": {"labels": {"at": "second"}}})
        await here.attach(second)
        await asks(here, instanceSelector={"matchLabels": {"at": "first"}}, **MODES["declared"])
        other.faults.add(kind, method="POST", path="/api/oidc/clients", **({"status": 503} if kind == "status" else {}))
        await here.client.patch(
            KIND.resource, TENANT, {"spec": {"instanceSelector": {"matchLabels": {"at": "second"}}}}
        )
        await looked(here)
        assert said(await looked(here)) == "True/Reconciled"
        assert (len(here.fake.store.clients), len(other.store.clients)) == (0, 1)
        found = await here.client.get(SECRETS, Key(TENANT.namespace, "wiki-oidc-credentials"))
        assert other.authenticates("wiki-app", base64.b64decode(found["data"]["client_secret"]).decode())
        await prove(here)


@pytest.mark.case("PIDC9")
async def test_a_tenants_client_that_somebody_deleted_is_made_again(apart: Scene) -> None:
    """With a secret of its own, and it is told."""
    here = apart
    await asks(here)
    here.fake.store.delete_client(here.server().id)
    assert said(await looked(here)) == "True/Reconciled"
    assert await authenticates(here)
    assert "ClientLost" in [event.reason for event in here.told]


async def test_a_client_that_a_tenants_own_server_announced_is_not_taken_over_by_a_move(apart: Scene) -> None:
    """A server of one's own may say any id, and may leave every create open."""
    here = apart
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"team": "a"}}})
    client = there(here, "payroll", isGroupRestricted=True)
    own = Fake()
    selector = {"matchLabels": {"team": "own"}}
    async with serving(own) as url:
        await server(here, TENANT.namespace, url, own, team="own")
        found = await asks(here, clientID="payroll", instanceSelector=selector)
        assert found["status"]["clientID"] == "payroll"
        spec = {"instanceSelector": {"matchLabels": {"team": "a"}}}
        await here.client.patch(KIND.resource, TENANT, {"spec": spec})
        assert said(await looked(here)) == "False/NotPermitted"
        await here.client.delete(INSTANCE.resource, Key(TENANT.namespace, "own"))
        await here.client.patch(KIND.resource, TENANT, {"status": {"initialSecretPending": True}}, subresource="status")
        assert said(await looked(here)) == "False/NotPermitted"
    assert client.settings["isGroupRestricted"] is True
    assert here.writes() == []


@pytest.mark.case("PIDF5")
async def test_a_client_of_a_metadata_document_is_no_tenants(apart: Scene) -> None:
    """It is everybody's who uses the application: whether it is there already or not, and its deletion takes nothing along."""
    here, id = apart, "https://app.example.org/client.json"
    assert said(await asks(here, callbackUrls=None, clientID=id, skipConsent=True)) == "False/NotPermitted"
    here.fake.place_cimd_client(id, "App", ["https://app.example.org/cb"])
    assert said(await looked(here)) == "False/NotPermitted"
    await here.client.delete(KIND.resource, TENANT)
    await here.settle(TENANT)
    assert here.server().settings["skipConsent"] is False
    assert here.writes() == []


async def test_an_id_that_was_seen_through_a_tenants_own_instance_of_the_same_address_is_nobodys(apart: Scene) -> None:
    """Its key is not one that may read clients: whatever its status tells, the client there is not the tenant's, and keeps it from nobody."""
    here = apart
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"team": "a"}}})
    client = there(here, "payroll", isGroupRestricted=True)
    await server(here, TENANT.namespace, here.url, Fake(api_key=here.fake.plain_key()), team="own")
    seen_there = {"instance": {"namespace": TENANT.namespace, "name": "own", "url": here.url}, "clientID": "payroll"}
    spec = {"clientID": "payroll", "callbackUrls": [CALLBACK], "instanceSelector": {"matchLabels": {"team": "own"}}}
    await place(here, TENANT.namespace, KIND, TENANT.name, spec)
    await here.client.patch(KIND.resource, TENANT, {"status": seen_there}, subresource="status")
    await here.client.patch(KIND.resource, TENANT, {"spec": {"instanceSelector": {"matchLabels": {"team": "a"}}}})
    assert said(await looked(here)) == "False/NotPermitted"
    assert client.settings["isGroupRestricted"] is True
    assert here.writes() == []
    await here.make(clientID="payroll", instanceSelector={"matchLabels": {"team": "a"}})
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    await here.proven()


async def test_a_client_that_a_tenants_instance_for_the_same_server_found_is_not_taken_over_by_a_move(
    apart: Scene,
) -> None:
    """Any key that the server accepts makes such an instance Ready, and it trusts its own namespace: what is recorded by it proves nothing at ours."""
    here = apart
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"team": "a"}}})
    client = there(here, "payroll", isGroupRestricted=True)
    await server(here, TENANT.namespace, here.url, here.fake, team="own")
    found = await asks(here, clientID="payroll", instanceSelector={"matchLabels": {"team": "own"}})
    assert found["status"]["clientID"] == "payroll"
    client.settings["isGroupRestricted"] = True
    here.fake.journal.clear()
    await here.client.patch(KIND.resource, TENANT, {"spec": {"instanceSelector": {"matchLabels": {"team": "a"}}}})
    assert said(await looked(here)) == "False/NotPermitted"
    assert here.writes() == []
    assert client.settings["isGroupRestricted"] is True
    await trusts(here, TENANT.namespace)
    assert said(await looked(here)) == "True/Reconciled"
