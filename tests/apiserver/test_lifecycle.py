"""Owners, namespaces, definitions and events over their lives."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from tests.apiserver.conftest import CONFIG_MAPS, CRDS, MERGE, NAMESPACED, Client, config_map, crd

from moorage.apiserver import Server
from moorage.apiserver.ttl import Expiry

THINGS = "/apis/example.test/v1/namespaces/default/things"


def owned_by(owner: dict[str, Any], name: str, *, blocks: bool = False) -> dict[str, Any]:
    child = config_map(name)
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
    }
    child["metadata"]["ownerReferences"] = [{**reference, "blockOwnerDeletion": blocks}]
    return child


def thing(name: str, **meta: Any) -> dict[str, Any]:
    return {"apiVersion": "example.test/v1", "kind": "Thing", "metadata": {"name": name, **meta}, "spec": {"a": 1}}


async def test_foreground_deletion_waits_for_blocking_dependents(client: Client) -> None:
    """The owner stands, terminating, until its last blocking dependent is gone."""
    owner = await client.create(CONFIG_MAPS, config_map("owner"))
    child = owned_by(owner, "child", blocks=True)
    child["metadata"]["finalizers"] = ["test.example/hold"]
    await client.create(CONFIG_MAPS, child)
    answer = await client.ask("DELETE", f"{CONFIG_MAPS}/owner?propagationPolicy=Foreground")
    assert answer.body["metadata"]["finalizers"] == ["foregroundDeletion"]
    await client.until(f"{CONFIG_MAPS}/child", lambda found: "deletionTimestamp" in found.body["metadata"])
    assert (await client.ask("GET", f"{CONFIG_MAPS}/owner")).status == 200
    await client.ask("PATCH", f"{CONFIG_MAPS}/child", {"metadata": {"finalizers": None}}, media=MERGE)
    await client.until(f"{CONFIG_MAPS}/owner", lambda found: found.status == 404)
    assert (await client.ask("GET", f"{CONFIG_MAPS}/child")).status == 404


async def test_an_owner_that_never_was_takes_its_dependent_with_it(client: Client) -> None:
    """A reference to another uid is dangling, whatever its name."""
    owner = await client.create(CONFIG_MAPS, config_map("owner"))
    owner["metadata"]["uid"] = "11111111-1111-1111-1111-111111111111"
    await client.create(CONFIG_MAPS, owned_by(owner, "child"))
    await client.until(f"{CONFIG_MAPS}/child", lambda found: found.status == 404)
    assert (await client.ask("GET", f"{CONFIG_MAPS}/owner")).status == 200


async def test_of_two_owners_one_is_enough(client: Client) -> None:
    """The dependent stays, without the reference that dangles."""
    first, second = [await client.create(CONFIG_MAPS, config_map(name)) for name in ("first", "second")]
    child = owned_by(first, "child")
    child["metadata"]["ownerReferences"] += owned_by(second, "child")["metadata"]["ownerReferences"]
    await client.create(CONFIG_MAPS, child)
    await client.ask("DELETE", f"{CONFIG_MAPS}/first")
    found = await client.until(
        f"{CONFIG_MAPS}/child", lambda found: len(found.body["metadata"]["ownerReferences"]) == 1
    )
    assert found.body["metadata"]["ownerReferences"][0]["name"] == "second"


async def test_owners_of_kinds_that_are_not_served_are_left_alone(client: Client) -> None:
    """What cannot be looked up is never taken for gone."""
    child = config_map("child")
    child["metadata"]["ownerReferences"] = [{"apiVersion": "no.such/v1", "kind": "None", "name": "x", "uid": "y"}]
    await client.create(CONFIG_MAPS, child)
    await client.create(CONFIG_MAPS, config_map("other"))
    await client.ask("DELETE", f"{CONFIG_MAPS}/other")
    assert (await client.ask("GET", f"{CONFIG_MAPS}/child")).status == 200


async def test_a_namespace_says_what_it_waits_for_and_then_ends(client: Client) -> None:
    """Content with a finalizer holds it; conditions name the finalizer; nothing new comes in."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    held = config_map("held")
    held["metadata"]["finalizers"] = ["test.example/hold"]
    await client.create("/api/v1/namespaces/n/configmaps", held)
    await client.ask("DELETE", "/api/v1/namespaces/n")
    refused = await client.ask("POST", "/api/v1/namespaces/n/configmaps", config_map("new"))
    assert (refused.status, refused.body["details"]["causes"][0]["reason"]) == (403, "NamespaceTerminating")
    found = await client.until("/api/v1/namespaces/n", lambda found: "conditions" in found.body["status"])
    messages = " ".join(item["message"] for item in found.body["status"]["conditions"])
    assert "test.example/hold in 1 resource instances" in messages
    free = {"metadata": {"finalizers": None}}
    await client.ask("PATCH", "/api/v1/namespaces/n/configmaps/held", free, media=MERGE)
    await client.until("/api/v1/namespaces/n", lambda found: found.status == 404)


async def test_each_namespace_has_an_account_and_the_ca(client: Client) -> None:
    """They come with it, and come back."""
    await client.create("/api/v1/namespaces", {"metadata": {"name": "n"}})
    for path in ("serviceaccounts/default", "configmaps/kube-root-ca.crt"):
        await client.until(f"/api/v1/namespaces/n/{path}", lambda found: found.status == 200)
        before = (await client.ask("GET", f"/api/v1/namespaces/n/{path}")).body["metadata"]["uid"]
        await client.ask("DELETE", f"/api/v1/namespaces/n/{path}")
        found = await client.until(f"/api/v1/namespaces/n/{path}", lambda found: found.status == 200)
        assert found.body["metadata"]["uid"] != before


async def test_a_crd_is_served_at_once_and_becomes_established(client: Client) -> None:
    """The first request after the create finds the kind."""
    await client.create(CRDS, crd())
    assert (await client.ask("GET", THINGS)).status == 200
    found = await client.until(f"{CRDS}/things.example.test", lambda found: found.body["status"].get("conditions"))
    assert {item["type"]: item["status"] for item in found.body["status"]["conditions"]} == {
        "NamesAccepted": "True",
        "Established": "True",
    }


async def test_a_crd_with_a_taken_kind_is_not_served(client: Client) -> None:
    """It says which name is taken, and is served once the other is gone."""
    await client.create(CRDS, crd())
    other = crd(plural="others")
    other["spec"]["names"]["kind"] = "Thing"
    await client.create(CRDS, other)
    path = f"{CRDS}/others.example.test"
    found = await client.until(path, lambda found: found.body["status"].get("conditions"))
    accepted = next(item for item in found.body["status"]["conditions"] if item["type"] == "NamesAccepted")
    assert (accepted["status"], accepted["reason"]) == ("False", "ListKindConflict")
    others = "/apis/example.test/v1/others"
    assert (await client.ask("GET", others)).status == 404
    await client.ask("DELETE", f"{CRDS}/things.example.test")
    await client.until(others, lambda found: found.status == 200)


async def test_a_deleted_crd_takes_its_objects_with_it(client: Client) -> None:
    """Objects first, by their finalizers, then the definition."""
    await client.create(CRDS, crd())
    await client.create(THINGS, thing("a", finalizers=["test.example/hold"]))
    begun = (await client.ask("DELETE", f"{CRDS}/things.example.test")).body
    assert begun["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    await client.until(f"{THINGS}/a", lambda found: "deletionTimestamp" in found.body["metadata"])
    await client.ask("PATCH", f"{THINGS}/a", {"metadata": {"finalizers": None}}, media=MERGE)
    await client.until(f"{CRDS}/things.example.test", lambda found: found.status == 404)
    assert (await client.ask("GET", THINGS)).status == 404


async def test_status_is_a_world_of_its_own(client: Client) -> None:
    """A main write leaves the status, a status write the rest; only the specification counts generations."""
    await client.create(CRDS, crd())
    made = await client.create(THINGS, {**thing("a"), "status": {"ignored": True}})
    assert "status" not in made
    body = {"metadata": {"labels": {"x": "y"}}, "spec": {"a": 2}, "status": {"ready": True}}
    found = (await client.ask("PATCH", f"{THINGS}/a/status", body, media=MERGE)).body
    assert (found["spec"], found["status"], found["metadata"]["generation"]) == ({"a": 1}, {"ready": True}, 1)
    assert "labels" not in found["metadata"]
    found = (await client.ask("PATCH", f"{THINGS}/a", body, media=MERGE)).body
    assert (found["spec"], found["metadata"]["generation"]) == ({"a": 2}, 2)


async def test_a_write_that_changes_nothing_keeps_the_version(client: Client) -> None:
    """Neither revision nor event."""
    made = await client.create(CONFIG_MAPS, config_map("a", k="v"))
    again = await client.ask("PATCH", f"{CONFIG_MAPS}/a", {"data": {"k": "v"}}, media=MERGE)
    assert again.body["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]


async def test_events_are_one_object_in_two_groups(client: Client) -> None:
    """Written in one group, read in the other, in the words of each."""
    event = {
        "metadata": {"name": "e"}, "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "hello",
        "reason": "R", "type": "Normal", "action": "A", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "test.example/c", "reportingInstance": "c-1",
    }  # fmt: skip
    await client.create("/apis/events.k8s.io/v1/namespaces/default/events", event)
    core = (await client.ask("GET", f"{NAMESPACED}/events/e")).body
    assert (core["message"], core["involvedObject"]["name"], core["reportingComponent"]) == (
        "hello",
        "p",
        "test.example/c",
    )
    new = (await client.ask("GET", "/apis/events.k8s.io/v1/namespaces/default/events/e")).body
    assert (new["apiVersion"], new["note"], new["regarding"]["name"]) == ("events.k8s.io/v1", "hello", "p")


async def test_events_end_after_an_hour(client: Client) -> None:
    """The sweep takes what was last written more than an hour ago, nothing younger."""
    event = {"metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "message": "m", "reason": "r"}
    await client.create(f"{NAMESPACED}/events", event)
    api = client.server.api
    assert await Expiry(api).sweep() == 0
    now = api.clock()
    api.clock = lambda: now + timedelta(hours=1, seconds=5)
    assert await Expiry(api).sweep() == 1
    assert (await client.ask("GET", f"{NAMESPACED}/events/e")).status == 404


async def test_services_get_addresses_of_their_own(client: Client) -> None:
    """Each another one, none of the first that people choose from; a taken one is refused; a headless Service has none."""

    def service(name: str, **spec: Any) -> dict[str, Any]:
        return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}

    path = f"{NAMESPACED}/services"
    made = await asyncio.gather(*(client.create(path, service(f"s{number}")) for number in range(20)))
    addresses = {item["spec"]["clusterIP"] for item in made}
    assert len(addresses) == 20
    chosen_by_people = {f"127.112.0.{number}" for number in range(256)}
    assert not addresses & chosen_by_people
    taken = await client.ask("POST", path, service("taken", clusterIP=addresses.pop()))
    assert taken.status == 422
    assert "provided IP is already allocated" in taken.body["message"]
    assert (await client.create(path, service("none", clusterIP="None")))["spec"]["clusterIP"] == "None"


async def test_a_server_starts_again_with_everything(tmp_path: Path) -> None:
    """Definitions, objects, roles and addresses are there after a restart."""
    server = Server(tmp_path / "data")
    await server.start()
    client = Client(server, tmp_path)
    await client.create(CRDS, crd())
    await client.create(THINGS, thing("a"))
    await client.session.close()
    await server.stop()
    again = Server(tmp_path / "data")
    await again.start()
    client = Client(again, tmp_path)
    try:
        assert (await client.ask("GET", f"{THINGS}/a")).body["spec"] == {"a": 1}
        assert (await client.ask("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/view")).status == 200
    finally:
        await client.session.close()
        await again.stop()
