"""The embedded database: one SQLite file, and for the moment of a roll two pods that use it."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from tests.e2e import example
from tests.e2e.cloud import KEYSTONE, Cloud, Login, holds
from tests.e2e.databases.site import QUICK, load, people, rollout
from tests.e2e.one_machine.machine import Machine

from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
API = "app.kubernetes.io/component=api"


@pytest.fixture
async def site(up: Machine, opened: Cloud) -> Cloud:
    """The example, Ready."""
    documents = example.manifests(up.directory)
    example.of_kind(documents, "Keystone")["spec"]["extraConfig"] = QUICK
    await opened.apply(documents)
    await opened.ready(example.BACKEND)
    await opened.until(KEYSTONE, "keystone", holds("Ready"))
    return opened


async def _logs_out(site: Cloud) -> Login:
    """A login that is ended at once: Keystone writes the revocation, and refuses the token from then on. 201 when all was right."""
    found = await site.login("admin", example.ADMIN_PASSWORD, domain="Default")
    if found.status != 201:
        return found
    headers = {"X-Auth-Token": found.token, "X-Subject-Token": found.token}
    url = f"{await site.url()}/auth/tokens"
    try:
        async with aiohttp.ClientSession(headers=headers) as session:
            async with session.delete(url) as ended:
                pass
            async with session.get(url) as after:
                pass
    except aiohttp.ClientError as error:
        return Login(0, {"logout": repr(error)}, "")
    return Login(201 if (ended.status, after.status) == (204, 401) else after.status, {"logout": ended.status}, "")


async def test_a_roll_fails_no_login_and_no_write(site: Cloud) -> None:
    """Old and new pod share the file while the new one becomes ready; SQLite's locks order what they write."""
    before = await site.revision()
    change: dict[str, Any] = {"spec": {"extraConfig": {"token": {"expiration": "7200"}}}}
    async with load(people(site, leaver=lambda: _logs_out(site))) as seen:
        await site.client.patch(KEYSTONE, site.key("keystone"), change)
        await rollout(site, before)
    seen.assert_flawless()
    assert await site.revision() == before + 1
    pods = await site.client.list(resources.PODS, site.namespace, labels=API)
    assert len([pod for pod in pods.items if not pod["metadata"].get("deletionTimestamp")]) == 1
