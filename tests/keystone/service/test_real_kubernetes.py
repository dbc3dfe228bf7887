"""The same room on a real kube-apiserver: every manifest is admitted, and what the server fills in makes no second write."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.crashpoints import Fence
from tests.keystone.service import given
from tests.keystone.service.machine import Machine, established, machine
from tests.keystone.service.test_federated_passes import THREE, affinity, annotate, oidc, saml
from tests.real.kubernetes import kubernetes

from moorage.core.meta import Key
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service import keys
from moorage.keystone.service.seen import SECRET
from moorage.keystone.service.types import KIND
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.resources import CRDS


@pytest.mark.conformance
@pytest.mark.case("P1")
async def test_attach_rotate_and_detach_on_a_real_server(tmp_path: Path) -> None:
    """Ready with a NetworkPolicy and a backend; zero writes after it; both rotations; no Secret copy after the detach."""
    with kubernetes(tmp_path) as server:
        async with Client(load_kubeconfig(server.kubeconfig)) as client:
            for kind in (KIND, BACKEND):
                await client.apply(CRDS, kind.crd())
                await established(client, kind)
            async with machine(client, "real") as m:
                await _life(m)


async def _life(m: Machine) -> None:
    await m.put(BACKEND.resource, given.backend({"name": "acme"}))
    policy = {"networkPolicy": {"ingress": [{"podSelector": {}}]}}
    await m.client.patch(KIND.resource, m.key, {"spec": policy})
    await m.drive()
    assert (await m.conditions())["Ready"] == ("True", "AllReady")
    assert await _writes(m) == 0
    for name in ("fernet", "credential"):
        old = {"annotations": {keys.ROTATED_AT: given.OLD}}
        await m.client.patch(SECRET, Key(m.namespace, f"keystone-{name}-keys"), {"metadata": old})
    await m.drive()
    assert (await m.state())["credential"] == ["0", "1", "2"]
    await m.client.delete(BACKEND.resource, Key(m.namespace, "acme"))
    await m.drive()
    assert not [name for name in (await m.state())["Secret"] if "-domains-" in name]
    assert await _writes(m) == 0


@pytest.mark.conformance
@pytest.mark.case("P1")
@pytest.mark.case("K22")
async def test_both_federated_types_at_three_replicas_on_a_real_server(tmp_path: Path) -> None:
    """Sidecar, second workload, affinity, TLS Secret, NetworkPolicy are admitted; no second write; everything leaves again."""
    with kubernetes(tmp_path) as server:
        async with Client(load_kubeconfig(server.kubeconfig)) as client:
            for kind in (KIND, BACKEND):
                await client.apply(CRDS, kind.crd())
                await established(client, kind)
            async with machine(
                client, "real", spec={**THREE, "networkPolicy": {"ingress": [{"podSelector": {}}]}}
            ) as m:
                await _federated_life(m)


async def _federated_life(m: Machine) -> None:
    await m.drive()
    await oidc(m)
    await saml(m)
    await m.drive()
    assert (await m.conditions())["Ready"] == ("True", "AllReady")
    assert await affinity(m) == "ClientIP"
    assert await _writes(m) == 0
    for word in ("stage", "switch"):
        await annotate(m, word)
        await m.drive()
    assert await _writes(m) == 0
    for name in ("acme", "corp"):
        await m.client.delete(BACKEND.resource, Key(m.namespace, name))
    await m.drive()
    left = await m.state()
    assert (left["Deployment"], left["Service"]) == (["keystone"], ["keystone"])
    assert not [name for name in left["Secret"] if "-federation-" in name]
    assert await affinity(m) == "None"
    assert await _writes(m) == 0


async def _writes(m: Machine) -> int:
    fence = Fence()
    await m.drive(fence)
    return fence.writes
