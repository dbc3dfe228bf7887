"""The walk of a federated backend on the embedded API server, with the stub as Keystone: closed, opened, edited, renamed, detached."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.crashpoints import passes

from moorage.core.meta import JsonObject, Key, Ref, owner_reference
from moorage.core.outcome import Done
from moorage.keystone.backend import ROOM
from moorage.keystone.backend.seen import domain_id_of
from moorage.keystone.key_pair import make_pair
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS, SECRETS
from moorage.runtime.room import Event
from moorage.runtime.walk import Walk

from .scene import BACKENDS, ISSUER, KEY, KEYSTONE_KEY, NAMESPACE, RULES, Scene, conditions, oidc, scene
from .waiting import fresh, settle

ADOPT = "moorage.internal/adopt-federation-objects"


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


async def attached(here: Scene, **spec: Any) -> JsonObject:
    """An OIDC backend that people log in through."""
    await here.oidc(**spec)
    await settle(here)
    await rolled(here)
    stored = await here.stored()
    assert stored is not None
    assert conditions(stored)["Ready"] == "True/AllReady", stored["status"]
    here.stub.requests.clear()
    return stored


async def rolled(here: Scene, told: list[Event] | None = None) -> None:
    """The other room projects what is declared, and every replica runs it."""
    await here.attach(KEY.name)
    await settle(here, told)


def message(obj: JsonObject | None, type_: str) -> str:
    """The sentence of a condition."""
    assert obj is not None
    return next(item["message"] for item in obj["status"]["conditions"] if item["type"] == type_)


def paths(here: Scene, *methods: str) -> list[str]:
    """Writes of these methods, `METHOD path` without prefix."""
    writes = here.stub.writes()
    return [
        f"{method} {path.removeprefix('/v3/').removeprefix('OS-FEDERATION/')}"
        for method, path, _ in writes
        if method in methods
    ]


# --- attach


@pytest.mark.case("S1", "K2")
async def test_nobody_can_log_in_before_every_replica_protects_the_path(here: Scene) -> None:
    """Closed and without protocol until ConfigProjected is True; then protocol first, opened last."""
    made = await here.oidc()
    await settle(here)
    found = here.stub.federated
    domain = domain_id_of(made["metadata"]["uid"])
    assert found.providers["acme"]["enabled"] is False
    assert found.providers["acme"]["domain_id"] == domain
    assert found.providers["acme"]["remote_ids"] == [ISSUER]
    assert found.protocols == {}
    assert found.granted() == {("eng", "member", "")}
    assert conditions(await here.stored()) == {
        "DomainReady": "True/DomainProvisioned",
        "FederationObjectsReady": "False/WaitingForConfigProjection",
        "MappingsReady": "True/MappingsApplied",
        "ConfigProjected": "False/WaitingForProjection",
        "Ready": "False/NotAllReady",
    }
    await here.project(KEY.name)
    await here.rolled_out(done=False)
    await settle(here)
    assert found.providers["acme"]["enabled"] is False
    assert found.protocols == {}
    here.stub.requests.clear()
    await here.rolled_out()
    assert await settle(here) == Done()
    assert paths(here, "PUT", "PATCH") == [
        "PUT identity_providers/acme/protocols/openid",
        "PATCH identity_providers/acme",
    ]
    assert found.protocols["acme", "openid"] == {
        "id": "openid", "mapping_id": "acme-mapping", "remote_id_attribute": "HTTP_OIDC_ISS",
    }  # fmt: skip
    assert found.providers["acme"]["enabled"] is True
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_what_happened_is_told(here: Scene) -> None:
    """The events of spec 4.7, and opening."""
    told: list[Event] = []
    await here.oidc()
    await settle(here, told)
    await rolled(here, told)
    assert [event.reason for event in told] == [
        "DomainCreated", "IdentityProviderCreated", "MappingCreated", "FederationGroupCreated", "RolesGranted", "ProtocolCreated",
        "IdentityProviderEnabled",
    ]  # fmt: skip


@pytest.mark.case("S4")
async def test_what_was_applied_is_recorded_by_names_and_ids(here: Scene) -> None:
    """For revocation, renames and deletion; no secret, no rule."""
    stored = await attached(here)
    group = next(iter(here.stub.federated.groups))
    role = next(id for id, item in here.stub.federated.roles.items() if item["name"] == "member")
    assert stored["status"]["applied"] == {
        "identityProviders": [{"name": "acme", "mapping": "acme-mapping", "protocols": ["openid"]}],
        "groups": [{"name": "eng", "id": group, "grants": [{"role": "member", "roleID": role}]}],
    }


def five(here: Scene) -> list[JsonObject]:
    """Five groups with one role assignment each: four on the domain, one on a project of another domain."""
    here.stub.federated.project("p", here.stub.add("shared")["id"])
    groups: list[JsonObject] = [
        {"name": f"g{n}", "roleAssignments": [{"role": "member", "domain": True}]} for n in range(4)
    ]
    elsewhere = {"name": "p", "domainName": "shared"}
    return [*groups, {"name": "g4", "roleAssignments": [{"role": "member", "project": elsewhere}]}]


async def test_an_attach_asks_little_of_keystone(here: Scene) -> None:
    """Five groups and five role assignments, one on a project of another domain: as many requests as objects, and eight."""
    groups = five(here)
    objects = 1 + 3 + 5 + 5
    async with here.world() as world:
        await here.oidc(groups=groups)
        await fresh(here, world)
        await passes(ROOM, world, KEY)
        await here.attach(KEY.name)
        await fresh(here, world)
        assert await passes(ROOM, world, KEY) == Done()
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert len(here.stub.requests) <= objects + 8


@pytest.mark.case("P1", "K1")
async def test_a_steady_pass_asks_at_most_eight_times_and_writes_nothing(here: Scene) -> None:
    """One request for each kind of object, one for each group or scope; a burst of passes asks once."""
    groups = five(here)
    await attached(here, groups=groups)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        here.stub.requests.clear()
        here.client.calls.clear()
        for _ in range(3):
            assert await walk(KEY) == Done()
        assert here.stub.requests == []
        _forget_look(world)
        assert await walk(KEY) == Done()
        assert here.stub.count()["GET"] <= 8
        assert here.stub.writes() == []
        assert sum(n for (method, _), n in here.client.calls.items() if method != "WATCH") == 0


def five_places(here: Scene, domains: int) -> list[JsonObject]:
    """Five groups, one role assignment each: on the own domain, and on four projects of so many domains, the own one first."""
    groups: list[JsonObject] = [{"name": "g0", "roleAssignments": [{"role": "member", "domain": True}]}]
    for n in range(4):
        home = "corp" if n % domains == 0 else f"d{n % domains}"
        if home != "corp" and home not in {item["name"] for item in here.stub.domains.values()}:
            here.stub.add(home)
        groups.append(
            {
                "name": f"g{n + 1}",
                "roleAssignments": [{"role": "member", "project": {"name": f"p{n}", "domainName": home}}],
            }
        )
    return groups


async def attached_in(here: Scene, groups: list[JsonObject], domains: int) -> None:
    """Ready with these groups, whose projects are in so many domains."""
    await here.oidc(groups=groups)
    await settle(here)
    homes = {item["name"]: item["id"] for item in here.stub.domains.values()}
    for n in range(4):
        here.stub.federated.project(f"p{n}", homes["corp" if n % domains == 0 else f"d{n % domains}"])
    await settle(here)
    await rolled(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert len(here.stub.federated.grants) == 5


@pytest.mark.case("P1", "K1")
@pytest.mark.parametrize("domains", [1, 2, 3, 4])
async def test_five_scopes_are_seen_with_eight_requests(here: Scene, domains: int) -> None:
    """The projects of one domain are one list, and so is the domain itself; of many domains, what has the role is one list."""
    await attached_in(here, five_places(here, domains), domains)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        _forget_look(world)
        here.stub.requests.clear()
        assert await walk(KEY) == Done()
        assert here.stub.count()["GET"] <= 8
        assert here.stub.writes() == []
        lost = next(item for item in here.stub.federated.grants if item[0] == "projects")
        here.stub.federated.grants.remove(lost)
        _forget_look(world)
        await walk(KEY)
        assert lost in here.stub.federated.grants


@pytest.mark.case("P1")
@pytest.mark.parametrize("lost", ["everybody's", "too long"])
async def test_a_role_that_everybody_has_is_asked_for_once(
    here: Scene, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the groups are asked one by one, be it that the list was long or that it could not be had; what is missing is seen either way."""
    groups = five_places(here, 4)
    await attached_in(here, groups, 4)
    monkeypatch.setattr("moorage.keystone.backend.observe_federation.CROWD", 5)
    here.stub.requests.clear()
    if lost == "too long":
        here.stub.fail("GET /v3/role_assignments", 500, body="x")
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        for _ in range(2):
            here.stub.federated.grants.remove(gone := next(iter(here.stub.federated.grants)))
            _forget_look(world)
            await walk(KEY)
            assert gone in here.stub.federated.grants
    assert sum("role.id" in path for _, path, _ in here.stub.requests) == 1


def _forget_look(world: Any) -> None:
    from moorage.keystone.backend.memory import memory_of

    memory_of(world).looks.forget(KEY)


async def test_a_thousand_role_assignments_are_seen_with_forty_requests(here: Scene) -> None:
    """32 groups with 32 assignments each, steady and by a process that just started."""
    shared = here.stub.add("shared")
    for n in range(32):
        here.stub.federated.project(f"p{n}", shared["id"])
    roles = [{"role": "member", "project": {"name": f"p{n}", "domainName": "shared"}} for n in range(32)]
    await attached(here, groups=[{"name": f"g{n}", "roleAssignments": roles} for n in range(32)])
    assert len(here.stub.federated.grants) == 1024
    async with here.world() as world:
        walk = Walk(ROOM, world)
        assert await walk(KEY) == Done()
        assert here.stub.count()["GET"] <= 40
        here.stub.requests.clear()
        _forget_look(world)
        assert await walk(KEY) == Done()
        assert here.stub.count()["GET"] <= 40
        assert here.stub.writes() == []


# --- edits


@pytest.mark.case("B37", "K1")
async def test_ten_edits_of_rules_delete_nothing(here: Scene) -> None:
    """Each is one PATCH of the mapping; identity provider and protocol are not even touched."""
    await attached(here)
    for number in range(10):
        rules = [{**RULES[0], "local": [{"user": {"name": "{0}", "email": f"{number}@example.org"}}]}]
        await here.edit(mappings=rules)
        await rolled(here)
        assert (
            here.stub.federated.mappings["acme-mapping"]["rules"][0]["local"][0]["user"]["email"]
            == f"{number}@example.org"
        )
    assert [method for method, _, _ in here.stub.writes()] == ["PATCH"] * 10
    assert set(paths(here, "PATCH")) == {"PATCH mappings/acme-mapping"}
    assert here.stub.federated.providers["acme"]["enabled"] is True


@pytest.mark.case("B34")
async def test_empty_lists_are_neither_sent_nor_repaired(here: Scene) -> None:
    """What says nothing does not differ: no write in any later pass. Names stay text, order stays."""
    rules = [
        {
            "remote": [
                {"type": "HTTP_OIDC_SUB", "anyOneOf": [], "whitelist": ["2024", "España"]},
                {"type": "HTTP_OIDC_ISS"},
            ],
            "local": [
                {"user": {"name": "{1}"}, "projects": []},
                {"group": {"name": "2024", "domain": {"name": "corp"}}},
            ],
        }
    ]
    await attached(here, mappings=rules)
    sent = here.stub.federated.mappings["acme-mapping"]["rules"][0]
    assert sent["remote"] == [{"type": "HTTP_OIDC_SUB", "whitelist": ["2024", "España"]}, {"type": "HTTP_OIDC_ISS"}]
    await settle(here)
    assert here.stub.writes() == []


@pytest.mark.case("S4", "K4")
async def test_roles_declared_no_more_are_revoked_and_groups_stay(here: Scene) -> None:
    """Only what this backend granted goes; an event names the group that is let go."""
    await attached(here, groups=[
        {"name": "eng", "roleAssignments": [{"role": "member", "domain": True}, {"role": "reader", "domain": True}]},
        {"name": "ops", "roleAssignments": [{"role": "reader", "domain": True}]},
    ])  # fmt: skip
    found = here.stub.federated
    ops = next(id for id, item in found.groups.items() if item["name"] == "ops")
    theirs = ("projects", found.project("theirs", "default"), ops, found.role("auditor"))
    found.grants.add(theirs)
    told: list[Event] = []
    await here.edit(groups=[{"name": "eng", "roleAssignments": [{"role": "reader", "domain": True}]}])
    await rolled(here, told)
    assert found.granted() == {("eng", "reader", ""), ("ops", "auditor", "theirs")}
    assert {item["name"] for item in found.groups.values()} == {"eng", "ops"}
    assert sorted(event.reason for event in told) == ["FederationGroupReleased", "RoleRevoked", "RoleRevoked"]
    assert any("'ops'" in event.message for event in told if event.reason == "FederationGroupReleased")
    stored = await here.stored()
    assert stored is not None
    assert [group["name"] for group in stored["status"]["applied"]["groups"]] == ["eng"]


async def test_a_missing_role_or_project_is_named_and_waited_for(here: Scene) -> None:
    """What can be granted is; the rest parks MappingsReady, closes nothing that is open, and heals by itself."""
    groups = [
        {"name": "eng", "roleAssignments": [
            {"role": "member", "domain": True}, {"role": "pilot", "domain": True}, {"role": "member", "project": {"name": "p", "domainName": "nowhere"}},
        ]},
    ]  # fmt: skip
    await here.oidc(groups=groups)
    outcome = await settle(here)
    assert getattr(outcome, "after", None) is not None
    stored = await here.stored()
    assert conditions(stored)["MappingsReady"] == "False/RoleOrProjectNotFound"
    assert "role 'pilot', project 'p' of domain 'nowhere' not found" in message(stored, "MappingsReady")
    assert here.stub.federated.granted() == {("eng", "member", "")}
    await rolled(here)
    assert conditions(await here.stored())["FederationObjectsReady"] == "False/WaitingForMappings"
    here.stub.federated.role("pilot")
    here.stub.federated.project("p", here.stub.add("nowhere")["id"])
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert len(here.stub.federated.grants) == 3


async def test_drift_is_repaired_in_place(here: Scene) -> None:
    """Whatever somebody changed by hand is as declared again, with one write each and no deletion."""
    await attached(here)
    found = here.stub.federated
    found.providers["acme"].update(enabled=False, remote_ids=["https://elsewhere"], description="mine")
    found.mappings["other"] = {"id": "other", "rules": RULES}
    found.mappings["acme-mapping"]["rules"] = [{"remote": [{"type": "X"}], "local": []}]
    found.protocols["acme", "openid"]["mapping_id"] = "other"
    found.grants.clear()
    await settle(here)
    assert sorted(paths(here, "PATCH", "PUT", "DELETE", "POST"))[:4] == [
        "PATCH identity_providers/acme", "PATCH identity_providers/acme", "PATCH identity_providers/acme/protocols/openid",
        "PATCH mappings/acme-mapping",
    ]  # fmt: skip
    assert paths(here, "DELETE") == []
    assert found.granted() == {("eng", "member", "")}
    assert found.providers["acme"]["enabled"] is True
    assert found.providers["acme"]["remote_ids"] == [ISSUER]
    assert "kept by Moorage" in found.providers["acme"]["description"]
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_objects_that_vanished_are_made_again(here: Scene) -> None:
    """Deleted by hand: made closed, and opened again since the projection still holds."""
    await attached(here)
    found = here.stub.federated
    found.providers.clear(), found.mappings.clear(), found.protocols.clear(), found.groups.clear(), found.grants.clear()
    await settle(here)
    assert found.providers["acme"]["enabled"] is True
    assert found.granted() == {("eng", "member", "")}
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_a_new_issuer_stands_beside_the_old_one_until_every_replica_knows_it(here: Scene) -> None:
    """Remote ids are never empty, and nobody is locked out during the roll."""
    await attached(here)
    found = here.stub.federated.providers["acme"]
    endpoints = {
        item: f"https://new.example.org/{item}" for item in ("authorizationEndpoint", "tokenEndpoint", "jwksURI")
    }
    await here.edit(oidc={"issuer": "https://new.example.org", "endpoints": endpoints})
    await settle(here)
    assert found["remote_ids"] == [ISSUER, "https://new.example.org"]
    assert found["enabled"] is True
    assert conditions(await here.stored())["Ready"] == "False/NotAllReady"
    await rolled(here)
    assert found["remote_ids"] == ["https://new.example.org"]
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_a_secret_that_changed_closes_nothing(here: Scene) -> None:
    """Old content is mounted and still protects: ConfigProjected says so, logins go on."""
    await attached(here)
    await here.secret("client", clientSecret="rotated")
    await settle(here)
    assert conditions(await here.stored())["ConfigProjected"] == "False/WaitingForProjection"
    assert conditions(await here.stored())["FederationObjectsReady"] == "True/FederationObjectsProvisioned"
    assert here.stub.writes() == []


# --- renames


@pytest.mark.case("S4", "K1")
async def test_a_renamed_identity_provider_takes_the_place_of_the_old_one_after_the_roll(here: Scene) -> None:
    """Made closed beside it; after the roll the old one is closed first, then the new one is opened, then the old objects go."""
    await attached(here)
    found = here.stub.federated
    await here.edit(oidc={"identityProviderName": "umbrella"})
    await settle(here)
    assert found.providers["acme"]["enabled"] is True
    assert found.providers["umbrella"]["enabled"] is False
    assert found.providers["umbrella"]["remote_ids"] != [ISSUER]
    assert conditions(await here.stored())["FederationObjectsReady"] == "False/WaitingForConfigProjection"
    here.stub.requests.clear()
    await rolled(here)
    assert paths(here, "PUT", "PATCH", "DELETE", "POST") == [
        "PATCH identity_providers/acme",
        "PATCH identity_providers/umbrella",
        "PUT identity_providers/umbrella/protocols/openid",
        "PATCH identity_providers/umbrella",
        "DELETE identity_providers/acme/protocols/openid",
        "DELETE mappings/acme-mapping",
        "DELETE identity_providers/acme",
    ]
    assert list(found.providers) == ["umbrella"]
    assert found.providers["umbrella"]["remote_ids"] == [ISSUER]
    assert list(found.mappings) == ["umbrella-mapping"]
    stored = await here.stored()
    assert conditions(stored)["Ready"] == "True/AllReady"
    assert stored is not None
    assert [item["name"] for item in stored["status"]["applied"]["identityProviders"]] == ["umbrella"]


@pytest.mark.case("S4", "K13")
async def test_a_renamed_protocol_follows_the_roll_too(here: Scene) -> None:
    """The new one is created, then the old one is deleted; the identity provider stays as it is."""
    await attached(here)
    await here.edit(oidc={"protocolID": "mapped"})
    await settle(here)
    assert list(here.stub.federated.protocols) == [("acme", "openid")]
    here.stub.requests.clear()
    await rolled(here)
    assert paths(here, "PUT", "PATCH", "DELETE") == [
        "PUT identity_providers/acme/protocols/mapped",
        "DELETE identity_providers/acme/protocols/openid",
    ]
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_two_renames_in_a_row_leave_one_set_of_objects(here: Scene) -> None:
    """Also when the second comes before the first was rolled out."""
    await attached(here)
    await here.edit(oidc={"identityProviderName": "b"})
    await settle(here)
    await here.edit(oidc={"identityProviderName": "c", "protocolID": "mapped"})
    await settle(here)
    await rolled(here)
    found = here.stub.federated
    assert (list(found.providers), list(found.mappings), list(found.protocols)) == (
        ["c"],
        ["c-mapping"],
        [("c", "mapped")],
    )


# --- closed when something is lost


@pytest.mark.case("S1", "K2")
async def test_a_lost_projection_closes_and_a_regained_one_opens(here: Scene) -> None:
    """The Keystone no longer carries the configuration: one PATCH, at once; protocol, mapping and users stay."""
    await attached(here)
    await here.project()
    told: list[Event] = []
    await settle(here, told)
    assert [body for _, _, body in here.stub.writes()] == [{"identity_provider": {"enabled": False}}]
    assert conditions(await here.stored())["FederationObjectsReady"] == "False/WaitingForConfigProjection"
    assert "IdentityProviderDisabled" in [event.reason for event in told]
    await rolled(here)
    assert here.stub.federated.providers["acme"]["enabled"] is True
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


@pytest.mark.case("C6", "K2")
async def test_emptied_rules_close_first_and_delete_nothing(here: Scene) -> None:
    """Nobody can log in; both conditions say NoMappingRules; rules again open it again. Undeclared roles are revoked meanwhile."""
    await attached(here)
    await here.edit(mappings=None, groups=None)
    await settle(here)
    assert paths(here, "PATCH", "DELETE")[0] == "PATCH identity_providers/acme"
    assert here.stub.federated.providers["acme"]["enabled"] is False
    assert here.stub.federated.granted() == set()
    assert ("acme", "openid") in here.stub.federated.protocols
    found = conditions(await here.stored())
    assert found["FederationObjectsReady"] == found["MappingsReady"] == "False/NoMappingRules"
    await here.edit(mappings=RULES)
    await rolled(here)
    assert here.stub.federated.providers["acme"]["enabled"] is True


@pytest.mark.case("C6")
async def test_a_backend_without_rules_creates_nothing(here: Scene) -> None:
    """Neither identity provider nor mapping; the domain is there."""
    await here.oidc(mappings=None)
    await settle(here)
    await rolled(here)
    assert here.stub.federated.providers == {}
    assert conditions(await here.stored())["FederationObjectsReady"] == "False/NoMappingRules"


@pytest.mark.case("P3", "C16", "K2")
@pytest.mark.parametrize("trouble", ["api", "secret", "server"])
async def test_bad_days_open_and_close_nothing(here: Scene, trouble: str) -> None:
    """A failed look is not a fact: all conditions stay True, Keystone is not written to, an event tells."""
    await attached(here)
    if trouble == "api":
        await here.api(up=False)
    elif trouble == "secret":
        await here.client.delete(SECRETS, Key(NAMESPACE, "keystone-admin"))
    else:
        here.stub.fail("GET /v3/OS-FEDERATION/mappings", 500, times=1)
    told: list[Event] = []
    async with here.world() as world:
        walk = Walk(ROOM, world, lambda _ref, event: told.append(event))
        await walk(KEY)
    found = conditions(await here.stored())
    assert {item.partition("/")[0] for item in found.values()} == {"True"}
    assert here.stub.writes() == []


@pytest.mark.case("P3")
async def test_a_refused_write_is_told_and_tried_again(here: Scene) -> None:
    """Keystone fails in the middle of an attach: the condition that it belongs to says so, the next pass goes on."""
    here.stub.fail("PUT /v3/OS-FEDERATION/mappings", 500, "client-secret echoed", times=1)
    await here.oidc()
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        await walk(KEY)
        found = conditions(await here.stored())
        assert found["MappingsReady"] == "False/IdentityAPIError"
        assert found["DomainReady"] == "True/DomainProvisioned"
        await walk(KEY)
    assert conditions(await here.stored())["MappingsReady"] == "True/MappingsApplied"


async def test_a_lost_domain_closes_before_the_status_says_so(here: Scene) -> None:
    """An adopted domain that somebody renamed: the identity provider is closed, then DomainReady turns False."""
    theirs = here.stub.add("corp")
    await attached(here, domain={"name": "corp", "mode": "Adopt"})
    theirs["name"] = "renamed"
    await settle(here)
    assert here.stub.federated.providers["acme"]["enabled"] is False
    found = conditions(await here.stored())
    assert found["DomainReady"] == "False/DomainNotFound"
    assert found["FederationObjectsReady"] == "False/DomainNotReady"


# --- foreign objects


@pytest.mark.case("S5", "K3")
@pytest.mark.parametrize("what", ["identity provider", "mapping"])
async def test_what_somebody_else_made_is_not_seized(here: Scene, what: str) -> None:
    """Named in the condition with the way to adopt it; no write; deletion leaves it alone."""
    found = here.stub.federated
    domain = here.stub.add("corp")["id"]
    if what == "mapping":
        found.mappings["acme-mapping"] = {"id": "acme-mapping", "rules": RULES}
    else:
        found.providers["acme"] = {
            "id": "acme",
            "domain_id": domain,
            "enabled": True,
            "remote_ids": ["https://theirs"],
            "description": "",
        }
    await here.oidc(domain={"name": "corp", "mode": "Adopt"})
    await settle(here)
    await rolled(here)
    stored = await here.stored()
    assert conditions(stored)["FederationObjectsReady"] == "False/ForeignFederationObject"
    assert f"{what} acme" in message(stored, "FederationObjectsReady")
    assert ADOPT in message(stored, "FederationObjectsReady")
    assert here.stub.writes() == []
    await here.client.delete(BACKENDS, KEY)
    await here.attach()
    await settle(here)
    assert await here.stored() is None
    assert here.stub.writes() == []


@pytest.mark.case("S5", "K3")
async def test_an_annotation_adopts_and_closes_until_it_is_protected(here: Scene) -> None:
    """What was live without our sidecar is closed first; its mark then proves that it is ours, without the annotation."""
    found = here.stub.federated
    domain = here.stub.add("corp")["id"]
    found.providers["acme"] = {
        "id": "acme",
        "domain_id": domain,
        "enabled": True,
        "remote_ids": [ISSUER],
        "description": "",
    }
    found.mappings["acme-mapping"] = {"id": "acme-mapping", "rules": [{"remote": [{"type": "X"}], "local": []}]}
    found.mappings["other"] = {"id": "other", "rules": RULES}
    found.protocols["acme", "openid"] = {"id": "openid", "mapping_id": "other", "remote_id_attribute": None}
    await here.oidc(domain={"name": "corp", "mode": "Adopt"})
    await settle(here)
    await here.client.patch(BACKENDS, KEY, {"metadata": {"annotations": {ADOPT: "true"}}})
    await settle(here)
    assert paths(here, "PATCH")[0] == "PATCH identity_providers/acme"
    assert found.providers["acme"]["enabled"] is False
    await rolled(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert found.protocols["acme", "openid"]["mapping_id"] == "acme-mapping"
    await here.client.patch(BACKENDS, KEY, {"metadata": {"annotations": {ADOPT: None}}, "status": None})
    await here.client.patch(BACKENDS, KEY, {"status": None}, subresource="status")
    here.stub.requests.clear()
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert here.stub.writes() == []


@pytest.mark.case("S5")
async def test_an_identity_provider_of_another_domain_cannot_be_adopted(here: Scene) -> None:
    """Keystone never moves one; the message says what helps."""
    here.stub.federated.providers["acme"] = {
        "id": "acme",
        "domain_id": "default",
        "enabled": True,
        "remote_ids": [],
        "description": "",
    }
    await here.oidc()
    await here.client.patch(BACKENDS, KEY, {"metadata": {"annotations": {ADOPT: "true"}}})
    await settle(here)
    assert "Keystone cannot move it" in message(await here.stored(), "FederationObjectsReady")


@pytest.mark.case("C3", "K3")
async def test_a_backend_restored_without_status_knows_its_objects(here: Scene) -> None:
    """The identity provider's description proves it; the record is written anew and nothing else."""
    before = await attached(here)
    await here.client.patch(BACKENDS, KEY, {"status": None}, subresource="status")
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert stored["status"]["applied"] == before["status"]["applied"]
    assert conditions(stored)["Ready"] == "True/AllReady"
    assert here.stub.writes() == []


@pytest.mark.case("B28")
async def test_a_taken_remote_id_names_its_holder(here: Scene) -> None:
    """A reason of its own, tried once, then watched until it is free."""
    found = here.stub.federated
    found.providers["theirs"] = {
        "id": "theirs",
        "domain_id": "default",
        "enabled": True,
        "remote_ids": [ISSUER],
        "description": "",
    }
    await here.oidc()
    await settle(here)
    stored = await here.stored()
    assert conditions(stored)["FederationObjectsReady"] == "False/RemoteIDTaken"
    assert "identity provider theirs" in message(stored, "FederationObjectsReady")
    here.stub.requests.clear()
    await settle(here)
    assert here.stub.writes() == []
    found.providers.clear()
    await settle(here)
    await rolled(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


async def test_an_issuer_that_keystone_finds_too_long_is_told_in_plain_words(here: Scene) -> None:
    """Keystone 30 takes 64 characters; its own sentence speaks of a schema."""
    await here.oidc(oidc={"issuer": "https://idp.example.org/" + "x" * 60})
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        await walk(KEY)
    stored = await here.stored()
    assert conditions(stored)["FederationObjectsReady"] == "False/RefusedByKeystone"
    assert "at most 64 characters" in message(stored, "FederationObjectsReady")


async def test_rules_that_keystone_refuses_are_no_passing_trouble(here: Scene) -> None:
    """MappingsReady turns False although it was True: what is declared is not what runs. Nothing is closed; mended rules heal it."""
    await attached(here)
    here.stub.fail("PATCH /v3/OS-FEDERATION/mappings", 400, "Additional properties are not allowed", times=1)
    await here.edit(mappings=[{**RULES[0], "local": [{"user": {"name": "{0}", "email": "a"}}]}])
    async with here.world() as world:
        await Walk(ROOM, world)(KEY)
    stored = await here.stored()
    assert conditions(stored)["MappingsReady"] == "False/RefusedByKeystone"
    assert "Additional properties" in message(stored, "MappingsReady")
    assert here.stub.federated.providers["acme"]["enabled"] is True
    await here.edit(mappings=[{**RULES[0], "local": [{"user": {"name": "{0}", "email": "b"}}]}])
    await rolled(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"


# --- deletion


@pytest.mark.case("S1", "C18", "K2")
async def test_deletion_closes_first_and_deletes_last(here: Scene) -> None:
    """Disabled; out of the template; out of every replica; protocol, mapping, identity provider; then the domain by policy."""
    await attached(here, domain={"name": "corp", "deletionPolicy": "Delete"})
    told: list[Event] = []
    await here.client.delete(BACKENDS, KEY)
    await settle(here, told)
    assert [body for _, _, body in here.stub.writes()] == [{"identity_provider": {"enabled": False}}]
    stored = await here.stored()
    assert conditions(stored)["FederationObjectsReady"] == "False/IdentityProviderDisabled"
    assert conditions(stored)["Ready"] == "False/Deleting"
    assert "no longer mounts" in message(stored, "Ready")
    await here.project()
    await here.rolled_out(done=False)
    await settle(here, told)
    assert "every replica runs without" in message(await here.stored(), "Ready")
    assert here.stub.federated.protocols
    await here.rolled_out()
    await settle(here, told)
    assert await here.stored() is None
    assert paths(here, "PATCH", "DELETE") == [
        "PATCH identity_providers/acme",
        "DELETE identity_providers/acme/protocols/openid",
        "DELETE mappings/acme-mapping",
        "DELETE identity_providers/acme",
        *(f"{method} domains/{stored['status']['domainID']}" for method in ("PATCH", "DELETE")),  # type: ignore[index]
    ]
    assert here.stub.federated.groups == {}
    assert [event.reason for event in told].count("FederationObjectsDeleted") == 3


async def test_a_retained_domain_keeps_its_groups(here: Scene) -> None:
    """Federation objects go whatever the policy is."""
    await attached(here)
    await here.client.delete(BACKENDS, KEY)
    await settle(here)
    await here.attach()
    await settle(here)
    assert await here.stored() is None
    assert (here.stub.federated.providers, here.stub.federated.mappings, here.stub.federated.protocols) == ({}, {}, {})
    assert [item["name"] for item in here.stub.federated.groups.values()] == ["eng"]


async def test_objects_that_are_gone_are_done(here: Scene) -> None:
    """Somebody cleaned up before; deletion ends."""
    await attached(here)
    here.stub.federated.providers.clear()
    here.stub.federated.protocols.clear()
    await here.client.delete(BACKENDS, KEY)
    await here.attach()
    await settle(here)
    assert await here.stored() is None
    assert here.stub.federated.mappings == {}


@pytest.mark.case("B80", "P6")
@pytest.mark.parametrize("gone", ["keystone", "terminating", "admin secret"])
async def test_a_stack_that_is_torn_down_holds_nobody(here: Scene, gone: str) -> None:
    """Released with Warnings that name what stays."""
    await attached(here)
    await here.client.delete(BACKENDS, KEY)
    if gone == "terminating":
        await here.client.patch(KEYSTONE.resource, KEYSTONE_KEY, {"metadata": {"finalizers": ["example.org/hold"]}})
    if gone == "admin secret":
        await here.client.delete(SECRETS, Key(NAMESPACE, "keystone-admin"))
        await settle(here)
        assert conditions(await here.stored())["FederationObjectsReady"] == "False/AdminSecretUnavailable"
        await here.attach()
    else:
        await here.client.delete(KEYSTONE.resource, KEYSTONE_KEY)
    told: list[Event] = []
    await settle(here, told)
    assert await here.stored() is None
    assert [(event.type, event.reason) for event in told] == [
        ("Warning", "FederationTeardownFailed"),
        ("Warning", "DomainRetained"),
    ]
    assert here.stub.writes() == []


@pytest.mark.case("B11", "P6")
async def test_a_failing_teardown_keeps_the_finalizer_and_says_the_way_out_when_it_lasts(here: Scene) -> None:
    """Tried again with back-off; nothing is opened meanwhile. A Keystone that just restarts makes nobody force anything."""
    await attached(here)
    await here.client.delete(BACKENDS, KEY)
    await settle(here)
    await here.attach()
    here.stub.fail("DELETE /v3/OS-FEDERATION/mappings", 500, times=2)
    async with here.world() as world:
        walk = Walk(ROOM, world)
        await walk(KEY)
        stored = await here.stored()
        assert conditions(stored)["Ready"] == "False/FederationTeardownFailed"
        assert message(stored, "Ready").endswith("It is tried again")
        world.clock = lambda: datetime.now(UTC) + timedelta(minutes=5)
        await walk(KEY)
        assert "Remove finalizer" in message(await here.stored(), "Ready")
        await walk(KEY)
    assert await here.stored() is None
    assert here.stub.federated.providers == {}


async def test_a_backend_that_never_got_anywhere_goes_at_once(here: Scene) -> None:
    """Nothing recorded, nothing to tear down: a broken Keystone holds nobody."""
    await here.api(up=False)
    await here.oidc()
    await settle(here)
    await here.client.delete(BACKENDS, KEY)
    await settle(here)
    assert await here.stored() is None
    assert here.stub.requests == []


# --- beside a directory


@pytest.mark.case("B36")
async def test_a_group_of_a_directory_is_cautioned(here: Scene) -> None:
    """An LDAP backend of the domain that a rule's group is in: condition message and event, nothing is refused."""
    await here.backend("dir", domain="people")
    rules = [{**RULES[0], "local": [{"user": {"name": "{0}"}, "group": {"name": "eng", "domain": {"name": "people"}}}]}]
    told: list[Event] = []
    await here.oidc(mappings=rules)
    await settle(here, told)
    assert "LDAP backend dir" in message(await here.stored(), "MappingsReady")
    assert any(event.reason == "MappingCaution" and event.type == "Warning" for event in told)


@pytest.mark.parametrize("owner", ["keystone", "keystone-saml"])
async def test_the_deployment_that_answers_saml_is_waited_for(here: Scene, owner: str) -> None:
    """ConfigProjected counts every Deployment of the Keystone; a Keystone that is itself called so is another one."""
    await attached(here)
    main = await here.client.get(DEPLOYMENTS, KEYSTONE_KEY)
    keystone = await here.client.get(KEYSTONE.resource, KEYSTONE_KEY)
    if owner != KEYSTONE_KEY.name:
        meta = {"name": owner, "namespace": NAMESPACE}
        keystone = await here.client.create(KEYSTONE.resource, {"metadata": meta, "spec": keystone["spec"]})
    ref = Ref(keystone["apiVersion"], keystone["kind"], Key(NAMESPACE, owner), keystone["metadata"]["uid"])
    owned = owner_reference(ref)
    meta = {"name": "keystone-saml", "namespace": NAMESPACE, "ownerReferences": [owned]}
    await here.client.create(DEPLOYMENTS, {**main, "metadata": meta, "status": None})
    await settle(here)
    waits = conditions(await here.stored())["ConfigProjected"] == "False/WaitingForRollout"
    assert waits is (owner == "keystone")
    assert here.stub.writes() == []


# --- SAML


@pytest.mark.case("C5", "B43")
async def test_sp_metadata_and_certificate_are_shown_as_soon_as_they_are_there(here: Scene) -> None:
    """Before the provider's metadata is known, so that we can be registered there first; both go with their Secrets."""
    saml = {"idpEntityID": "https://idp.example.org", "idpMetadata": {"secretRef": {"name": "not-there"}}}
    body = oidc(KEY.name, type="SAML", saml=saml)
    body["spec"].pop("oidc")
    await here.client.create(BACKENDS, body)
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert "samlSPMetadataSecretName" not in stored["status"]
    assert "metadata Secret not-there does not exist" in message(stored, "ConfigProjected")
    pair = make_pair("keystone", datetime(2026, 1, 1, tzinfo=UTC))
    await here.secret("keystone-saml-sp", **{"tls.crt": pair.certificate.decode(), "tls.key": pair.key.decode()})
    await here.secret("keystone-saml-sp-metadata", entityID="https://keystone")
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert stored["status"]["samlSPMetadataSecretName"] == "keystone-saml-sp-metadata"
    assert stored["status"]["serviceProvider"]["certificateNotAfter"].startswith("203")
    assert "PRIVATE" not in str(stored)
    for name in ("keystone-saml-sp", "keystone-saml-sp-metadata"):
        await here.client.delete(SECRETS, Key(NAMESPACE, name))
    await settle(here)
    stored = await here.stored()
    assert stored is not None
    assert not {"samlSPMetadataSecretName", "serviceProvider"} & set(stored["status"])


@pytest.mark.case("P2")
async def test_no_secret_reaches_status_events_or_keystone(here: Scene) -> None:
    """Neither the client secret nor the admin's password stands anywhere but in its Secret and in the mounted one."""
    told: list[Event] = []
    here.stub.fail("POST /v3/groups", 500, "admin-password client-secret", times=1)
    await here.oidc()
    async with here.world() as world:
        walk = Walk(ROOM, world, lambda _ref, event: told.append(event))
        for _ in range(3):
            await walk(KEY)
    await rolled(here, told)
    sent = [item for item in here.stub.requests if not item[1].endswith("/auth/tokens")]
    assert "admin-password" not in f"{await here.stored()}{told}"
    assert "client-secret" not in f"{sent}"


@pytest.mark.case("P4")
async def test_a_backend_that_cannot_be_read_harms_no_sibling(here: Scene) -> None:
    """Its Secrets are not looked for; the others go on."""
    from moorage.keystone.backend.room import _secrets_of

    assert list(_secrets_of({**oidc("x"), "spec": {"type": 7}})) == []
    assert "openstack/client" in list(_secrets_of(oidc("x")))


@pytest.mark.parametrize(
    ("type_", "block"),
    [
        ("LDAP", {"bindCredentialsSecretRef": {"name": "bind"}, "tls": {"caBundleSecretRef": {"name": "ca"}}}),
        ("OIDC", {"clientSecretRef": {"name": "client"}, "caBundleSecretRef": {"name": "ca"}}),
        ("SAML", {"idpMetadata": {"secretRef": {"name": "md"}, "caBundleSecretRef": {"name": "ca"}}}),
        ("SAML", {"idpMetadata": {"url": "https://a.example/md"}, "sp": {"certificateSecretRef": {"name": "pair"}}}),
    ],
)
def test_the_index_names_every_secret_that_the_renderer_reads(type_: str, block: JsonObject) -> None:
    """It reads the object without a parse, so that it must not fall behind the types."""
    from moorage.keystone.backend.render import secret_names
    from moorage.keystone.backend.room import _secrets_of
    from moorage.keystone.backend.types import KIND

    more = {
        "LDAP": {"url": "ldaps://a", "suffix": "dc=a", "users": {"treeDN": "ou=a"}},
        "OIDC": {"issuer": "https://a.example", "clientID": "a"},
        "SAML": {"idpEntityID": "https://a.example"},
    }[type_]
    spec = {
        "keystoneRef": {"name": "keystone"},
        "domain": {"name": "a"},
        "type": type_,
        type_.lower(): {**more, **block},
    }
    obj = {**oidc("x"), "spec": spec}
    names = secret_names(KIND.parse(obj))
    assert {f"{obj['metadata']['namespace']}/{name}" for name in names} <= set(_secrets_of(obj))
