"""A directory, an OpenID Connect and a SAML provider leave one Keystone in every order: who stays keeps what it had, and the last one takes everything."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.keystone.service import given
from tests.keystone.service.machine import Machine, machine, served
from tests.keystone.service.test_federated_passes import THREE, backends, data, deployment, detach, names
from tests.keystone.service.test_federation import GROUND, backend

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.types import FINALIZER
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.federation import CONFIG_VOLUME, project_all
from moorage.keystone.service.seen import DEPLOYMENT, Attached, mounted
from moorage.kube.client import Client

TYPES = {"corp-ldap": "LDAP", "acme": "OIDC", "corp": "SAML"}
_NAMES = iter(f"orders-{number}" for number in range(10_000))


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    async with served(tmp_path) as found:
        yield found


async def _files(m: Machine, left: set[str]) -> dict[str, bytes]:
    """What the pods mount of these backends, by data key."""
    live = await deployment(m)
    found: dict[str, bytes] = {}
    for volume in ("domains", CONFIG_VOLUME):
        name = mounted(live, volume)
        found |= await data(m, name) if name else {}
    return {key: value for key, value in found.items() if any(_belongs(key, name) for name in left)}


def _belongs(key: str, name: str) -> bool:
    return key.startswith(f"{name}.") or key == f"keystone.{name}.conf"


def _containers(live: JsonObject) -> list[str]:
    return [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]


@pytest.mark.case("P1", "S1")
@pytest.mark.parametrize("order", list(itertools.permutations(TYPES)), ids="-".join)
async def test_whoever_leaves_takes_its_own_with_it(client: Client, order: tuple[str, ...]) -> None:
    """One roll each; siblings' files stay byte for byte; sidecar, domain files and the SAML pod go with the last that needs them; no copy stays."""
    async with machine(client, next(_NAMES), spec=THREE) as m:
        for name, type_ in TYPES.items():
            await m.put(BACKEND.resource, given.backend({"name": name, "type": type_}))
        await m.drive()
        left = set(TYPES)
        assert await backends(m) == ("True", "AllBackendsProjected")
        for name in order:
            left -= {name}
            before, generation = await _files(m, left), (await deployment(m))["metadata"]["generation"]
            await detach(m, name)
            await m.drive()
            live, kinds = await deployment(m), {TYPES[item] for item in left}
            assert await _files(m, left) == before
            assert live["metadata"]["generation"] == generation + 1
            assert _containers(live) == ["keystone", *(["federation-proxy"] if kinds & {"OIDC", "SAML"} else [])]
            assert (mounted(live, "domains") is not None) == ("LDAP" in kinds)
            assert ("keystone-saml" in await names(m, DEPLOYMENT)) == ("SAML" in kinds)
            assert await backends(m) == ("True", "AllBackendsProjected" if left else "IdentityBackendsNotRequired")
        assert not [name for name in await names(m) if "-federation-" in name or "-domains-" in name]


@pytest.mark.case("S1")
async def test_the_last_one_that_leaves_rolls_the_pods_once(client: Client) -> None:
    """Nothing changes until its own controller has told that it is closed; then the sidecar goes, not its files first."""
    async with machine(client, next(_NAMES), spec=THREE) as m:
        m.later = -timedelta(hours=1)
        conditions = ["FederationObjectsReady", "ConfigProjected"]
        open_ = given.backend({"name": "acme", "type": "OIDC", "conditions": conditions})
        open_["metadata"]["finalizers"] = [FINALIZER]
        await m.put(BACKEND.resource, open_)
        await m.drive()
        before = await deployment(m)
        await detach(m, "acme")
        await m.drive()
        assert (await deployment(m))["spec"] == before["spec"]
        assert (await m.conditions())["IdentityBackendsReady"] == ("False", "WaitingForBackends")
        key = Key(m.namespace, "acme")
        status = (await client.get(BACKEND.resource, key))["status"]
        closed = {"status": "False", "reason": "IdentityProviderDisabled"}
        said = [item | closed if item["type"] == conditions[0] else item for item in status["conditions"]]
        await client.patch(BACKEND.resource, key, {"status": {"conditions": said}}, subresource="status")
        await m.drive()
        live = await deployment(m)
        assert live["metadata"]["generation"] == before["metadata"]["generation"] + 1
        assert _containers(live) == ["keystone"]


def _saying(item: Attached, type_: str, reason: str) -> Attached:
    """The backend with one condition False."""
    status = item.backend.status
    said = status.conditions[0].model_copy(update={"type": type_, "status": "False", "reason": reason})
    conditions = (*(one for one in status.conditions if one.type != type_), said)
    changed = item.backend.model_copy(update={"status": status.model_copy(update={"conditions": conditions})})
    return replace(item, backend=changed)


@pytest.mark.case("S1")
def test_the_last_one_that_leaves_needs_the_sidecar_until_its_provider_is_disabled() -> None:
    """Not until the pods have rolled without it: they roll once, from the sidecar with it to none."""
    leaving = backend("a", deleting=True, conditions=["DomainReady", "FederationObjectsReady", "ConfigProjected"])
    assert project_all([leaving], GROUND).files
    assert project_all([_saying(leaving, "FederationObjectsReady", "IdentityAPIError")], GROUND).files
    assert not project_all([_saying(leaving, "FederationObjectsReady", "IdentityProviderDisabled")], GROUND).files
