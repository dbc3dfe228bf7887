"""An operator at work, hour by hour: what only a person can mend is asked for every few minutes, what mends itself is back in seconds."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.crashpoints import passes
from tests.fakes.pocketid.model import Client

from moorage.core.meta import Key
from moorage.kube.errors import NotFound
from moorage.kube.resources import CONFIG_MAPS, NAMESPACES, SECRETS
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.oidcclient import rivals
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND
from moorage.runtime.walk import Walk

from .hours import running
from .scene import CALLBACK, INSTANCE_KEY, KEY, NAMESPACE, SECRET, Scene, fresh, resource, until
from .test_adoption import SETTINGS
from .test_features import JWK, identity
from .test_secret_walk import rejected

pytestmark = pytest.mark.timeout(600)


def requests(here: Scene) -> int:
    """How many requests Pocket-ID was asked so far."""
    return len(here.fake.journal.entries)


async def ready(here: Scene, *names: str) -> list[str]:
    """`Status/Reason` of several."""
    return [(await here.ready(name))[0] for name in names]


# --- back-off


@pytest.mark.parametrize(("method", "path", "status", "code"), [
    ("POST", "*/oidc/clients", 400, "validation_failed"), ("POST", "*/oidc/clients", 403, "forbidden"),
    ("POST", "*/secrets", 400, "validation_failed"), ("GET", "*/oidc/clients", 403, "forbidden"), ("*", "*", 401, "not_signed_in"),
], ids=["client refused", "client forbidden", "secret refused", "list forbidden", "key refused"])  # fmt: skip
async def test_what_only_a_person_can_mend_is_asked_for_every_few_minutes(
    here: Scene, method: str, path: str, status: int, code: str
) -> None:
    """After a first quarter of an hour never more than one try a minute; mended, it is Ready within five minutes, a touched resource at once."""
    here.fake.faults.add("status", method=method, path=path, times=-1, status=status, code=code)
    async with running(here) as hours:
        await here.make()
        await hours.run(900)
        said = await here.ready()
        assert said[0].startswith("False/")
        counts = await hours.minutes(30, lambda: len([e for e in here.fake.journal if e.status == status]))
        assert max(counts) <= 2, "more than one try a minute, and its one repetition for a key that is not known yet"
        assert 5 <= sum(counts) <= 62
        assert await here.ready() == said, "the message stays the same"
        here.fake.faults.clear()
        await hours.run(300)
        assert (await here.ready())[0] == "True/Reconciled"


async def test_a_resource_that_is_mended_is_looked_at_at_once(here: Scene) -> None:
    here.fake.faults.add("status", method="POST", path="*/oidc/clients", status=400, code="validation_failed")
    async with running(here) as hours:
        await here.make()
        await hours.run(1)
        assert (await here.ready())[0] == "False/APIClientError"
        await here.edit(description="mended")
        await hours.run(1)
        assert (await here.ready())[0] == "True/Reconciled"


@pytest.mark.parametrize("outage", [2.0, 60.0, 3600.0])
async def test_a_server_that_was_down_is_used_again_within_seconds(here: Scene, outage: float) -> None:
    """However long it was: what was declared meanwhile arrives; while it is down it is not asked more than once in two seconds."""
    async with running(here) as hours:
        for name in ("one", "two", "three"):
            await here.make(name)
        await hours.run(1)
        here.fake.faults.add("drop_before", times=-1)
        await here.edit("one", description="declared in the outage")
        before = requests(here)
        await hours.run(outage)
        assert requests(here) - before <= 20 + outage / 2
        here.fake.faults.clear()
        await hours.run(10)
        assert await ready(here, "one", "two", "three") == ["True/Reconciled"] * 3
        id = (await here.status("one"))["clientID"]
        assert here.server(id).settings["description"] == "declared in the outage"


@pytest.mark.parametrize(("method", "path"), [
    ("GET", "*/oidc/clients"), ("POST", "*/oidc/clients"), ("POST", "*/secrets"), ("GET", "*/oidc/clients/*"),
], ids=["list", "create", "secret", "readback"])  # fmt: skip
async def test_a_request_that_failed_for_a_while_works_again_within_as_long(
    here: Scene, method: str, path: str
) -> None:
    """500 on one kind of request for ten seconds: the back-off has not grown beyond that, and nothing was made twice."""
    here.fake.faults.add("status", method=method, path=path, times=-1)
    async with running(here) as hours:
        await here.make()
        await hours.run(10)
        assert (await here.ready())[0].startswith("False/")
        here.fake.faults.clear()
        await hours.run(10)
        assert (await here.ready())[0] == "True/Reconciled"
        assert len(here.server().secrets) == 1


# --- storms


@pytest.mark.case("PIDX15", "PIDC8")
async def test_a_storm_of_429_is_waited_out_and_no_failure(here: Scene) -> None:
    """Thirty clients, a server that wants twenty seconds of quiet: nobody hammers it, nobody backs off, all are Ready after it."""
    names = [f"app-{number}" for number in range(30)]
    rule = here.fake.faults.add("rate_limit", times=-1, retry_after="20", path="/api/*")
    async with running(here) as hours:
        for name in names:
            await here.make(name)
        before = requests(here)
        await hours.run(60)
        assert rule.struck >= 2
        assert requests(here) - before <= 12, "each wait is one request for all, and one of the instance"
        failures = [item.queue.failures(Key(NAMESPACE, name)) for item in hours.controllers for name in names]
        assert set(failures) == {0}
        here.fake.faults.clear()
        await hours.run(130)
        assert set(await ready(here, *names)) == {"True/Reconciled"}
        assert len(here.fake.store.clients) == 30


@pytest.mark.case("PIDX15")
async def test_a_server_that_limits_writes_is_asked_again_when_it_says(here: Scene) -> None:
    """429 on the creation alone, then on the secret alone: one client, one secret, each wait as long as the server says."""
    here.fake.faults.add("rate_limit", method="POST", path="*/oidc/clients", retry_after="30")
    here.fake.faults.add("rate_limit", method="POST", path="*/secrets", retry_after="45")
    async with running(here) as hours:
        await here.make()
        await hours.run(29)
        assert here.fake.store.clients == {}
        await hours.run(2)
        assert len(here.fake.store.clients) == 1
        await hours.run(40)
        assert (await here.ready())[0] == "False/SecretReconcileError"
        await hours.run(6)
        assert (await here.ready())[0] == "True/Reconciled"
        assert len(here.server().secrets) == 1


# --- changes under its feet


@pytest.mark.case("PIDX13")
async def test_an_api_key_that_is_rotated_while_the_operator_runs(here: Scene) -> None:
    """Told with a word about the key, asked a few times only, and used again at once when the Secret has the new one."""
    async with running(here) as hours:
        await here.make()
        await hours.run(1)
        here.fake.api_key = "another-static-api-key-0123456789"
        before = requests(here)
        await hours.run(600)
        assert requests(here) - before <= 60, "a refused key is not hammered"
        assert (await here.ready())[0].startswith("False/")
        assert "API key" in (await here.ready())[1] or "401" in (await here.ready())[1]
        await here.secret("pocketid-key", token=here.fake.api_key)
        await hours.run(2)
        assert (await here.ready())[0] == "True/Reconciled"
        await here.proven()


@pytest.mark.case("PIDX16")
async def test_a_server_upgraded_in_place_gets_what_it_newly_knows_and_nothing_else(here: Scene) -> None:
    """2.14 becomes 2.17 under a running operator: no new secret, no write for those that ask for nothing new."""
    async with running(here) as hours:
        await here.make("plain")
        await here.make(
            backchannelLogoutUrl="https://wiki.example.org/logout", federatedIdentities=identity({"value": JWK})
        )
        await hours.run(1)
        assert await ready(here, "plain", "wiki") == ["True/Reconciled", "False/UnsupportedVersion"]
        told = {id: list(values) for id, values in here.fake.told.items()}
        here.fake.upgrade("2.17.0")
        here.fake.journal.clear()
        await hours.run(300)
        assert await ready(here, "plain", "wiki") == ["True/Reconciled", "True/Reconciled"]
        ids = {name: (await here.status(name))["clientID"] for name in ("plain", "wiki")}
        assert here.writes() == [f"PUT oidc/clients/{ids['wiki']}"]
        assert here.fake.told == told
        settings = here.server(ids["wiki"]).settings
        assert settings["backchannelLogoutURL"] == "https://wiki.example.org/logout"
        assert settings["federatedIdentities"][0]["publicKeys"][0]["kid"] == "one"
        await here.make("later")
        await hours.run(1)
        id = (await here.status("later"))["clientID"]
        assert len(here.fake.told[id]) == 1, "the secret that came with the client is the stored one"


@pytest.mark.case("PIDX4", "B74")
@pytest.mark.parametrize("spec", [{"name": "Wiki"}, {"clientID": "wiki-app"}], ids=["one name", "one id"])
async def test_of_two_that_come_at_the_same_moment_one_gets_the_client(here: Scene, spec: dict[str, Any]) -> None:
    """Both are told; when the winner goes, the other gets a client of its own, with a secret that works."""
    async with running(here) as hours:
        await asyncio.gather(*(here.make(name, **spec) for name in ("one", "two")))
        await hours.run(130)
        said = dict(zip(("one", "two"), await ready(here, "one", "two"), strict=True))
        assert sorted(said.values()) == ["False/Conflict", "True/Reconciled"]
        assert len(here.fake.store.clients) == 1
        (winner,) = [name for name, word in said.items() if word == "True/Reconciled"]
        (loser,) = {"one", "two"} - {winner}
        assert await here.credentials(f"{loser}-oidc-credentials") == {}
        first = await here.proven(f"{winner}-oidc-credentials")
        await here.client.delete(KIND.resource, Key(NAMESPACE, winner))
        await hours.run(130)
        assert (await here.ready(loser))[0] == "True/Reconciled"
        assert len(here.fake.store.clients) == 1
        assert await here.proven(f"{loser}-oidc-credentials") != first
        assert await rejected(here, first)


@pytest.mark.case("PIDX4", "B74")
@pytest.mark.parametrize("spec", [{"name": "Wiki"}, {"clientID": "wiki-app"}], ids=["one name", "one id"])
async def test_one_that_would_come_first_does_not_take_what_another_is_making(
    here: Scene, spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one second, the rank is by uid: who comes later may rank first, while the other's request is on its way."""
    monkeypatch.setattr(rivals, "age", lambda obj: (obj["metadata"]["name"], ""))
    gate = here.fake.faults.add("hold", method="POST", path="/api/oidc/clients")
    async with running(here) as hours:
        await here.make("second", **spec)
        await asyncio.wait_for(gate.reached.wait(), 30)
        await here.make("first", **spec)
        async with asyncio.timeout(30):
            while (await here.ready("first"))[0] != "False/Conflict":  # noqa: ASYNC110  a status tells nobody
                await asyncio.sleep(0.01)
        gate.release()
        await hours.run(130)
        assert await ready(here, "first", "second") == ["False/Conflict", "True/Reconciled"]
        assert len(here.fake.store.clients) == 1
        assert await here.credentials("first-oidc-credentials") == {}
        await here.proven("second-oidc-credentials")


@pytest.mark.case("PIDX20")
async def test_a_namespace_that_goes_while_a_secret_is_made_keeps_no_client_and_no_secret(here: Scene) -> None:
    """The API server itself refuses the Secret; what was minted is taken back, then the client goes with its resource."""
    leaving = "leaving"
    await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": leaving}})
    held = {"name": "held", "namespace": leaving, "finalizers": ["example.org/held"]}
    await here.client.create(CONFIG_MAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    gate = here.fake.faults.add("hold", method="POST", path="*/secrets")
    async with running(here) as hours:
        body = resource(KIND, "app", {"callbackUrls": [CALLBACK]})
        body["metadata"]["namespace"] = leaving
        await here.client.create(KIND.resource, body)
        await asyncio.wait_for(gate.reached.wait(), 30)
        await here.client.delete(NAMESPACES, Key("", leaving))
        gate.release()
        await hours.run(10)
        assert here.fake.store.clients == {}
        with pytest.raises(NotFound):
            await here.client.get(KIND.resource, Key(leaving, "app"))
        await here.client.patch(CONFIG_MAPS, Key(leaving, "held"), {"metadata": {"finalizers": None}})
        await hours.run(1)


@pytest.mark.case("PIDX14")
async def test_a_label_that_moves_takes_every_client_along(here: Scene) -> None:
    """The instance loses its label and has it again: nothing is lost in between, and nothing is made anew."""
    await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"env": "prod"}}})
    async with running(here) as hours:
        await here.make(instanceSelector={"matchLabels": {"env": "prod"}})
        await hours.run(1)
        secret = await here.proven()
        await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"env": "test"}}})
        await hours.run(1)
        assert (await here.ready())[0] == "False/InstanceSelectionError"
        assert await here.proven() == secret
        await here.client.patch(INSTANCE.resource, INSTANCE_KEY, {"metadata": {"labels": {"env": "prod"}}})
        await hours.run(1)
        assert (await here.ready())[0] == "True/Reconciled"
        assert await here.proven() == secret


# --- found at the server


@pytest.mark.case("PIDX5", "PIDC6")
async def test_a_client_on_the_third_page_is_found_by_its_name(here: Scene) -> None:
    """Two hundred and fifty clients: three requests, no duplicate."""
    for number in range(250):
        id = f"id-{number:03}"
        here.fake.store.clients[id] = Client(id, {**SETTINGS, "name": f"other {number:03}"})
    here.fake.store.clients["id-237"].settings["name"] = "Wiki"
    await here.make(name="Wiki")
    await here.once()
    assert here.fake.journal.lines().count("GET /api/oidc/clients") == 3
    assert (await here.status())["clientID"] == "id-237"
    assert len(here.fake.store.clients) == 250


@pytest.mark.case("PIDC7", "PIDC5")
@pytest.mark.parametrize(("status", "code", "adopted"), [
    (400, "client_id_already_exists", True), (500, "already_in_use", True), (409, "validation_failed", False), (404, "internal_error", False),
])  # fmt: skip
async def test_the_code_of_an_answer_decides_whatever_its_status(
    here: Scene, status: int, code: str, adopted: bool
) -> None:
    """A taken id, of which the list of a moment ago knows nothing, is adopted by the word of the envelope; a 409 about something else adopts nothing."""
    async with here.world() as world:
        await here.make("first")
        await fresh(here, world)
        await passes(ROOM, world, Key(NAMESPACE, "first"))
        here.fake.store.clients["wiki-app"] = Client("wiki-app", {**SETTINGS, "name": "Old"})
        here.fake.faults.add("status", method="POST", path="*/oidc/clients", status=status, code=code)
        await here.make(clientID="wiki-app")
        await fresh(here, world)
        await Walk(ROOM, world)(KEY)
    assert ((await here.status()).get("clientID") == "wiki-app") is adopted


@pytest.mark.parametrize("deleted", [False, True], ids=["kept", "deleted"])
async def test_a_pass_is_woken_by_its_credentials_only_when_somebody_else_touched_them(
    here: Scene, *, deleted: bool
) -> None:
    """The Secret that it writes itself is no news; one that is gone before the API server's answer has come is written again at once."""
    await here.make()
    woken: list[Key] = []
    async with here.world() as world:
        create = world.client.create

        async def and_then(rt: Any, obj: Any, **more: Any) -> Any:
            answer = await create(rt, obj, **more)
            if rt == SECRETS and deleted:
                await here.client.delete(SECRETS, Key(NAMESPACE, SECRET))
                await here.secret("afterwards", any="thing")  # what is seen of it has seen the deletion, too
                await until(lambda: world.cache.get(SECRETS, Key(NAMESPACE, "afterwards")))
            return answer

        world.wakers[KIND.resource] = lambda key, _after: woken.append(key)
        world.client.create = and_then  # type: ignore[method-assign]
        await Walk(ROOM, world, lambda _ref, _event: None)(KEY)
    assert woken == ([KEY] if deleted else [])
