"""Backends and whole stacks leave one machine: each ends, and nothing of them is left that should not be."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, cloud, holds
from tests.e2e.one_machine.machine import Machine
from tests.real.kubectl import MACHINE, Kubectl

from moorage.core.meta import Key
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


NAMESPACE = "leaving"
"""Of both tests: whichever comes second finds the Keystone of the first, or none."""


async def _attached(up: Machine, site: Cloud, policies: Mapping[str, str]) -> None:
    """A Keystone with backends of these names, each with its deletionPolicy, Ready."""
    documents = example.manifests(up.directory, site.namespace)
    example.of_kind(documents, "Keystone")["spec"] |= example.QUICK
    backends = [
        example.backend(up.directory, name, {"domain": {"deletionPolicy": policy}}, namespace=site.namespace)
        for name, policy in policies.items()
    ]
    await site.apply([item for item in documents if item["kind"] != "KeystoneIdentityBackend"] + backends)
    for name in policies:
        await site.ready(name)


@pytest.mark.case("P6", "B08", "C15")
async def test_detaching_ends_as_the_policy_says_and_leaves_no_secret(up: Machine) -> None:
    """Delete takes the domain away, Retain leaves it; Keystone rolls without files; no copy of a bind password stays."""
    async with cloud(up.kubeconfig, NAMESPACE) as site:
        await _attached(up, site, {"fleeting": "Delete", "lasting": "Retain"})
        assert (await site.login("fry", "fry", domain="fleeting")).status == 201
        jobs = await site.jobs()
        for name in ("fleeting", "lasting"):
            await site.client.delete(BACKEND, site.key(name))
        for name in ("fleeting", "lasting"):
            await site.gone(BACKEND, name)
        assert "domains" not in await site.mounted()
        await site.until(KEYSTONE, "keystone", holds("Ready"))
        assert await site.projected() == []
        assert await site.domain("fleeting") is None
        kept = await site.domain("lasting")
        assert kept is not None
        assert kept["enabled"]
        assert (await site.login("fry", "fry", domain="lasting")).status == 401
        assert (await site.administrator()).status == 201
        after = await site.jobs()
        assert after == jobs


@pytest.mark.case("B80", "P6")
async def test_a_namespace_with_everything_in_it_ends(up: Machine) -> None:
    """`kubectl delete namespace` with a Keystone and attached backends: all of it goes, processes and volumes included."""
    async with cloud(up.kubeconfig, NAMESPACE) as site:
        await _attached(up, site, {"attached": "Delete"})
        pods = (await site.client.list(resources.PODS, site.namespace)).items
        running = {item["metadata"]["uid"] for item in pods}
        if MACHINE.exists():
            kubectl = Kubectl(up.kubeconfig, up.folder, NAMESPACE)
            await asyncio.to_thread(kubectl, "delete", "namespace", NAMESPACE, "--timeout=400s", limit=450)
        else:
            await site.client.delete(resources.NAMESPACES, Key("", NAMESPACE))
        await site.gone(resources.NAMESPACES, NAMESPACE)
        for rt in (KEYSTONE, BACKEND, resources.SECRETS, resources.PODS, resources.PVCS):
            assert not (await site.client.list(rt, NAMESPACE)).items
        assert not [words for words in up.pods().values() if any(uid in words for uid in running)]
