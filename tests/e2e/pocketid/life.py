"""The stages of a client's life, each with its login; a life ends with nothing left at Pocket-ID.

Enters: a Site, a way to kill the operator and start it again. Leaves: assertions. Where the operator runs makes no difference.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

from tests.e2e.cloud import holds
from tests.fakes.pocketid import probes
from tests.real.process import TICK

from moorage.core.meta import Key
from moorage.kube.resources import NAMESPACES

from .site import APP, CLIENT, GROUP, SPACE, Site

Restart = Callable[[], None]
Open = Callable[[], AbstractAsyncContextManager[Site]]
REGENERATE = {"pocketid.internal/regenerate-client-secret": "true"}


async def whole(open_: Open, restart: Restart) -> None:
    """From nothing to nothing; the operator is killed between stages and in the middle of them."""
    async with open_() as site:
        first = await _attached(site)
    await _killed_when_all_is_well(open_, restart, first)
    async with open_() as site:
        second = await _rotated(site, first)
        await _overlap_over(site, first, second)
    third = await _killed_while_rotating(open_, restart, second)
    async with open_() as site:
        await _drift_repaired(site, third)
        await _edits_put_right(site)
        await site.cloud.client.delete(CLIENT, site.cloud.key(APP))
    await asyncio.to_thread(restart)
    async with open_() as site:
        await _nothing_left(site)


async def all_at_once(open_: Open, restart: Restart) -> None:
    """The namespace is deleted with the instance, its key and the client in it, and the operator is killed meanwhile: nothing is left at Pocket-ID."""
    async with open_() as site:
        secret = await _attached(site)
        id = (await site.credentials())["client_id"]
        await site.cloud.client.delete(NAMESPACES, Key("", SPACE))
    await asyncio.to_thread(restart)
    async with open_() as site:
        async with asyncio.timeout(300):
            while await _there(site):  # noqa: ASYNC110
                await asyncio.sleep(TICK)
        assert (await site.admin("GET", "/api/oidc/clients"))["data"] == []
        assert (await site.admin("GET", "/api/user-groups"))["data"] == []
        assert (await probes.machine_token(site.http, site.url, id, secret)).status == 401


async def _there(site: Site) -> bool:
    listed = await site.cloud.client.list(NAMESPACES)
    return SPACE in {item["metadata"]["name"] for item in listed.items}


async def _attached(site: Site) -> str:
    """The example becomes Ready, and its application logs in with what stands in the Secret."""
    await site.apply()
    await site.ready()
    found = await site.credentials()
    assert found["token_url"] == f"{site.url}/api/oidc/token"
    assert (await site.server_client())["id"] == found["client_id"]
    assert await site.works(found["client_secret"])
    assert not await site.works("not-the-client-secret")
    return found["client_secret"]


async def _killed_when_all_is_well(open_: Open, restart: Restart, secret: str) -> None:
    """The next life looks at everything and writes nothing to Pocket-ID."""
    async with open_() as site:
        await site.forget_requests()
    await asyncio.to_thread(restart)
    async with open_() as site:
        await _asked_again(site)
        assert [line for line in await site.requests() if not line.startswith("GET ")] == []
        assert (await site.credentials())["client_secret"] == secret


async def _asked_again(site: Site) -> None:
    """Wait until the operator has looked at the client a few times; what somebody asks a server is no condition of any object."""
    async with asyncio.timeout(120):
        while (await site.requests()).count("GET /api/oidc/clients") < 3:  # noqa: ASYNC110
            await asyncio.sleep(TICK)


async def _rotated(site: Site, old: str) -> str:
    """A new secret is asked for; within the overlap both work."""
    await site.edit(metadata={"annotations": REGENERATE})
    new = await site.secret(other_than=old)
    await site.cloud.until(
        CLIENT, APP, lambda obj: not set(REGENERATE) & (obj["metadata"].get("annotations") or {}).keys()
    )
    assert await site.works(new)
    assert await site.works(old)
    return new


async def _overlap_over(site: Site, old: str, new: str) -> None:
    """Without an overlap the old one is retired at once."""
    await site.edit(spec={"clientSecretOverlap": None})
    await site.cloud.until(CLIENT, APP, lambda obj: len(obj["status"].get("secrets") or ()) == 1, limit=120)
    assert await site.works(new)
    assert not await site.works(old)


async def _killed_while_rotating(open_: Open, restart: Restart, old: str) -> str:
    """Killed a moment after a rotation was asked for: it is done once, and exactly one secret is left."""
    async with open_() as site:
        await site.edit(metadata={"annotations": REGENERATE})
    await asyncio.to_thread(restart)
    async with open_() as site:
        new = await site.secret(other_than=old)
        await site.cloud.until(
            CLIENT,
            APP,
            lambda obj: (
                holds("Ready")(obj)
                and not set(REGENERATE) & (obj["metadata"].get("annotations") or {}).keys()
                and len(obj["status"].get("secrets") or ()) == 1
            ),
            limit=120,
        )
        assert (await site.credentials())["client_secret"] == new
        assert await site.works(new)
        assert not await site.works(old)
        assert len((await site.server_client())["credentials"]["secrets"]) == 1
        return new


async def _drift_repaired(site: Site, old: str) -> None:
    """Somebody deleted the secret in Pocket-ID, then the whole client."""
    row = await site.server_client()
    (held,) = row["credentials"]["secrets"]
    await site.admin("DELETE", f"/api/oidc/clients/{row['id']}/secrets/{held['id']}")
    new = await site.secret(other_than=old)
    assert await site.works(new)
    assert not await site.works(old)
    await site.admin("DELETE", f"/api/oidc/clients/{row['id']}")
    again = await site.secret(other_than=new)
    await site.cloud.until(
        CLIENT, APP, lambda obj: holds("Ready")(obj) and obj["status"]["clientID"] != row["id"], limit=120
    )
    assert await site.works(again)
    assert not await site.works(new)


async def _edits_put_right(site: Site) -> None:
    """What an administrator changed in the UI is as declared again: settings, groups, and who may use the client."""
    row = await site.server_client()
    await site.admin(
        "PUT", f"/api/oidc/clients/{row['id']}", {**row, "description": "by hand", "isGroupRestricted": False}
    )
    async with asyncio.timeout(120):
        while (found := await site.server_client())["description"] or not found["isGroupRestricted"]:  # noqa: ASYNC110
            await asyncio.sleep(TICK)
    assert [group["name"] for group in found["allowedUserGroups"]] == ["staff"]
    assert await site.works((await site.credentials())["client_secret"])


async def _nothing_left(site: Site) -> None:
    """Client, credentials and group go; the API key and the instance are a person's."""
    await site.gone()
    assert (await site.admin("GET", "/api/oidc/clients"))["data"] == []
    await site.cloud.client.delete(GROUP, site.cloud.key("staff"))
    await site.cloud.gone(GROUP, "staff")
    assert (await site.admin("GET", "/api/user-groups"))["data"] == []
