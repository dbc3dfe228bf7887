"""A Pocket-ID deployed on one machine from a local image, a client attached to it, its login, an upgrade in place, a crash, its end.

The pod is the fake as a program of its own (`tests.fakes.pocketid.deployed`): it reads the variables of the real server, keeps its rows on the
volume, and does not start with another encryption key.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import quote

import aiohttp
import pytest
from tests.e2e.cloud import Cloud, cloud, condition, holds
from tests.e2e.one_machine.machine import Machine, machine
from tests.e2e.one_machine.pocketid_image import NAME, recipe
from tests.real.process import TICK

from moorage.core.meta import JsonObject, Key
from moorage.kube import resources
from moorage.pocketid.instance.types import KIND as INSTANCE
from moorage.pocketid.instance.types import PORT
from moorage.pocketid.oidcclient.types import KIND as CLIENT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
SPACE = "pocket-id"
HELD, DATA, CREDENTIALS = "main-held-encryption-key", "main-data", "wiki-oidc-credentials"


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """`moorage up` with two versions of the image."""
    folder = tmp_path_factory.mktemp("pocketid")
    images = [
        part for version in ("2.14.0", "2.17.0") for part in ("--image", f"{NAME}={recipe(folder / 'images', version)}")
    ]
    with machine(folder, *images) as running:
        asyncio.run(_apply(running.kubeconfig))
        yield running


async def _apply(kubeconfig: Path) -> None:
    async with cloud(kubeconfig) as site:
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
        await site.client.apply(resources.NAMESPACES, body)
        spec = {"encryptionKey": {"generate": True}, "image": f"{NAME}:v2.14.0", "appUrl": "https://id.example.org"}
        await site.client.apply(INSTANCE.resource, _object(INSTANCE, "main", spec))
        selector = {"matchLabels": {"app": "wiki"}}
        spec = {"callbackUrls": ["https://wiki.example.org/cb"], "instanceSelector": selector}
        await site.client.apply(CLIENT.resource, _object(CLIENT, "wiki", spec))


def _object(kind: object, name: str, spec: JsonObject) -> JsonObject:
    rt = kind.resource  # type: ignore[attr-defined]
    meta = {"name": name, "namespace": SPACE, "labels": {"app": "wiki"} if name == "main" else {}}
    return {"apiVersion": rt.api_version, "kind": rt.kind, "metadata": meta, "spec": spec}


@pytest.fixture
async def site(up: Machine) -> AsyncIterator[Cloud]:
    """The namespace, with instance and client Ready."""
    async with cloud(up.kubeconfig) as opened:
        found = Cloud(opened.client, SPACE)
        await found.until(INSTANCE.resource, "main", holds("Ready"))
        await found.until(CLIENT.resource, "wiki", holds("Ready"))
        yield found


async def _credentials(site: Cloud) -> dict[str, str]:
    secret = await site.client.get(resources.SECRETS, site.key(CREDENTIALS))
    return {key: base64.b64decode(text).decode() for key, text in secret["data"].items()}


async def _login(site: Cloud) -> int:
    """What the token endpoint says to the stored secret, through the Service."""
    service, found = await site.client.get(resources.SERVICES, site.key("main")), await _credentials(site)
    pair = f"{quote(found['client_id'], safe='')}:{quote(found['client_secret'], safe='')}"
    headers = {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}
    url = f"http://{service['spec']['clusterIP']}:{PORT}/api/oidc/token"
    async with (
        aiohttp.ClientSession() as http,
        http.post(url, data={"grant_type": "client_credentials"}, headers=headers) as answer,
    ):
        return answer.status


async def _served(site: Cloud) -> None:
    """Wait until the Service takes connections again: what a machine that starts forwards is no condition of any object."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                await _asked(site)
                return
            await asyncio.sleep(TICK)


async def _generation(site: Cloud) -> str:
    live = await site.client.get(resources.DEPLOYMENTS, site.key("main"))
    return str(live["metadata"]["annotations"]["deployment.kubernetes.io/revision"])


async def test_a_client_of_a_deployed_server_logs_in_with_the_stored_secret(site: Cloud) -> None:
    """From two resources and an image to a token; the issuer is the address that browsers use."""
    assert await _login(site) == 200
    assert (await _credentials(site))["issuer_url"] == "https://id.example.org"
    instance = await site.client.get(INSTANCE.resource, site.key("main"))
    assert instance["status"]["version"] == "2.14.0"
    assert condition(instance, "Ready")[2] == f"Pocket-ID 2.14.0 runs at http://main.{SPACE}.svc:{PORT}"


@pytest.mark.case("P1")
async def test_a_second_pass_over_a_deployed_server_writes_nothing(site: Cloud) -> None:
    """A label wakes the room; the store has one revision more, that of the label."""
    before, asked = await _revision(site), len(await _asked(site))
    patch = {"metadata": {"labels": {"again": str(before)}}}
    await site.client.patch(INSTANCE.resource, site.key("main"), patch)
    async with asyncio.timeout(60):
        while len(await _asked(site)) <= asked:  # noqa: ASYNC110  a file tells nobody
            await asyncio.sleep(TICK)
    assert await _revision(site) == before + 1


async def _revision(site: Cloud) -> int:
    return int((await site.client.list(resources.CONFIG_MAPS, site.namespace)).resource_version)


async def _asked(site: Cloud) -> list[JsonObject]:
    """Looks of the operator at the version, as the fake's own journal has them."""
    service = await site.client.get(resources.SERVICES, site.key("main"))
    url = f"http://{service['spec']['clusterIP']}:{PORT}/_fake/journal"
    async with aiohttp.ClientSession() as http, http.get(url) as answer:
        entries = (await answer.json())["entries"]
        return [item for item in entries if item["path"] == "/api/version/current"]


async def test_an_upgrade_in_place_keeps_the_rows_and_the_login(site: Cloud) -> None:
    """The new pod reads the volume with the key that is held; the client and its secret are the same."""
    before = await _credentials(site)
    await site.client.patch(INSTANCE.resource, site.key("main"), {"spec": {"image": f"{NAME}:v2.17.0"}})
    await site.until(INSTANCE.resource, "main", lambda o: holds("Ready")(o) and o["status"]["version"] == "2.17.0")
    await site.until(CLIENT.resource, "wiki", holds("Ready"))
    assert await _credentials(site) == before
    assert await _login(site) == 200


async def test_a_killed_machine_finds_its_server_again(up: Machine, site: Cloud) -> None:
    """The pod lives on, nothing is rolled out, the secret works."""
    before, generation = await _credentials(site), await _generation(site)
    await asyncio.to_thread(up.kill)
    await asyncio.to_thread(up.start)
    async with cloud(up.kubeconfig) as opened:
        again = Cloud(opened.client, SPACE)
        await again.until(CLIENT.resource, "wiki", holds("Ready"))
        await _served(again)
        assert (await _credentials(again), await _generation(again)) == (before, generation)
        assert await _login(again) == 200


async def test_data_and_key_stay_when_the_instance_goes(site: Cloud) -> None:
    """And serve the next one of that name: its client is still there, with the secret that is stored."""
    before = await _credentials(site)
    stored = await site.client.get(INSTANCE.resource, site.key("main"))
    await site.client.delete(INSTANCE.resource, site.key("main"))
    await site.gone(resources.DEPLOYMENTS, "main")
    await site.gone(resources.SERVICES, "main")
    assert await site.exists(resources.SECRETS, HELD)
    assert await site.exists(resources.PVCS, DATA)
    await site.client.create(INSTANCE.resource, _object(INSTANCE, "main", stored["spec"]))
    await site.until(INSTANCE.resource, "main", holds("Ready"))
    await site.until(CLIENT.resource, "wiki", holds("Ready"))
    assert await _credentials(site) == before
    assert await _login(site) == 200


async def test_an_image_that_nobody_brought_is_told(site: Cloud) -> None:
    """The status repeats what the node says: which image, and how to bring it."""
    spec = {"encryptionKey": {"generate": True}, "image": "nowhere:v2.14.0", "deletionPolicy": "Delete"}
    await site.client.create(INSTANCE.resource, _object(INSTANCE, "other", spec))
    told = await site.until(INSTANCE.resource, "other", lambda o: "ImageNotFound" in condition(o, "Ready")[2], limit=60)
    assert condition(told, "Ready")[:2] == ("False", "Progressing")
    await site.client.delete(INSTANCE.resource, Key(SPACE, "other"))
    await site.gone(resources.PVCS, "other-data")
