"""Directories that several authorities prove, from a declared backend to a login: what the pods see is what the domains look for (F5, F6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, cloud, holds
from tests.e2e.one_machine.machine import Machine, machine
from tests.real.certificates import Authority

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """A machine with a Keystone and two domains of one directory: `right` names its authority, `other` one that signed nothing."""
    with machine(tmp_path_factory.mktemp("authorities")) as running:
        asyncio.run(_apply(running))
        yield running


async def _apply(up: Machine) -> None:
    documents = [item for item in example.manifests(up.directory) if item["kind"] != "KeystoneIdentityBackend"]
    example.of_kind(documents, "Keystone")["spec"] |= example.QUICK
    for name, authority in (("right", up.directory.authority), ("other", Authority("somebody else"))):
        tls = {"url": up.directory.tls_url, "tls": {"caBundleSecretRef": {"name": f"ca-{name}"}}}
        documents.append(example.backend(up.directory, name, {"ldap": tls}))
        meta = {"name": f"ca-{name}", "namespace": "openstack"}
        documents.append(
            {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": {"ca.crt": authority.pem.decode()}}
        )
    async with cloud(up.kubeconfig) as site:
        await site.apply(documents)
        await site.ready("right")
        await site.until(BACKEND, "other", holds("Ready"))


@pytest.fixture
async def site(up: Machine) -> AsyncIterator[Cloud]:
    """A client for this test."""
    async with cloud(up.kubeconfig) as opened:
        yield opened


async def test_who_has_the_right_authority_logs_in_after_one_with_another(site: Cloud) -> None:
    """The first login made the library's mind up, and all users of the others were refused by that worker."""
    await site.login("fry", "fry", domain="other")
    assert [(await site.login("fry", "fry", domain="right")).status for _ in range(4)] == [201] * 4


async def test_who_needs_no_proof_is_not_served_beside_who_must_prove_himself(up: Machine, site: Cloud) -> None:
    """The Keystone says why; the others go on."""
    tls = {"url": up.directory.tls_url}
    careless = example.backend(up.directory, "careless", {"ldap": tls, "extraOptions": {"tls_req_cert": "never"}})
    await site.apply([careless])
    await site.until(KEYSTONE, "keystone", lambda found: "tls_req_cert" in json.dumps(found["status"]))
    assert (await site.login("fry", "fry", domain="right")).status == 201
