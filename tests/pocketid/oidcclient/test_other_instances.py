"""What other namespaces and other instances may do to a client: what was granted to them, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.fakes.pocketid import Fake, serving

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import NAMESPACES, SECRETS
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient.types import KIND
from moorage.pocketid.usergroup.types import KIND as USER_GROUP

from .proof import prove
from .scene import CALLBACK, INSTANCE_KEY, KEY, NAMESPACE, Scene, condition, resource, scene


@pytest.fixture
async def apart(tmp_path: Path) -> AsyncIterator[Scene]:
    """A scene whose clients are not all of one server."""
    async with scene(tmp_path) as made:
        yield made
        await prove(made)


async def place(here: Scene, namespace: str, kind: Any, name: str, spec: JsonObject) -> None:
    """Apply an object in any namespace."""
    obj = resource(kind, name, spec)
    obj["metadata"]["namespace"] = namespace
    await here.client.create(kind.resource, obj)


async def namespace(here: Scene, *names: str) -> None:
    """Make namespaces."""
    for name in names:
        await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def server(here: Scene, space: str, url: str, fake: Fake, **labels: str) -> None:
    """An instance in a namespace, with its key, looked at."""
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "pocketid-key", "namespace": space}}
    await here.client.create(SECRETS, {**secret, "stringData": {"token": fake.api_key}})
    obj = resource(
        INSTANCE, "own", {"external": {"url": url, "apiKeySecretRef": {"name": "pocketid-key", "key": "token"}}}
    )
    obj["spec"]["allowedNamespaces"] = []
    obj["metadata"] |= {"namespace": space, "labels": labels}
    await here.client.create(INSTANCE.resource, obj)
    await here.attach(Key(space, "own"))


async def label(here: Scene, **labels: str) -> None:
    """Labels of the scene's own instance."""
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": labels}})


async def test_groups_of_a_namespace_that_the_instance_does_not_admit_close_no_client(here: Scene) -> None:
    """Else whoever may write groups anywhere could lock out the people of any client, and keep it from going."""
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"allowedNamespaces": []}})
    await namespace(here, "elsewhere")
    listed = [{"name": KEY.name, "namespace": NAMESPACE}]
    await place(here, "elsewhere", USER_GROUP, "intruders", {"allowedOIDCClients": listed})
    await here.make()
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert here.server().settings["isGroupRestricted"] is False
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert await here.stored() is None


async def test_a_group_of_another_namespace_lets_people_in_where_the_instance_trusts_it_and_opens_nothing_afterwards(
    here: Scene,
) -> None:
    """Whoever may write groups in an admitted namespace is not asked who may use the clients of others; closing a namespace out opens nothing."""
    await namespace(here, "elsewhere")
    listed = [{"name": KEY.name, "namespace": NAMESPACE}]
    await place(here, "elsewhere", USER_GROUP, "tenant", {"allowedOIDCClients": listed})
    id = here.server_group("tenant")
    key, status = Key("elsewhere", "tenant"), {"groupID": id, "conditions": [condition()]}
    await here.client.patch(USER_GROUP.resource, key, {"status": status}, subresource="status")
    await here.make()
    await here.settle()
    assert here.server().settings["isGroupRestricted"] is False
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"adminNamespaces": ["elsewhere"]}})
    await here.settle()
    assert (here.server().settings["isGroupRestricted"], here.server().groups) == (True, {id})
    closed = {"allowedNamespaces": [], "adminNamespaces": None}
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": closed})
    await here.settle()
    assert here.server().settings["isGroupRestricted"] is True
    assert (await here.status())["groupsVanished"] is True


async def test_a_group_on_its_way_from_another_instance_opens_nothing(here: Scene) -> None:
    """It is bound elsewhere and selects ours by now: it counts, and is waited for."""
    await here.group("staff", clients=(KEY.name,), made=False)
    await here.says(USER_GROUP, "staff", {"instance": {"namespace": "gone", "name": "gone"}}, ready=True)
    await here.make()
    await here.settle()
    assert (await here.ready())[0] == "False/ReconcileError"
    assert here.server().settings["isGroupRestricted"] is True


@pytest.mark.case("B74", "PIDX4")
async def test_one_server_behind_two_addresses_has_one_owner_of_a_client(apart: Scene) -> None:
    """A second instance by another name of the same host, which trusts the first one's namespace: its client of that name takes nothing over."""
    here = apart
    await label(here, team="a")
    await namespace(here, "team-b")
    await server(here, "team-b", here.url.replace("127.0.0.1", "localhost"), here.fake, team="b")
    await here.client.patch(INSTANCE.resource, Key("team-b", "own"), {"spec": {"adminNamespaces": [NAMESPACE]}})
    await here.make(instanceSelector={"matchLabels": {"team": "a"}})
    await here.settle()
    secret = await here.proven()
    spec = {"name": KEY.name, "callbackUrls": [CALLBACK], "instanceSelector": {"matchLabels": {"team": "b"}}}
    await place(here, "team-b", KIND, "second", spec)
    here.fake.journal.clear()
    await here.settle(Key("team-b", "second"))
    second = await here.client.get(KIND.resource, Key("team-b", "second"))
    (said,) = second["status"]["conditions"]
    assert (said["status"], said["reason"]) == ("False", "Conflict")
    assert str(KEY) in said["message"]
    assert here.writes() == []
    assert await here.proven() == secret


@pytest.mark.case("B74", "PIDX4")
async def test_an_instance_that_its_server_never_let_in_keeps_no_name(apart: Scene) -> None:
    """Its client came first and was never made: whoever has no key to the server takes nothing there from others."""
    here = apart
    await label(here, team="a")
    await namespace(here, "team-b")
    stranger = Fake()
    stranger.api_key = "no-key-of-that-server-0123456789"
    await server(here, "team-b", here.url, stranger, team="b")
    spec = {"name": KEY.name, "callbackUrls": [CALLBACK], "instanceSelector": {"matchLabels": {"team": "b"}}}
    await place(here, "team-b", KIND, "first", spec)
    await here.settle(Key("team-b", "first"))
    await here.make(instanceSelector={"matchLabels": {"team": "a"}})
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    await here.proven()


async def stranger(here: Scene, id: str) -> None:
    """evil/x, Ready at a server of its own that gives the id of somebody else's client, and older than any other by what it says."""
    await namespace(here, "evil")
    own = Fake()
    async with serving(own) as url:
        await server(here, "evil", url, own, team="evil")
        selector = {"matchLabels": {"team": "evil"}}
        spec = {"clientID": id, "callbackUrls": [CALLBACK], "instanceSelector": selector}
        await place(here, "evil", KIND, "x", spec)
        await here.settle(Key("evil", "x"))
    found = await here.client.get(KIND.resource, Key("evil", "x"))
    assert found["status"]["clientID"] == id


@pytest.mark.case("B74", "PIDX4")
@pytest.mark.parametrize("pointed", [False, True], ids=["at its own server", "pointed at ours afterwards"])
async def test_an_id_that_a_strangers_own_server_gives_keeps_nothing_from_others(
    apart: Scene, *, pointed: bool
) -> None:
    """Client ids are no secrets. A client that lost its status is adopted again, and one that is deleted goes with its secrets."""
    here = apart
    await label(here, team="a")
    await here.make(instanceSelector={"matchLabels": {"team": "a"}})
    await here.settle()
    secret, id = await here.proven(), here.server().id
    await stranger(here, id)
    if pointed:
        external = {"external": {"url": here.url, "apiKeySecretRef": {"name": "pocketid-key", "key": "token"}}}
        await here.client.patch(INSTANCE.resource, Key("evil", "own"), {"spec": external})
    await here.client.patch(KIND.resource, KEY, {"status": {"clientID": None}}, subresource="status")
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert (await here.status())["clientID"] == id
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert here.fake.store.clients == {}
    assert not here.fake.authenticates(id, secret)


@pytest.mark.case("B74", "PIDX4")
async def test_a_resource_that_is_held_back_keeps_no_client_alive(here: Scene) -> None:
    """The one that has it is deleted: the client goes with its secrets, and the other makes one of its own."""
    await here.make("first", clientID="wiki-app")
    first = Key(NAMESPACE, "first")
    await here.settle(first)
    secret = (await here.credentials("first-oidc-credentials"))["client_secret"]
    await here.make(clientID="wiki-app")
    await here.settle()
    assert (await here.ready())[0] == "False/Conflict"
    await here.client.delete(KIND.resource, first)
    await here.settle(first)
    assert here.fake.store.clients == {}
    await here.settle()
    assert (await here.ready())[0] == "True/Reconciled"
    assert not here.fake.authenticates("wiki-app", secret)
    await here.proven()


async def test_a_group_of_a_namespace_that_is_admitted_and_not_trusted_holds_nobodys_deletion(here: Scene) -> None:
    """The way out would lie in somebody else's namespace."""
    await namespace(here, "elsewhere")
    await place(
        here, "elsewhere", USER_GROUP, "leech", {"allowedOIDCClients": [{"name": KEY.name, "namespace": NAMESPACE}]}
    )
    await here.make()
    await here.settle()
    await here.client.delete(KIND.resource, KEY)
    await here.settle()
    assert await here.stored() is None
    assert here.fake.store.clients == {}


async def test_clients_of_different_servers_may_have_one_name(apart: Scene) -> None:
    """Each team has a server of its own and finds it without a selector."""
    here = apart
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"spec": {"allowedNamespaces": []}})
    await namespace(here, "team-b", "team-c")
    async with serving(Fake()) as one, serving(Fake()) as other:
        await server(here, "team-b", one, here.fake)
        await server(here, "team-c", other, here.fake)
        for team in ("team-b", "team-c"):
            await place(here, team, KIND, "plain", {"callbackUrls": [CALLBACK]})
            await here.settle(Key(team, "plain"))
            found = await here.client.get(KIND.resource, Key(team, "plain"))
            (said,) = found["status"]["conditions"]
            assert (said["status"], said["message"]) == ("True", said["message"])


async def test_an_api_of_another_instance_grants_nothing(here: Scene) -> None:
    """Its id means nothing here, or something else."""
    await here.api("orders", "https://orders.example.org", "read")
    await here.client.patch(
        API.resource,
        Key(NAMESPACE, "orders"),
        {"status": {"instance": {"namespace": "team-b", "name": "own"}}},
        subresource="status",
    )
    await here.make(apiAccess=[{"apiRef": {"name": "orders"}, "clientPermissions": ["read"]}])
    await here.settle()
    ready, message = await here.ready()
    assert ready == "False/APIAccessReconcileError"
    assert "PocketIDAPI apps/orders belongs to another PocketIDInstance (team-b/own)" in message
    assert not [line for line in here.writes() if "apis" in line]
    await here.edit(apiAccess=None)


async def test_an_instance_that_comes_later_neither_stops_a_client_nor_takes_it_over(apart: Scene) -> None:
    """It matches and admits as well as the one that the client is bound to."""
    here = apart
    await here.make()
    await here.settle()
    secret = await here.proven()
    await namespace(here, "rogue")
    async with serving(Fake()) as other:
        await server(here, "rogue", other, here.fake)
        await here.client.patch(INSTANCE.resource, Key("rogue", "own"), {"spec": {"allowedNamespaces": None}})
        await here.settle()
        assert (await here.ready())[0] == "True/Reconciled"
        assert (await here.status())["instance"]["namespace"] == NAMESPACE
        assert await here.proven() == secret


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"clientSecretRef": {"name": "pocketid-key", "key": "token"}}, "clientSecretRef"),
        ({"scim": {"endpoint": "https://scim.example.org", "tokenSecretRef": {"name": "pocketid-key", "key": "token"}}}, "scim.tokenSecretRef"),
    ],
)  # fmt: skip
async def test_the_administrators_key_is_sent_nowhere_for_a_client(apart: Scene, spec: JsonObject, said: str) -> None:
    """Whoever may write clients need not be allowed to read Secrets."""
    here = apart
    await here.make(**spec)
    await here.settle()
    ready, message = await here.ready()
    assert ready.startswith("False/")
    assert f"{said}: Secret pocketid-key holds keys of PocketIDInstance pocketid; name another Secret" in message
    assert here.fake.api_key not in str(here.fake.journal.lines())
    sent = "/secrets" if "clientSecretRef" in spec else "scim"
    assert not [item for item in here.fake.journal.writes() if sent in item.path]
