"""The walk of a backend on the embedded API server, with the stub as Keystone: attach, keep, rotate, detach, and bad days."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import Fence, every_crash_point, passes

from moorage.core.meta import JsonObject, Key, Ref, owner_reference
from moorage.core.outcome import Done, Failed, Waiting
from moorage.keystone.backend import ROOM
from moorage.keystone.backend.seen import domain_id_of
from moorage.keystone.backend.types import FINALIZER
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import BACKENDS, KEY, KEYSTONE_KEY, NAMESPACE, Scene, conditions, scene
from .waiting import fresh, settle


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


async def attached(here: Scene, **fields: Any) -> JsonObject:
    """A backend that is Ready."""
    await here.backend(**fields)
    await settle(here)
    await here.attach(KEY.name)
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert conditions(stored)["Ready"] == "True/AllReady"
    return stored


async def test_a_backend_becomes_ready_step_by_step(here: Scene) -> None:
    """Finalizer, domain, projection, rollout: each condition turns True when its part of the world is so."""
    made = await here.backend(description="Corporate directory")
    assert await settle(here) == Waiting("WaitingForProjection", "keystone.corp.conf is not mounted yet", after=15.0)
    stored = await here.stored()
    assert stored is not None
    assert stored["metadata"]["finalizers"] == [FINALIZER]
    assert stored["status"]["domainID"] == domain_id_of(made["metadata"]["uid"])
    domain = here.stub.domains[stored["status"]["domainID"]]
    assert domain == {"id": domain["id"], "name": "corp", "enabled": True, "description": "Corporate directory"}
    await here.project(KEY.name)
    await here.rolled_out(done=False)
    await settle(here)
    assert conditions(await here.stored())["ConfigProjected"] == "False/WaitingForRollout"
    await here.rolled_out()
    await settle(here)
    assert conditions(await here.stored()) == {
        "DomainReady": "True/DomainProvisioned",
        "ConfigProjected": "True/ConfigProjected",
        "Ready": "True/AllReady",
        "DirectoryReachable": "False/AddressUnreachable",
    }


@pytest.mark.case("P1", "B09")
async def test_a_second_pass_asks_once_and_writes_nothing(here: Scene) -> None:
    """Steady: one GET at Keystone, no login while the token lasts, no request to Kubernetes at all."""
    await attached(here)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        here.stub.requests.clear()
        here.client.calls.clear()
        assert isinstance(await walk(KEY), Done)
        assert here.stub.count() == {"GET": 1}
        assert here.stub.writes() == []
        assert sum(n for (method, _), n in here.client.calls.items() if method != "WATCH") == 0


async def test_a_whole_attach_takes_few_requests(here: Scene) -> None:
    """One login and one create; finalizer and one status patch."""
    await here.backend()
    async with here.world() as world:
        here.client.calls.clear()
        await Walk(ROOM, world)(KEY)
        assert here.stub.count() == {"login": 1, "POST": 1}
        writes = {call: n for call, n in here.client.calls.items() if call[0] not in ("GET", "WATCH")}
        assert writes == {("PATCH", BACKENDS.plural): 1, ("PATCH", f"{BACKENDS.plural}/status"): 1}


@pytest.mark.case("B09", "C4")
async def test_a_changed_bind_password_shows_until_it_is_rolled_out(here: Scene) -> None:
    """Presence of a file is not enough: its contents must be the wanted ones, on every replica."""
    await attached(here)
    await here.secret("corp-ldap-bind", username="cn=svc,dc=corp", password="rotated")
    await settle(here)
    assert conditions(await here.stored())["ConfigProjected"] == "False/WaitingForProjection"
    await here.project(KEY.name)
    await here.rolled_out(done=False)
    await settle(here)
    assert conditions(await here.stored())["ConfigProjected"] == "False/WaitingForRollout"
    await here.rolled_out()
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_drift_of_the_domain_is_repaired_and_nothing_else_is_written(here: Scene) -> None:
    """Disabled, renamed and re-described by hand: one PATCH with exactly that."""
    stored = await attached(here, description="ours")
    domain = here.stub.domains[stored["status"]["domainID"]]
    domain.update(name="renamed", enabled=False, description="theirs")
    here.stub.requests.clear()
    told: list[Event] = []
    await settle(here, told)
    assert [body for _, _, body in here.stub.writes()] == [
        {"domain": {"name": "corp", "description": "ours", "enabled": True}}
    ]
    assert [event.reason for event in told if event.type == "Normal"] == ["DomainUpdated"]


async def test_a_server_that_ignores_a_repair_is_not_asked_for_ever(here: Scene) -> None:
    """A PATCH that changes nothing ends the pass; the queue slows down."""
    stored = await attached(here, description="ours")
    here.stub.domains[stored["status"]["domainID"]]["description"] = "theirs"
    ignored = '{"domain": {"id": "x", "name": "corp", "enabled": true, "description": "theirs"}}'
    here.stub.fail("PATCH", 200, times=99, body=ignored)
    here.stub.requests.clear()
    async with here.world() as world:
        outcome = await Walk(ROOM, world)(KEY)
    assert isinstance(outcome, Failed)
    assert "did not take over description" in outcome.message
    assert here.stub.count()["PATCH"] == 1


async def test_adopt_attaches_and_never_writes(here: Scene) -> None:
    """Found by name, recorded, told once; nothing is ever changed, not even when it is deleted."""
    await here.backend(mode="Adopt", deletionPolicy="Delete", description="ignored")
    await settle(here)
    assert conditions(await here.stored())["DomainReady"] == "False/DomainNotFound"
    theirs = here.stub.add("corp", enabled=False, description="theirs")
    told: list[Event] = []
    await settle(here, told)
    await here.attach(KEY.name)
    await settle(here, told)
    stored = await here.stored()
    assert stored is not None
    assert stored["status"]["domainID"] == theirs["id"]
    assert [event.reason for event in told if event.type == "Normal"] == ["DomainAdopted"]
    await here.client.delete(BACKENDS, KEY)
    await here.attach()
    await settle(here)
    assert await here.stored() is None
    assert here.stub.writes() == []


async def test_a_foreign_domain_is_not_seized(here: Scene) -> None:
    """Same name, not ours: creating it is refused, the status says so, and nothing at Keystone changes, not even when it is deleted."""
    here.stub.add("corp")
    before = copy.deepcopy(here.stub.domains)
    await here.backend(deletionPolicy="Delete")
    await settle(here)
    assert conditions(await here.stored())["DomainReady"] == "False/DomainAlreadyExists"
    here.stub.requests.clear()
    await settle(here)
    await here.client.delete(BACKENDS, KEY)
    await settle(here)
    assert await here.stored() is None
    assert here.stub.writes() == []
    assert here.stub.domains == before


async def test_a_creation_that_raced_a_stranger_is_looked_into(here: Scene) -> None:
    """Absent when asked, there when created: the conflict is told as what it is."""
    await attached(here)
    here.stub.domains.clear()
    here.stub.after = lambda request: here.stub.add("corp") and None if request == "GET /v3/domains" else None  # type: ignore[func-returns-value]
    await settle(here)
    assert conditions(await here.stored())["DomainReady"] == "False/DomainAlreadyExists"


async def test_a_name_taken_in_another_case_is_told_as_such(here: Scene) -> None:
    """A database that compares without regard to case (MySQL) refuses it and finds it; once that is told, nothing is even tried."""
    here.stub.add("CORP")
    before = copy.deepcopy(here.stub.domains)
    await here.backend()
    await settle(here)
    assert conditions(await here.stored())["DomainReady"] == "False/DomainAlreadyExists"
    here.stub.requests.clear()
    await settle(here)
    assert here.stub.writes() == []
    assert here.stub.domains == before


@pytest.mark.case("K5", "C3")
async def test_a_backend_restored_without_status_knows_its_domain(here: Scene) -> None:
    """A crash between the creation and the status write, or a restore: the id that is refused is made from the uid, which proves it."""
    await attached(here)
    before = copy.deepcopy(here.stub.domains)
    await here.client.patch(BACKENDS, KEY, {"status": None}, subresource="status")
    here.stub.requests.clear()
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert here.stub.domains == before


async def test_a_domain_of_ours_that_was_renamed_is_found_without_status_too(here: Scene) -> None:
    """Nothing of that name stands there, so it is created; the conflict about the id tells that it is ours, and it gets its name back."""
    await attached(here)
    await here.client.patch(BACKENDS, KEY, {"status": None}, subresource="status")
    (id,) = [id for id, domain in here.stub.domains.items() if domain["name"] == "corp"]
    here.stub.domains[id]["name"] = "stolen"
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert here.stub.domains[id]["name"] == "corp"


# --- deletion


async def deleted(here: Scene, **fields: Any) -> None:
    """A backend that was Ready, deleted by a person, not yet taken away."""
    await attached(here, **fields)
    await here.client.delete(BACKENDS, KEY)
    here.stub.requests.clear()


@pytest.mark.case("B11", "C18")
async def test_deletion_waits_for_the_rollout_then_disables_then_deletes(here: Scene) -> None:
    """The order of the seed, with the status saying at each step what it waits for."""
    await deleted(here, deletionPolicy="Delete")
    told: list[Event] = []
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert conditions(stored)["Ready"] == "False/Deleting"
    assert "no longer mounts keystone.corp.conf" in stored["status"]["conditions"][2]["message"]
    await here.project()
    await here.rolled_out(done=False)
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert "every replica runs without" in stored["status"]["conditions"][2]["message"]
    assert here.stub.writes() == []
    await here.rolled_out()
    assert await settle(here, told) == Done()
    assert await here.stored() is None
    assert [(method, body) for method, _, body in here.stub.writes()] == [
        ("PATCH", {"domain": {"enabled": False}}),
        ("DELETE", None),
    ]
    assert list(here.stub.domains) == ["default"]
    assert [event.reason for event in told] == ["DomainDisabled", "DomainDeleted"]


async def test_deletion_waits_for_the_pod_that_answers_saml_too(here: Scene) -> None:
    """It is a Keystone with the same files (ADR 0012): while it serves the domain, the domain stays."""
    await attached(here, deletionPolicy="Delete")
    main = await here.client.get(DEPLOYMENTS, KEYSTONE_KEY)
    uid = (await here.client.get(KEYSTONE.resource, KEYSTONE_KEY))["metadata"]["uid"]
    owner = owner_reference(Ref(KEYSTONE.resource.api_version, KEYSTONE.kind, KEYSTONE_KEY, uid))
    meta = {"name": "keystone-saml", "namespace": NAMESPACE, "ownerReferences": [owner]}
    await here.client.create(DEPLOYMENTS, {"metadata": meta, "spec": main["spec"]})
    await here.client.delete(BACKENDS, KEY)
    await here.attach()
    here.stub.requests.clear()
    await settle(here)
    assert await here.stored() is not None
    assert here.stub.writes() == []
    await here.client.delete(DEPLOYMENTS, Key(NAMESPACE, "keystone-saml"))
    await settle(here)
    assert await here.stored() is None
    assert list(here.stub.domains) == ["default"]


async def test_retain_leaves_the_domain_as_it_is(here: Scene) -> None:
    """The default: no request to Keystone at all."""
    await deleted(here)
    await here.attach()
    await settle(here)
    assert await here.stored() is None
    assert here.stub.requests == []


@pytest.mark.case("B11")
@pytest.mark.parametrize("status", [403, 500])
async def test_a_failing_deletion_tells_once_and_never_enables(here: Scene, status: int) -> None:
    """LP#1801873: the finalizer stays, one event a cause, the domain stays disabled, and a later pass ends it."""
    await deleted(here, deletionPolicy="Delete")
    await here.attach()
    here.stub.fail("DELETE", status, "shadow users", times=3)
    told: list[Event] = []
    async with here.world() as world:
        walk = Walk(ROOM, world, lambda _ref, event: told.append(event))
        for _ in range(3):
            assert isinstance(await walk(KEY), Failed)
        stored = await here.stored()
        assert stored is not None
        assert conditions(stored)["Ready"] == "False/DomainDeleteFailed"
        assert stored["metadata"]["finalizers"] == [FINALIZER]
        assert [event.reason for event in told].count("DomainDeleteFailed") == 1
        assert await walk(KEY) == Done()
    assert await here.stored() is None
    assert [body for method, _, body in here.stub.writes() if method == "PATCH"] == [{"domain": {"enabled": False}}]


@pytest.mark.case("B11")
async def test_the_way_out_of_a_failing_deletion_is_retain(here: Scene) -> None:
    """deletionPolicy is mutable while deleting, and the status names it."""
    await deleted(here, deletionPolicy="Delete")
    await here.attach()
    here.stub.fail("DELETE", 500, times=99)
    async with here.world() as world:
        await Walk(ROOM, world)(KEY)
    await here.client.patch(BACKENDS, KEY, {"spec": {"domain": {"deletionPolicy": "Retain"}}})
    await settle(here)
    assert await here.stored() is None


@pytest.mark.case("B80")
@pytest.mark.parametrize("gone", ["keystone", "terminating", "admin secret"])
async def test_a_stack_that_is_torn_down_holds_nobody(here: Scene, gone: str) -> None:
    """Released with a Warning, within one pass; the domain is retained."""
    await deleted(here, deletionPolicy="Delete")
    if gone == "terminating":
        await here.client.patch(KEYSTONE.resource, KEYSTONE_KEY, {"metadata": {"finalizers": ["example.org/hold"]}})
    if gone == "admin secret":
        await here.attach()
        await here.client.delete(SECRETS, Key(NAMESPACE, "keystone-admin"))
    else:
        await here.client.delete(KEYSTONE.resource, KEYSTONE_KEY)
    told: list[Event] = []
    await settle(here, told)
    assert await here.stored() is None
    assert [(event.type, event.reason) for event in told] == [("Warning", "DomainDeleteFailed")]
    assert here.stub.writes() == []
    assert len(here.stub.domains) == 2


@pytest.mark.case("B78")
async def test_only_our_own_finalizer_goes(here: Scene) -> None:
    """Somebody else's finalizer stays, and afterwards Keystone is left in peace."""
    await attached(here, deletionPolicy="Delete")
    await here.client.patch(BACKENDS, KEY, {"metadata": {"finalizers": [FINALIZER, "example.org/other"]}})
    await here.client.delete(BACKENDS, KEY)
    await here.attach()
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert stored["metadata"]["finalizers"] == ["example.org/other"]
    here.stub.requests.clear()
    await settle(here)
    assert here.stub.writes() == []


# --- bad days


@pytest.mark.case("P3", "C16")
async def test_bad_days_undo_nothing_and_recovery_is_by_itself(here: Scene) -> None:
    """API down, admin Secret missing, server failing: Ready stays True, Keystone is not written to, an event tells."""
    await attached(here)
    here.stub.requests.clear()
    for trouble, mended in ((here.api(up=False), here.api(up=True)), (_lose_admin(here), _regain_admin(here))):
        await trouble
        told: list[Event] = []
        async with here.world() as world:
            walk = Walk(ROOM, world, lambda _ref, event: told.append(event))  # noqa: B023
            await walk(KEY)
            assert conditions(await here.stored())["Ready"] == "True/AllReady"
            await mended
            await fresh(here, world)
            assert isinstance(await walk(KEY), Done)
    here.stub.fail("GET", 500, times=2)
    async with here.world() as world:
        assert isinstance(await Walk(ROOM, world)(KEY), Failed)
        assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert here.stub.writes() == []


async def _lose_admin(here: Scene) -> None:
    await here.client.delete(SECRETS, Key(NAMESPACE, "keystone-admin"))


async def _regain_admin(here: Scene) -> None:
    await here.secret("keystone-admin", password="admin-password\n")


@pytest.mark.case("P2", "B77")
async def test_no_secret_and_no_spec_is_written_anywhere(here: Scene) -> None:
    """Status, annotations and events hold no password, whatever fails."""
    await here.backend()
    told: list[Event] = []
    here.stub.fail("POST /v3/domains", 500, "admin-password bind-password echoed", times=1)
    async with here.world() as world:
        walk = Walk(ROOM, world, lambda _ref, event: told.append(event))
        await walk(KEY)
        await walk(KEY)
    stored = await here.stored()
    assert stored is not None
    assert "admin-password" not in f"{stored}{told}"
    assert "annotations" not in stored["metadata"]


# --- many, and crashes


@pytest.mark.case("P1")
async def test_a_fleet_shares_one_login_and_settles(here: Scene) -> None:
    """Forty backends: one login for all, and a second round over all of them writes nothing anywhere."""
    names = [f"b{number}" for number in range(40)]
    for name in names:
        await here.backend(name, domain=name)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await asyncio.gather(*(walk(Key(NAMESPACE, name)) for name in names))
        assert here.stub.count()["login"] == 1
        assert here.stub.count()["POST"] == 40
        await here.attach(*names)
        await fresh(here, world)
        await asyncio.gather(*(walk(Key(NAMESPACE, name)) for name in names))
        here.stub.requests.clear()
        before = here.client.calls.total()
        await asyncio.gather(*(walk(Key(NAMESPACE, name)) for name in names))
        assert here.stub.count() == {"GET": 40}
        assert here.client.calls.total() == before
    stored = [await here.stored(name) for name in names]
    assert {conditions(item)["Ready"] for item in stored} == {"True/AllReady"}


@pytest.mark.parametrize("policy", ["Retain", "Delete"])
async def test_every_crash_point_of_attach_and_detach_heals(tmp_path: Path, policy: str) -> None:
    """Killed after any write, to Kubernetes or to Keystone, the next start ends in the same state."""
    count = 0

    @contextlib.asynccontextmanager
    async def anew() -> AsyncIterator[Scene]:
        nonlocal count
        count += 1
        async with scene(tmp_path / str(count)) as made:
            await made.backend(deletionPolicy=policy, description="ours")
            yield made

    async def drive(here: Scene, fence: Fence) -> None:
        if await here.stored() is None:
            return
        async with here.world(fence) as world:
            await passes(ROOM, world, KEY)
            if not (await _live(here))["metadata"].get("deletionTimestamp"):
                await here.attach(KEY.name)
                await fresh(here, world)
                await passes(ROOM, world, KEY)
                await here.client.delete(BACKENDS, KEY)
                await fresh(here, world)
                await passes(ROOM, world, KEY)
            await here.attach()
            await fresh(here, world)
            await passes(ROOM, world, KEY)

    async def state(here: Scene) -> Any:
        names = sorted((item["name"], item["enabled"]) for item in here.stub.domains.values())
        return await here.stored(), names

    assert await every_crash_point(anew, drive, state) == (6 if policy == "Retain" else 8)


async def _live(here: Scene) -> JsonObject:
    return await here.stored() or {"metadata": {"deletionTimestamp": "gone"}}
