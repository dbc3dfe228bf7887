"""How much is asked and written, counted: a first convergence, a pass over what is as declared. Never times.

Source: issue 5, Speed: first convergence at most 3 requests and one per feature used, Secret + finalizer + 1 status; a no-op resync 1 request per
page, 1 per client with something that only a read of its own shows, 0 writes. The list is one for all clients of an instance.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from tests.crashpoints import passes

from moorage.core.meta import Key
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.runtime.walk import Walk

from .hours import running
from .scene import NAMESPACE, Scene, fresh
from .test_features import AUDIENCE, JWK, access, icon, identity

FEATURES: dict[str, tuple[int, dict[str, Any]]] = {
    "plain": (0, {}),
    "no stored secret": (0, {"secret": {"enabled": False}}),
    "first secret only": (0, {"secret": {"storeClientSecret": False}}),
    "public": (0, {"isPublic": True}),
    "declared secret": (0, {"clientSecretRef": {"name": "source", "key": "value"}}),
    "rotation": (0, {"clientSecretRotation": {"enabled": True, "interval": "24h"}, "clientSecretOverlap": "1h"}),
    "federated": (0, {"federatedIdentities": identity({"value": JWK})}),
    "groups": (1, {"allowedUserGroups": [{"groupName": "staff"}]}),
    "light logo": (1, {"logo": {"logoUrl": icon("a")}}),
    "two logos": (2, {"logo": {"logoUrl": icon("a"), "darkLogoUrl": icon("b")}}),
    "scim": (1, {"scim": {"endpoint": "https://scim.example.org"}}),
    "access": (1, {"apiAccess": [access("orders", clientPermissions=["read"])]}),
    "two APIs": (2, {"apiAccess": [access("orders", clientPermissions=["read"]), access("stock", delegatedAccess=True)]}),
}  # fmt: skip
LISTS = ("GET /api/oidc/clients", "GET /api/user-groups", "GET /api/version/current")


async def furnished(here: Scene) -> None:
    """What the specs refer to."""
    here.fake.upgrade("2.15.0")
    await here.attach()
    await here.secret("source", value="a-declared-secret-0123456789")
    here.server_group("staff")
    await here.api("orders", AUDIENCE, "read")
    await here.api("stock", f"{AUDIENCE}/stock")
    here.fake.journal.clear()


def own(here: Scene) -> list[str]:
    """Requests that are not shared by all clients of the instance."""
    return [line for line in here.fake.journal.lines() if line not in LISTS]


def kubernetes_writes(here: Scene) -> Counter[tuple[str, str]]:
    """Writes to the API server since `calls` was cleared."""
    return Counter({call: count for call, count in here.client.calls.items() if call[0] not in ("GET", "WATCH")})


@pytest.mark.parametrize("name", FEATURES)
async def test_a_first_convergence_asks_three_requests_and_one_per_feature(here: Scene, name: str) -> None:
    """Create, secret, readback. Kubernetes: the finalizer, the Secret, one status."""
    extra, spec = FEATURES[name]
    await furnished(here)
    await here.make(**spec)
    async with here.world() as world:
        here.client.calls.clear()
        await Walk(ROOM, world)(Key(NAMESPACE, "wiki"))
        assert (await here.ready())[0] == "True/Reconciled"
        assert len(own(here)) <= 3 + extra, own(here)
        stored = {} if name == "no stored secret" else {("POST", "secrets"): 1}
        assert kubernetes_writes(here) == {
            ("PATCH", "pocketidoidcclients"): 1, ("PATCH", "pocketidoidcclients/status"): 1, **stored,
        }  # fmt: skip


async def test_a_declared_id_whose_first_secret_alone_is_stored_takes_one_status_more(here: Scene) -> None:
    """Its first name says that it is ours, as its id does not, until the status has that id: others may have made one of it."""
    await furnished(here)
    await here.make(clientID="wiki-app", secret={"storeClientSecret": False})
    async with here.world() as world:
        here.client.calls.clear()
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        assert (await here.ready())[0] == "True/Reconciled"
        assert kubernetes_writes(here)["PATCH", "pocketidoidcclients/status"] == 2


async def test_ten_clients_share_the_list(here: Scene) -> None:
    """Thirty requests of their own, and the list of which all ten know: it is younger than each of them, and times of objects are whole seconds."""
    async with running(here) as hours:
        here.fake.journal.clear()
        for number in range(10):
            await here.make(f"app-{number}")
        await hours.run(5)
        assert len(own(here)) == 30
        listed = await here.client.list(KIND.resource, NAMESPACE)
        seconds = {item["metadata"]["creationTimestamp"] for item in listed.items}
        assert here.fake.journal.lines().count(LISTS[0]) <= 1 + len(seconds)
        assert len(here.fake.store.clients) == 10


@pytest.mark.parametrize("name", FEATURES)
async def test_a_pass_over_what_is_as_declared_asks_for_what_no_list_shows(here: Scene, name: str) -> None:
    """One request for who may use a client, one for its SCIM provider, one for its access; nothing is written."""
    _, spec = FEATURES[name]
    await furnished(here)
    await here.make(**spec)
    await here.settle()
    async with here.world() as world:
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        here.fake.journal.clear()
        here.client.calls.clear()
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        aside = sum(field in spec for field in ("allowedUserGroups", "scim", "apiAccess"))
        assert len(here.fake.journal.lines()) == aside
        assert kubernetes_writes(here) == {}
        reads = {call: count for call, count in here.client.calls.items() if call[0] == "GET"}
        assert reads == ({("GET", "secrets"): 1} if "clientSecretRef" in spec else {})


async def test_a_steady_half_hour_of_many_clients_is_one_list_a_resync(here: Scene) -> None:
    """A hundred and one clients, two pages: two requests every two minutes besides the instance's one, no write anywhere."""
    names = [f"app-{number:03}" for number in range(101)]
    async with running(here) as hours:
        for name in names:
            await here.make(name)
        await hours.run(10)
        assert len(here.fake.store.clients) == len(names)
        await hours.run(240)
        here.fake.journal.clear()
        here.client.calls.clear()
        await hours.run(1800)
        lines = Counter(here.fake.journal.lines())
        assert here.writes() == []
        assert kubernetes_writes(here) == {}
        assert set(lines) == {LISTS[0], LISTS[2]}
        assert lines[LISTS[0]] <= 2 * 16
        assert lines[LISTS[2]] <= 16


async def test_an_edit_is_one_write_and_its_readback(here: Scene) -> None:
    """The client is read before it is written and after; the status once."""
    await here.make()
    await here.settle()
    async with here.world() as world:
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        here.fake.journal.clear()
        here.client.calls.clear()
        await here.edit(description="new", skipConsent=True, accessTokenDurationMinutes=5)
        await fresh(here, world)
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        id = here.server().id
        assert here.writes() == [f"PUT oidc/clients/{id}"]
        assert len([line for line in own(here) if line == f"GET /api/oidc/clients/{id}"]) == 2
        assert kubernetes_writes(here)["PATCH", "pocketidoidcclients/status"] == 1


async def test_a_rotation_is_mint_store_retire(here: Scene) -> None:
    """Two writes to Pocket-ID, and the Secret and the status to Kubernetes."""
    await here.make(clientSecretRotation={"enabled": True, "interval": "1h"})
    await here.settle()
    here.later(hours=1, seconds=1)
    async with here.world() as world:
        here.fake.journal.clear()
        here.client.calls.clear()
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        assert [line.split()[0] for line in here.writes()] == ["POST", "DELETE"]
        assert kubernetes_writes(here) == {
            ("PUT", "secrets"): 1,
            ("PATCH", "pocketidinstances/status"): 1,
            ("PATCH", "pocketidoidcclients/status"): 1,
        }


async def test_a_deletion_is_one_request(here: Scene) -> None:
    """And the finalizer; nothing is read first."""
    await here.make()
    await here.settle()
    here.fake.journal.clear()
    await here.client.delete(ROOM.kind.resource, Key(NAMESPACE, "wiki"))
    async with here.world() as world:
        here.client.calls.clear()
        await passes(ROOM, world, Key(NAMESPACE, "wiki"))
        assert [line.split()[0] for line in here.fake.journal.lines()] == ["DELETE"]
        assert sum(kubernetes_writes(here).values()) <= 2
