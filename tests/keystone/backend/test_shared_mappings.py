"""A mapping to which a protocol of somebody else refers is neither rewritten nor deleted, adopted or not (F15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from moorage.keystone.backend.types import ADOPT
from moorage.runtime.room import Event

from .scene import BACKENDS, ISSUER, KEY, RULES, Scene, conditions, scene
from .test_federated_walk import attached, message, paths, rolled
from .waiting import settle

THEIRS: list[dict[str, Any]] = [{"remote": [{"type": "HTTP_OIDC_SUB"}], "local": [{"user": {"name": "{0}"}}]}]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Scene]:
    async with scene(tmp_path) as made:
        yield made


def provider(here: Scene, id: str, domain: str, remote_id: str) -> None:
    made = {"id": id, "domain_id": domain, "enabled": True, "remote_ids": [remote_id], "description": ""}
    here.stub.federated.providers[id] = made


def protocol(here: Scene, idp: str, id: str, mapping: str = "acme-mapping") -> None:
    here.stub.federated.protocols[idp, id] = {"id": id, "mapping_id": mapping, "remote_id_attribute": None}


async def adopt(here: Scene) -> None:
    await here.client.patch(BACKENDS, KEY, {"metadata": {"annotations": {ADOPT: "true"}}})


@pytest.mark.case("S5", "K3")
@pytest.mark.parametrize("user", [("theirs", "saml2"), ("acme", "saml2")])
async def test_adoption_refuses_a_mapping_that_a_foreign_protocol_uses(here: Scene, user: tuple[str, str]) -> None:
    """Be it of another identity provider or of the adopted one: it is named, nothing is written; with a mapping of its own it is no obstacle."""
    domain = here.stub.add("corp")["id"]
    provider(here, "acme", domain, ISSUER)
    provider(here, "theirs", "default", "https://theirs.example.org")
    here.stub.federated.mappings["acme-mapping"] = {"id": "acme-mapping", "rules": THEIRS}
    protocol(here, *user)
    await here.oidc(domain={"name": "corp", "mode": "Adopt"})
    await adopt(here)
    await settle(here)
    stored = await here.stored()
    assert conditions(stored)["FederationObjectsReady"] == "False/ForeignFederationObject"
    assert (
        f"mapping acme-mapping has other rules, and protocol {user[1]} of identity provider {user[0]} uses it"
        in message(stored, "FederationObjectsReady")
    )
    assert here.stub.writes() == []
    here.stub.federated.mappings["own"] = {"id": "own", "rules": THEIRS}
    protocol(here, *user, "own")
    await settle(here)
    await rolled(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert here.stub.federated.mappings["own"]["rules"] == THEIRS
    assert here.stub.federated.protocols[user]["mapping_id"] == "own"


@pytest.mark.case("S5", "K3")
async def test_equal_rules_are_shared_and_stay_when_the_backend_goes(here: Scene) -> None:
    """Adopted without a write to the mapping; at the end it stays for the protocol that uses it, and an event says so; the rest is deleted."""
    domain = here.stub.add("corp")["id"]
    provider(here, "acme", domain, ISSUER)
    provider(here, "theirs", "default", "https://theirs.example.org")
    here.stub.federated.mappings["acme-mapping"] = {"id": "acme-mapping", "rules": RULES_SENT}
    protocol(here, "theirs", "mapped")
    await here.oidc(domain={"name": "corp", "mode": "Adopt"})
    await adopt(here)
    await settle(here)
    await rolled(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert "PATCH mappings/acme-mapping" not in paths(here, "PATCH")
    await here.client.delete(BACKENDS, KEY)
    told: list[Event] = []
    await settle(here, told)
    await here.attach()
    await settle(here, told)
    assert await here.stored() is None
    assert paths(here, "DELETE") == [
        "DELETE identity_providers/acme/protocols/openid",
        "DELETE identity_providers/acme",
    ]
    assert here.stub.federated.mappings["acme-mapping"]["rules"] == RULES_SENT
    (said,) = (event for event in told if event.reason == "MappingRetained")
    assert (said.type, said.message) == (
        "Warning", "mapping acme-mapping stays in Keystone: protocol mapped of identity provider theirs uses it",
    )  # fmt: skip


RULES_SENT: list[dict[str, Any]] = [
    {
        "remote": [{"type": "HTTP_OIDC_ISS", "any_one_of": [ISSUER]}, {"type": "HTTP_OIDC_PREFERRED_USERNAME"}],
        "local": [{"user": {"name": "{0}"}, "group": {"name": "eng", "domain": {"name": "corp"}}}],
    }
]
"""RULES of the scene as Keystone has them."""


@pytest.mark.case("S4")
async def test_a_mapping_of_our_own_stays_for_a_foreign_protocol_after_a_rename_too(here: Scene) -> None:
    """Told once; the record lets go of it, so that no later pass asks or tells again. An edit before is ours to make."""
    await attached(here)
    provider(here, "theirs", "default", "https://theirs.example.org")
    protocol(here, "theirs", "mapped")
    await here.edit(mappings=[{**RULES[0], "local": [{"user": {"name": "{0}", "email": "a"}}]}])
    await rolled(here)
    assert here.stub.federated.mappings["acme-mapping"]["rules"][0]["local"][0]["user"]["email"] == "a"
    await here.edit(oidc={"identityProviderName": "umbrella"})
    told: list[Event] = []
    await settle(here, told)
    await rolled(here, told)
    assert "acme-mapping" in here.stub.federated.mappings
    assert "acme" not in here.stub.federated.providers
    assert [event.reason for event in told].count("MappingRetained") == 1
    stored = await here.stored()
    assert conditions(stored)["Ready"] == "True/AllReady"
    assert stored is not None
    assert [item["name"] for item in stored["status"]["applied"]["identityProviders"]] == ["umbrella"]
    here.stub.requests.clear()
    await settle(here, told)
    assert here.stub.writes() == []
    assert [event.reason for event in told].count("MappingRetained") == 1


async def test_who_uses_a_mapping_is_asked_for_only_when_it_is_at_stake(here: Scene) -> None:
    """A steady pass does not list identity providers, annotated or not."""
    await attached(here)
    await adopt(here)
    here.stub.requests.clear()
    await settle(here)
    assert conditions(await here.stored())["Ready"] == "True/AllReady"
    assert not [path for _, path, _ in here.stub.requests if path.endswith("/identity_providers")]
