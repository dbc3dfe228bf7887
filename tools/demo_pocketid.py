"""`make demo POCKETID=1`: the life of an application's client at a Pocket-ID, told step by step. KEEP=1 leaves it up and prints what to try.

It starts a stand-in for Pocket-ID (tests/fakes/pocketid, with a real token endpoint) and one-machine mode, applies examples/pocketid-client, and logs in with the
secret that the application would read: created, rotated with an overlap, repaired, held back, deleted.
"""

from __future__ import annotations

import asyncio
import base64
import os
import shutil
import sys
import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import aiohttp
from demo import Cloud, condition, machine, say, tell

from moorage.cli import manifests
from moorage.cli.server import kind_named
from moorage.core.meta import JsonObject, Key
from moorage.core.secret import SecretText
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.errors import NotFound
from moorage.net.calls import Calls
from moorage.pocketid.rest import PocketID, Server

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fakes.pocketid import API_KEY, Fake, serving  # noqa: E402
from tests.fakes.pocketid.probes import authorize, code_flow, log_in, machine_token  # noqa: E402

EXAMPLE = ROOT / "examples/pocketid-client"
SPACE = "pocket-id"
CLIENT = Key(SPACE, "my-app")
CREDENTIALS = Key(SPACE, "my-app-oidc-credentials")
CALLBACK = "https://app.example.com/auth/callback"
OVERLAP = "8s"
RESYNC = "1s"
PATIENCE = 60.0
"""Seconds after which a step that does not come about ends the demo."""


@dataclass
class Stage:
    """A Pocket-ID, what an administrator does there, and the cluster."""

    fake: Fake
    url: str
    http: aiohttp.ClientSession
    remote: PocketID
    cloud: Cloud

    @property
    def kind(self) -> str:
        return "PocketIDOIDCClient"

    async def apply(self, document: JsonObject) -> None:
        """`kubectl apply`."""
        builtin = {"Namespace": resources.NAMESPACES, "Secret": resources.SECRETS}
        resource = builtin.get(document["kind"]) or kind_named(document["kind"]).resource
        await self.cloud.client.apply(resource, document)
        say(f"  applied {document['kind']} {document['metadata']['name']}")

    async def ready(self, kind: str, name: str) -> None:
        """Follow an object until it is Ready."""
        await self.cloud.follow(kind_named(kind).resource, Key(SPACE, name), lambda obj: condition(obj, "Ready"))

    async def credentials(self) -> tuple[str, str]:
        """What the application reads: client ID and secret; empty while there are none."""
        try:
            found = await self.cloud.client.get(resources.SECRETS, CREDENTIALS)
        except NotFound:
            return "", ""
        data = {key: base64.b64decode(text).decode() for key, text in found["data"].items()}
        return data["client_id"], data.get("client_secret", "")

    async def login(self, id: str, secret: str) -> int:
        """What the token endpoint answers to a client that presents this secret."""
        return (await machine_token(self.http, self.url, id, secret)).status


async def eventually(what: str, check: Callable[[], Awaitable[bool]]) -> None:
    """Wait for something that the operator does by itself."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await check():  # noqa: ASYNC110
                await asyncio.sleep(0.1)
    except TimeoutError:
        raise SystemExit(f"it did not come about within {PATIENCE:.0f} s: {what}") from None


async def create(stage: Stage) -> None:
    """Apply the example, adapted to the address of now, with an overlap that one can sit through."""
    for manifest in manifests.read([str(EXAMPLE)]):
        document = manifest.object
        match document["kind"]:
            case "Secret":
                document["stringData"]["token"] = API_KEY
            case "PocketIDInstance":
                document["spec"]["external"]["url"] = stage.url
            case "PocketIDUserGroup":
                document["spec"]["users"] = {"userRefs": [{"name": "fry"}]}
            case "PocketIDOIDCClient":
                document["spec"]["clientSecretOverlap"] = OVERLAP
        await stage.apply(document)
    for name, email in (("fry", "fry@example.com"), ("zoidberg", "zoidberg@example.com")):
        spec = {"email": {"value": email}, "instanceSelector": {"matchLabels": {"env": "prod"}}}
        kind = kind_named("PocketIDUser")
        meta = {"name": name, "namespace": SPACE}
        await stage.apply({"apiVersion": kind.resource.api_version, "kind": kind.kind, "metadata": meta, "spec": spec})
    say("conditions, as they turn True:")
    await stage.ready(stage.kind, CLIENT.name)
    live = await stage.cloud.client.get(resources.SECRETS, CREDENTIALS)
    say(f"  Secret {CREDENTIALS.name} holds: {', '.join(sorted(live['data']))}")


async def sign_in(stage: Stage) -> None:
    """The application itself, then two people in front of it: one of the group, one not."""
    id, secret = await stage.credentials()
    say(
        f"  the application, with the stored secret: {await stage.login(id, secret)}; with another one: {await stage.login(id, 'wrong')}"
    )
    users = {user.username: user.id for user in await stage.remote.list_users()}
    fry = await log_in(stage.http, stage.url, API_KEY, users["fry"])
    granted = (await code_flow(fry, id, secret, CALLBACK)).granted
    zoidberg = await log_in(stage.http, stage.url, API_KEY, users["zoidberg"])
    refused = "refused" in await authorize(
        zoidberg, id, CALLBACK, code_challenge="x" * 43, code_challenge_method="S256"
    )
    say(
        f"  fry of group staff signs in: {'yes' if granted else 'no'}; zoidberg, who is in no group: {'refused' if refused else 'let in'}"
    )
    if not granted or not refused:
        raise SystemExit("somebody was let in who should not be, or the other way round")


async def rotate(stage: Stage) -> None:
    """Ask for a new secret; both work for the overlap, then only the new one."""
    id, old = await stage.credentials()
    note = {"metadata": {"annotations": {"pocketid.internal/regenerate-client-secret": "true"}}}
    await stage.cloud.client.patch(kind_named(stage.kind).resource, CLIENT, note)

    async def changed() -> bool:
        return (await stage.credentials())[1] not in ("", old)

    await eventually("a new secret is stored", changed)
    _, new = await stage.credentials()
    say(
        f"  new secret stored; the new one: {await stage.login(id, new)}, the old one, for the overlap of {OVERLAP}: {await stage.login(id, old)}"
    )

    async def retired() -> bool:
        return await stage.login(id, old) == 401

    await eventually("the old secret is retired", retired)
    say(f"  after the overlap: the new one: {await stage.login(id, new)}, the old one: {await stage.login(id, old)}")


async def repair(stage: Stage) -> None:
    """Somebody changes the client and deletes its secret in Pocket-ID's own pages."""
    id, before = await stage.credentials()
    client = await stage.remote.get_oidc_client(id)
    await stage.remote.update_oidc_client(id, client.body({"name": "renamed by hand", "isGroupRestricted": False}))
    for secret in client.secrets:
        await stage.remote.delete_oidc_client_secret(id, secret.id)
    say(f"  by hand: renamed, opened to everybody, secret deleted; the stored secret: {await stage.login(id, before)}")

    async def mended() -> bool:
        found = await stage.remote.get_oidc_client(id)
        _, secret = await stage.credentials()
        settled = found.name == "my-app" and found.is_group_restricted and bool(found.groups)
        return settled and secret != before and await stage.login(id, secret) == 200

    await eventually("the client is as declared again", mended)
    found = await stage.remote.get_oidc_client(id)
    say(
        f"  repaired: name {found.name}, groups {', '.join(group.name for group in found.groups or ())}; the stored secret, a new one: 200"
    )


async def contest(stage: Stage) -> None:
    """A second resource claims the same client."""
    resource = kind_named(stage.kind).resource
    live = await stage.cloud.client.get(resource, CLIENT)
    spec = {
        "name": "my-app",
        "instanceSelector": live["spec"]["instanceSelector"],
        "callbackUrls": ["https://evil.example.com/cb"],
    }
    meta = {"name": "my-app-too", "namespace": SPACE}
    await stage.apply({"apiVersion": resource.api_version, "kind": stage.kind, "metadata": meta, "spec": spec})

    def held_back(obj: JsonObject) -> bool:
        return any(item["reason"] == "Conflict" for item in (obj.get("status") or {}).get("conditions") or ())

    await stage.cloud.follow(resource, Key(SPACE, "my-app-too"), held_back)
    id, _ = await stage.credentials()
    urls = (await stage.remote.get_oidc_client(id)).raw["callbackURLs"]
    say(f"  callback URLs at the server: {', '.join(urls)}")
    await stage.cloud.client.delete(resource, Key(SPACE, "my-app-too"))
    await stage.cloud.follow(resource, Key(SPACE, "my-app-too"), lambda _: False)


async def look_around(stage: Stage, kubeconfig: Path) -> None:
    """What was made by hand: found, and exported as a manifest."""
    await stage.remote.create_oidc_client({"name": "Made by hand", "callbackURLs": ["https://old.example.com/cb"]})
    for words in (("orphans",), ("export", "--no-users")):
        say(f"  $ moorage pocketid {' '.join(words)}")
        command = [sys.executable, "-m", "moorage.cli", "pocketid", *words, "--kubeconfig", str(kubeconfig)]
        done = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
        )
        shown, _ = await done.communicate()
        for line in shown.decode().splitlines():
            print(f"            {line}", flush=True)


async def delete(stage: Stage) -> None:
    """The resource goes, and with it the client, its secrets, and the credentials Secret."""
    id, secret = await stage.credentials()
    resource = kind_named(stage.kind).resource
    await stage.cloud.client.delete(resource, CLIENT)
    await stage.cloud.follow(resource, CLIENT, lambda _: False)

    async def gone() -> bool:
        return await stage.credentials() == ("", "")

    await eventually("the credentials Secret is gone", gone)
    left = [client.name for client in await stage.remote.list_oidc_clients()]
    say(
        f"  clients at the server: {', '.join(left)}; the secret of before: {await stage.login(id, secret)}; the credentials Secret is gone"
    )


async def story(stage: Stage, kubeconfig: Path) -> None:
    """The whole demo after the machine is up."""
    say("apply examples/pocketid-client, and two people")
    await create(stage)
    say("log in:")
    await sign_in(stage)
    say("rotate the secret:")
    await rotate(stage)
    say("repair what is changed in Pocket-ID's own pages:")
    await repair(stage)
    say("a second resource claims the client:")
    await contest(stage)
    say("what does nobody declare?")
    await look_around(stage, kubeconfig)
    if not os.environ.get("KEEP"):
        say("delete the client:")
        await delete(stage)


async def main() -> None:
    """Start everything, tell the story, end everything."""
    folder = Path(tempfile.mkdtemp(prefix="moorage-demo-"))
    os.environ["RESYNC_INTERVAL"] = RESYNC
    fake = Fake("2.17.0")
    try:
        say(
            "start a stand-in for Pocket-ID, and one-machine mode: moorage up (it looks every second here, every two minutes otherwise)"
        )
        async with (
            serving(fake) as url,
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
            Calls() as calls,
            machine(folder / "data") as kubeconfig,
            Client(load_kubeconfig(str(kubeconfig))) as client,
        ):
            remote = PocketID(calls, Server(url, SecretText(API_KEY)))
            await story(Stage(fake, url, http, remote, Cloud(client)), kubeconfig)
            if os.environ.get("KEEP"):
                say(f"left up; Pocket-ID's API is at {url}. Try in another terminal, and press Ctrl-C here to end it:")
                for line in ("status -A", f"tree PocketIDOIDCClient my-app -n {SPACE}", "pocketid orphans"):
                    print(f"  moorage {line} --kubeconfig {kubeconfig}")
                await asyncio.Event().wait()
            say("stop one-machine mode")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        say("ended; nothing is left running")


if __name__ == "__main__":
    tell(main)
