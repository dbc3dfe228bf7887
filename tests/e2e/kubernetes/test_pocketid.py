"""A Pocket-ID deployed by `moorage run` on a real kube-apiserver, its pod run by our node, a client attached to it; as the operator's ServiceAccount."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import aiohttp
import pytest
import yaml
from tests.e2e.cloud import Cloud, cloud, condition, holds
from tests.e2e.kubernetes.cluster import ACCOUNT, Cluster, cluster, used
from tests.e2e.one_machine.pocketid_image import NAME, ROOT, recipe
from tests.real.process import poll

from moorage.kube import resources
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.instance.types import PORT
from moorage.pocketid.oidcclient.types import KIND as CLIENT

pytestmark = [pytest.mark.conformance, pytest.mark.e2e, pytest.mark.timeout(900)]
SPACE = "identity"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The cluster, whose node has an image of a Pocket-ID, with the example applied by kubectl."""
    folder = tmp_path_factory.mktemp("pocketid-cluster")
    image = f"{NAME}={recipe(folder / 'images', '2.17.0')}"
    with cluster(folder, images=[image]) as found:
        asyncio.run(_applied(found))
        yield found


async def _applied(running: Cluster) -> None:
    """As soon as the webhooks answer; the Service's name is known as a cluster's DNS knows it."""
    files = sorted((ROOT / "examples" / "pocketid-deployed").glob("*.yaml"))
    documents = [item for file in files for item in yaml.safe_load_all(file.read_text())]
    await asyncio.to_thread(poll, lambda: _taken(running, yaml.safe_dump_all(documents)), what="admitted", limit=120)
    async with cloud(running.api.kubeconfig) as opened:
        site = Cloud(opened.client, SPACE)
        service = await site.until(resources.SERVICES, "main", lambda o: o["spec"].get("clusterIP"))
        running.name(f"main.{SPACE}.svc", service["spec"]["clusterIP"])


def _taken(running: Cluster, documents: str) -> bool:
    """Whether everything was admitted: not so before the webhooks' certificate is known."""
    kubectl = replace(running.kubectl, namespace=SPACE)
    said = kubectl.try_("apply", "-f", "-", given=documents)
    assert said.code == 0 or "webhook" in said.errors, said.errors
    return said.code == 0


async def test_the_same_manifests_deploy_a_server_and_attach_a_client(running: Cluster) -> None:
    """Ready on a real API server; the stored secret logs in; the ServiceAccount was refused nothing; key and volume outlive the instance."""
    async with cloud(running.api.kubeconfig) as opened:
        site = Cloud(opened.client, SPACE)
        await site.until(INSTANCE.resource, "main", holds("Ready"))
        client = await site.until(CLIENT.resource, "wiki", holds("Ready"))
        assert condition(client, "Ready")[1] == "Reconciled"
        assert await _login(site) == 200
        await site.client.delete(CLIENT.resource, site.key("wiki"))
        await site.gone(CLIENT.resource, "wiki")
        await site.client.delete(INSTANCE.resource, site.key("main"))
        await site.gone(resources.DEPLOYMENTS, "main")
        assert await site.exists(resources.SECRETS, "main-held-encryption-key")
        assert await site.exists(resources.PVCS, "main-data")
    entries = running.audit()
    assert {entry["user"]["username"] for entry in entries} == {ACCOUNT}
    assert [(entry["verb"], entry["requestURI"]) for entry in entries if entry["responseStatus"]["code"] == 403] == []
    asked = used(entries)
    for group, resource in (("", "secrets"), ("", "services"), ("", "persistentvolumeclaims"), ("apps", "deployments")):
        assert asked[group, resource, "patch"] >= 1
    assert ("apps", "deployments", "delete") not in asked


async def _login(site: Cloud) -> int:
    """What the token endpoint says to the stored secret, through the Service."""
    secret = await site.client.get(resources.SECRETS, site.key("wiki-oidc-credentials"))
    found = {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}
    service = await site.client.get(resources.SERVICES, site.key("main"))
    pair = f"{quote(found['client_id'], safe='')}:{quote(found['client_secret'], safe='')}"
    headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    url, form = f"http://{service['spec']['clusterIP']}:{PORT}/api/oidc/token", {"grant_type": "client_credentials"}
    async with aiohttp.ClientSession() as http, http.post(url, data=form, headers=headers) as answer:
        return answer.status
