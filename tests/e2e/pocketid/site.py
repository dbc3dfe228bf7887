"""examples/pocketid-client at a fake Pocket-ID that is a process of its own; what an administrator and an application do there.

Enters: a kubeconfig, a served Pocket-ID. Leaves: a Site. It must not invent fields: what people copy is what is tested.
"""

from __future__ import annotations

import base64
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from tests.e2e.cloud import Cloud, cloud, holds
from tests.fakes.pocketid import probes
from tests.real.ports import free_port
from tests.real.process import Command, running

from moorage.core.meta import JsonObject
from moorage.kube.resources import NAMESPACES, SECRETS
from moorage.pocketid import KINDS

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "examples" / "pocketid-client"
TYPES = {"Namespace": NAMESPACES, "Secret": SECRETS, **{kind.kind: kind.resource for kind in KINDS}}
CLIENT, GROUP, INSTANCE = TYPES["PocketIDOIDCClient"], TYPES["PocketIDUserGroup"], TYPES["PocketIDInstance"]
SPACE, APP, CREDENTIALS = "pocket-id", "my-app", "my-app-oidc-credentials"
API_KEY = "an-api-key-of-this-test-0123456789"
RESYNC = {"RESYNC_INTERVAL": "1s"}
"""Edits at the server are seen after a second instead of two minutes."""


@contextlib.contextmanager
def pocketid(folder: Path) -> Iterator[str]:
    """A fake Pocket-ID as a process; its URL."""
    port = free_port()
    argv = [sys.executable, "-m", "tests.fakes.pocketid", "--port", str(port)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    env = os.environ | {"FAKE_POCKETID_API_KEY": API_KEY, "PYTHONPATH": path}
    with running(Command("pocketid", argv, folder, env), port=port):
        yield f"http://127.0.0.1:{port}"


def manifests(url: str) -> list[JsonObject]:
    """All documents of the example, in the order of its files, with the server's address and key."""
    files = sorted(FOLDER.glob("*.yaml"))
    found = [document for file in files for document in yaml.safe_load_all(file.read_text())]
    for document in found:
        if document["kind"] == "PocketIDInstance":
            document["spec"]["external"]["url"] = url
        if document["kind"] == "Secret":
            document["stringData"]["token"] = API_KEY
    return found


@dataclass(frozen=True)
class Site:
    """An API server, and the Pocket-ID at `url`."""

    cloud: Cloud
    http: aiohttp.ClientSession
    url: str

    async def apply(self) -> None:
        """As `kubectl apply -f examples/pocketid-client`."""
        for document in manifests(self.url):
            await self.cloud.client.apply(TYPES[document["kind"]], document)

    async def edit(self, **patch: Any) -> None:
        """Change the client."""
        await self.cloud.client.patch(CLIENT, self.cloud.key(APP), patch)

    async def ready(self) -> JsonObject:
        """The client once it is Ready at its newest generation."""
        return await self.cloud.until(CLIENT, APP, holds("Ready"), limit=120)

    async def credentials(self) -> dict[str, str]:
        """The data of the credentials Secret."""
        found = await self.cloud.client.get(SECRETS, self.cloud.key(CREDENTIALS))
        return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}

    async def secret(self, *, other_than: str = "") -> str:
        """The stored client secret, once it is another one."""
        found = await self.cloud.until(SECRETS, CREDENTIALS, lambda obj: _value(obj) not in ("", other_than), limit=120)
        return _value(found)

    async def gone(self) -> None:
        """Wait until client and credentials Secret are gone."""
        await self.cloud.gone(CLIENT, APP)
        await self.cloud.gone(SECRETS, CREDENTIALS)

    # --- at Pocket-ID

    async def admin(self, method: str, path: str, body: Any = None) -> Any:
        """One request with the API key; the decoded answer."""
        async with self.http.request(method, self.url + path, headers={"X-API-Key": API_KEY}, json=body) as answer:
            assert answer.status < 300, f"{method} {path}: {answer.status}"
            return await answer.json() if answer.status != 204 else None

    async def server_client(self) -> Any:
        """The only client that Pocket-ID has."""
        (only,) = (await self.admin("GET", "/api/oidc/clients"))["data"]
        return await self.admin("GET", f"/api/oidc/clients/{only['id']}")

    async def forget_requests(self) -> None:
        """Begin the journal anew."""
        async with self.http.delete(f"{self.url}/_fake/journal") as answer:
            assert answer.status == 200

    async def requests(self, who: str = "static") -> list[str]:
        """`METHOD path` of what was asked with the API key since then."""
        async with self.http.get(f"{self.url}/_fake/journal") as answer:
            entries = (await answer.json())["entries"]
        return [f"{item['method']} {item['path']}" for item in entries if item["who"] == who]

    # --- as the application and its user

    async def works(self, value: str) -> bool:
        """Whether a secret logs in, by both flows alike: a token for the machine, a code of a member of the group."""
        id = (await self.credentials())["client_id"]
        alone = await probes.machine_token(self.http, self.url, id, value)
        code = await probes.code_flow(await self.member(), id, value, "https://app.example.com/auth/callback")
        assert alone.granted == code.granted, f"client_credentials {alone.status}, code {code.status} {code.body}"
        return alone.granted

    async def member(self) -> probes.Browser:
        """A browser in which a member of `staff` is logged in."""
        users = (await self.admin("GET", "/api/users?search=ada"))["data"]
        body = {
            "username": "ada",
            "email": "ada@example.org",
            "firstName": "Ada",
            "lastName": "L",
            "displayName": "Ada L",
        }
        user = users[0] if users else await self.admin("POST", "/api/users", body)
        (staff,) = (await self.admin("GET", "/api/user-groups?search=staff"))["data"]
        await self.admin("PUT", f"/api/users/{user['id']}/user-groups", {"userGroupIds": [staff["id"]]})
        return await probes.log_in(self.http, self.url, API_KEY, user["id"])


def _value(secret: JsonObject) -> str:
    return base64.b64decode((secret.get("data") or {}).get("client_secret") or "").decode()


@contextlib.asynccontextmanager
async def site(kubeconfig: Path, url: str) -> AsyncIterator[Site]:
    """A client of the API server, and one of Pocket-ID."""
    async with cloud(kubeconfig) as opened, aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http:
        yield Site(Cloud(opened.client, SPACE), http, url)
