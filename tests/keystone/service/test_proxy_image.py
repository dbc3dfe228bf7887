"""The sidecar's image is taken away while backends are attached: the sidecar denies until each is closed, then it goes; with the image it comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.keystone.service import federated, given
from tests.keystone.service.machine import Machine, machine, served
from tests.keystone.service.test_federated_passes import SPEC, backends, deployment, files

from moorage.core.meta import JsonObject, Key
from moorage.keystone.backend.types import KIND as BACKEND
from moorage.keystone.service.types import KIND


@pytest.fixture
async def m(tmp_path: Path) -> AsyncIterator[Machine]:
    async with served(tmp_path) as client, machine(client, "proxy", spec=SPEC) as found:
        yield found


async def declare(m: Machine, federation: JsonObject | None) -> None:
    await m.client.patch(KIND.resource, m.key, {"spec": {"federation": federation}})


async def says(m: Machine, *open_: str) -> None:
    """The backend's own controller writes which conditions are True."""
    status = given.backend({"name": "acme", "type": "OIDC", "conditions": list(open_)})["status"]
    await m.client.patch(BACKEND.resource, Key(m.namespace, "acme"), {"status": status}, subresource="status")


def containers(live: JsonObject) -> list[Any]:
    return [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]


@pytest.mark.case("S1")
async def test_the_sidecar_outlives_its_image_until_the_provider_is_closed(m: Machine) -> None:
    """What runs stays, in the version that runs, and denies; a Warning says what is missing; nothing of it is left after the close."""
    await m.put(BACKEND.resource, given.backend({"name": "acme", "type": "OIDC"}))
    await m.drive()
    await says(m, "FederationObjectsReady", "ConfigProjected")
    await m.drive()
    assert "acme.client" in await files(m)
    await declare(m, None)
    await m.drive()
    assert containers(await deployment(m)) == ["keystone", "federation-proxy"]
    left = await files(m)
    assert "acme.client" not in left
    assert b"Require all denied" in left["proxy.conf"]
    assert await backends(m) == ("False", "WaitingForBackends")
    assert [event.reason for event in m.told].count("FederationProxyImageMissing") == 1
    await says(m)
    await m.drive()
    assert containers(await deployment(m)) == ["keystone"]
    assert await files(m) == {}
    assert await backends(m) == ("False", "WaitingForBackends")
    await declare(m, federated.FEDERATION)
    await m.drive()
    assert "acme.client" in await files(m)
    assert await backends(m) == ("True", "AllBackendsProjected")
