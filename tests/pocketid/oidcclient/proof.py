"""The proof that ends every scenario: what is stored logs in, a machine's way and a browser's; what was retired does not.

Enters: a scene as a test left it. Leaves: assertions, over real HTTP at the token endpoint. The server's faults are lifted first, and a process
that just started makes of every client what it can; one more pass then writes nothing, to Kubernetes or to Pocket-ID. Only then are secrets
tried: the stored one must authenticate, and of a client that is Ready no other does, unless an overlap keeps it, or the secret is managed
elsewhere. Source: issue 5, Done when 2; spec/pocketid.md 4.11, 5.5, 9.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
from tests.crashpoints import passes
from tests.fakes.pocketid import probes
from tests.fakes.pocketid.model import Client, User

from moorage.core.meta import JsonObject, Key, key_of
from moorage.kube.errors import NotFound
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.room import ROOM
from moorage.pocketid.oidcclient.types import KIND

if TYPE_CHECKING:
    from .scene import Scene

VISITOR = "00000000-0000-4000-8000-0000000000aa"


async def prove(here: Scene) -> None:
    """All of it, for every client of the scene."""
    here.fake.faults.clear()
    await come_to_rest(here)
    async with _visitor(here) as browser:
        for obj in (await here.client.list(KIND.resource)).items:
            if not obj["metadata"].get("deletionTimestamp"):
                await _proven(here, browser, obj)
        for gone in here.fake.told.keys() - here.fake.store.clients.keys():
            for value in here.fake.told[gone]:
                assert (await probes.machine_token(browser.http, here.url, gone, value)).status == 401


async def come_to_rest(here: Scene) -> None:
    """Every client is passed over until nothing is left to do, and once more: that pass writes nothing."""
    keys = [key_of(obj) for obj in (await here.client.list(KIND.resource)).items]
    async with here.world() as world:
        for key in keys:
            await passes(ROOM, world, key)
        here.fake.journal.clear()
        before = world.client.writes
        for key in keys:
            await passes(ROOM, world, key, most=1)
        assert (here.writes(), world.client.writes - before) == ([], 0), "a second pass writes"


@dataclass(frozen=True)
class Case:
    """One client: its row at the server, the value that must work, and values that may work beside it (None: any)."""

    row: Client
    value: str
    beside: frozenset[str] | None


async def _proven(here: Scene, browser: probes.Browser, obj: JsonObject) -> None:
    case = await _case(here, obj)
    if case is None:
        return
    id = case.row.id
    works = {value for value in here.fake.told.get(id, ()) if here.fake.authenticates(id, value)} | {case.value}
    if case.beside is not None:
        assert len(works - {case.value} - case.beside) == 0, "a secret that should be retired still works"
    retired = set(here.fake.told.get(id, ())) - works
    for value in works:
        assert (await probes.machine_token(browser.http, here.url, id, value)).granted, "a secret does not log in"
    for value in retired:
        assert (await probes.machine_token(browser.http, here.url, id, value)).status == 401
    await _by_code(here, browser, case, retired)


async def _by_code(here: Scene, browser: probes.Browser, case: Case, retired: set[str]) -> None:
    """One code: refused with every retired secret, taken with the one that must work."""
    row = case.row
    redirect = next((url for url in row.settings["callbackURLs"] if "*" not in url), None)
    if redirect is None or row.settings["requiresReauthentication"]:
        return  # nobody can be sent back, or a passkey is asked for
    for id in row.groups:
        here.fake.store.groups[id].users.add(VISITOR)
    pushed = case.value if row.settings["requiresPushedAuthorizationRequests"] else ""
    form = await probes.code_form(browser, row.id, redirect, pushed_with=pushed)
    if row.settings["isGroupRestricted"] and not row.groups:
        assert "refused" in form, "a client that nobody may use let somebody in"
        return
    for value in retired:
        assert (await probes.ask_token(browser.http, here.url, form, (row.id, value))).status == 401
    assert (await probes.ask_token(browser.http, here.url, form, (row.id, case.value))).granted, "no login by a code"


async def _case(here: Scene, obj: JsonObject) -> Case | None:
    """What is to be proven of a client; None when it has no secret, when nobody here knows it, or it is at another server."""
    spec, status = obj["spec"], obj.get("status") or {}
    row = here.fake.store.clients.get(status.get("clientID") or "")
    if row is None or row.public or (status.get("instance") or {}).get("url") != here.url:
        return None
    wanted = spec.get("secret") or {}
    stores = wanted.get("storeClientSecret") is not False and wanted.get("enabled") is not False
    ready = any(item["status"] == "True" for item in status.get("conditions") or ())
    declared = await _declared(here, spec) if ready else None
    stored = await _stored(here, obj)
    if not stores and declared is None:
        return None
    if declared is not None and stores:
        assert stored == declared, "the Secret does not hold what is declared"
    value = declared or stored
    if value is None:
        assert not ready, "Ready, and no secret is stored"
        return None
    strict = ready and not spec.get("clientSecretOverlap")
    return Case(row, value, here.spares if strict else None)


async def _declared(here: Scene, spec: JsonObject) -> str | None:
    ref = spec.get("clientSecretRef")
    return None if ref is None else (await here.credentials(ref["name"])).get(ref["key"])


async def _stored(here: Scene, obj: JsonObject) -> str | None:
    """The client secret in the Secret that the spec names, if that is this client's."""
    wanted, meta = obj["spec"].get("secret") or {}, obj["metadata"]
    name = wanted.get("name") or f"{meta['name']}-oidc-credentials"
    try:
        found = await here.client.get(SECRETS, Key(meta["namespace"], name))
    except NotFound:
        return None
    if meta["uid"] not in [owner["uid"] for owner in found["metadata"].get("ownerReferences") or ()]:
        return None
    text = (found.get("data") or {}).get((wanted.get("keys") or {}).get("clientSecret") or "client_secret")
    return None if text is None else base64.b64decode(text).decode(errors="replace")


@contextlib.asynccontextmanager
async def _visitor(here: Scene) -> AsyncIterator[probes.Browser]:
    """A person with a browser who is logged in to Pocket-ID."""
    settings = {
        "username": "visitor", "email": "visitor@example.org", "emailVerified": True, "firstName": "Vi", "lastName": "Sitor",
        "displayName": "Vi Sitor", "isAdmin": False, "locale": None, "disabled": False,
    }  # fmt: skip
    here.fake.store.users.setdefault(VISITOR, User(VISITOR, settings))
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield await probes.log_in(http, here.url, here.fake.api_key, VISITOR)
