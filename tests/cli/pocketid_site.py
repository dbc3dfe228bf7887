"""A Pocket-ID that people have used for a while, and `moorage up` beside it.

Enters: a fake, a folder. Leaves: a furnished server: clients of every sort, groups, APIs, people, a directory's objects, secrets in use. Every text that must
never be printed stands in SECRETS.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from tests.cli.typist import typed
from tests.fakes.idp.keys import SigningKey
from tests.fakes.pocketid import API_KEY, Fake
from tests.real.process import poll

from moorage.cli.server import kind_named, state_of
from moorage.cli.waiting import until
from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.secret import SecretText
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.net.calls import Calls
from moorage.pocketid.rest import Access, Claim, Permission, PocketID, Server

NAMESPACE = "pocket-id"
WIKI_SECRET, SCIM_TOKEN = "wiki-secret-in-use-0123", "scim-token-0123456789"
SECRETS = (API_KEY, WIKI_SECRET, SCIM_TOKEN)
CALLBACK = "https://wiki.example.org/cb"
DOCUMENT = "https://app.example.org/client.json"


async def furnish(url: str) -> None:
    """What people did by hand, through the API."""
    async with Calls() as http:
        remote = PocketID(http, Server(url, SecretText(API_KEY)))
        ann, groups = await _people(remote)
        orders = await _api(remote)
        await _clients(remote, groups)
        own = frozenset((orders["read"], orders["write"]))
        await remote.set_api_client_grant(orders["id"], "wiki", Access(client=True, client_permissions=own))
        await remote.set_api_client_grant(orders["id"], "spa", Access(user_delegated=True))
        await remote.create_scim_service_provider("wiki", "https://wiki.example.org/scim", SecretText(SCIM_TOKEN))
        await remote.create_scim_service_provider("spa", "https://spa.example.org/scim", SecretText(""))
        assert ann


async def _people(remote: PocketID) -> tuple[str, dict[str, str]]:
    ann = await remote.create_user(
        {"username": "Ann.Lee", "email": "ann@example.org", "firstName": "Ann", "lastName": "Lee", "displayName": "Ann Lee", "isAdmin": True}
    )  # fmt: skip
    bob = await remote.create_user(
        {"username": "bob", "email": "bob@example.org", "displayName": "Bob", "disabled": True}
    )
    await remote.update_user_custom_claims(ann.id, [Claim("team", "red"), Claim("area", "north")])
    groups = {}
    for name, friendly in (("staff", "Staff"), ("empty", "empty"), ("Ops Team", "Ops")):
        groups[name] = (await remote.create_user_group(name, friendly)).id
    await remote.update_user_group_users(groups["staff"], [ann.id, bob.id])
    await remote.update_user_group_custom_claims(groups["staff"], [Claim("role", "staff")])
    return ann.id, groups


async def _api(remote: PocketID) -> dict[str, str]:
    """An API whose permissions are found by their keys."""
    made = await remote.create_api("Orders API", "https://orders.example.org/")
    permissions = [Permission("read", "Read", "May read"), Permission("write", "Write")]
    made = await remote.update_api_permissions(made.id, permissions)
    await remote.set_api_cimd_access(made.id, False, [made.permission_ids()["read"]])
    return {"id": made.id, **made.permission_ids()}


async def _clients(remote: PocketID, groups: dict[str, str]) -> None:
    whole = {
        "id": "wiki", "name": "Wiki", "description": "Everybody's", "callbackURLs": [CALLBACK, "http://localhost:*/cb"],
        "logoutCallbackURLs": ["https://wiki.example.org/bye"], "launchURL": "https://wiki.example.org", "pkceEnabled": True,
        "requiresPushedAuthorizationRequests": True, "skipConsent": True, "accessTokenDurationMinutes": 5, "backchannelLogoutURL": f"{CALLBACK}/bye",
        "credentials": {"federatedIdentities": [
            {"issuer": "https://cluster.example.org", "subject": "system:wiki", "publicKeys": [SigningKey().jwk], "replayProtection": True},
            {"issuer": "https://ci.example.org", "jwks": "https://ci.example.org/keys", "audience": "wiki"},
        ]},
    }  # fmt: skip
    await remote.create_oidc_client(whole)
    await remote.create_oidc_client_secret("wiki", SecretText(WIKI_SECRET))
    await remote.create_oidc_client({"id": "spa", "name": "Spa", "isPublic": True, "isGroupRestricted": True})
    await remote.update_oidc_client_allowed_groups("spa", [groups["staff"], groups["Ops Team"]])
    await remote.create_oidc_client({"id": "closed", "name": "Closed", "isGroupRestricted": True})
    for id, name in (
        ("1e3", "wiki!"),
        ("wiki-3", "WIKI"),
        ("kanji", "文書"),
        ("kana", "かな"),
    ):
        await remote.create_oidc_client({"id": id, "name": name, "callbackURLs": [CALLBACK]})


def behind_its_back(fake: Fake) -> None:
    """What no request makes: a directory's objects, a metadata document's client, a logo that was uploaded, a URL and a name that admission refuses."""
    store = fake.store
    next(user for user in store.users.values() if user.settings["username"] == "bob").ldap_id = "uid=bob"
    next(group for group in store.groups.values() if group.name == "Ops Team").ldap_id = "cn=ops"
    fake.place_cimd_client(DOCUMENT, "From its document", [CALLBACK], "Says who it is")
    store.clients["wiki"].logos["light"] = ("image/png", b"uploaded")
    kana = store.clients["kana"]
    for id, changed in (
        ("old", {"name": "Old", "callbackURLs": ["javascript:alert(1)"]}),
        ("bidi", {"name": "a\u202egnp x"}),
    ):
        store.clients[id] = type(kana)(id, {**kana.settings, **changed})


def furnished(fake: Fake, url: str) -> None:
    """All of it; what was done is forgotten by the journal."""
    asyncio.run(furnish(url))
    behind_its_back(fake)
    fake.journal.clear()


@dataclass
class Site:
    """One machine and one Pocket-ID."""

    fake: Fake
    url: str
    kubeconfig: Path
    folder: Path
    printed: list[str] = field(default_factory=list)

    def moorage(self, *words: object, given: str = "") -> subprocess.CompletedProcess[str]:
        """Type a command; what it prints is kept, to be searched for secrets."""
        env = os.environ | {"KUBECONFIG": str(self.kubeconfig)}
        done = typed(words, self.folder, given=given, env=env)
        self.printed += [" ".join(done.args), done.stdout, done.stderr]
        return done

    @property
    def key_file(self) -> Path:
        """The API key, as a person keeps it."""
        file = self.folder / "key"
        file.write_text(f"{API_KEY}\n")
        return file

    def apply(self, documents: list[JsonObject]) -> None:
        """`kubectl apply`."""
        asyncio.run(self._apply(documents))

    async def _apply(self, documents: list[JsonObject]) -> None:
        builtin = {"Namespace": resources.NAMESPACES, "Secret": resources.SECRETS}
        async with Client(load_kubeconfig(self.kubeconfig)) as client:
            for item in documents:
                await client.apply(builtin.get(item["kind"]) or kind_named(item["kind"]).resource, item)

    def get(self, kind: str, name: str, namespace: str = NAMESPACE) -> JsonObject:
        """One object of ours, or a Secret."""

        async def work() -> JsonObject:
            async with Client(load_kubeconfig(self.kubeconfig)) as client:
                resource = resources.SECRETS if kind == "Secret" else kind_named(kind).resource
                return await client.get(resource, Key(namespace, name))

        return asyncio.run(work())

    def delete(self, kind: str, name: str) -> None:
        """`kubectl delete --wait=false`."""

        async def work() -> None:
            async with Client(load_kubeconfig(self.kubeconfig)) as client:
                await client.delete(kind_named(kind).resource, Key(NAMESPACE, name))

        asyncio.run(work())

    def ready(self, documents: list[JsonObject]) -> None:
        """Wait until every object of ours among these is Ready."""
        asyncio.run(self._ready([item for item in documents if "pocketid" in item["apiVersion"]]))

    async def _ready(self, documents: list[JsonObject]) -> None:
        async with Client(load_kubeconfig(self.kubeconfig)) as client, asyncio.timeout(240):
            for item in documents:
                async for obj in until(client, kind_named(item["kind"]).resource, key_of(item)):
                    if obj is not None and state_of(obj).ready:
                        break

    def rounds(self, count: int = 2) -> None:
        """Wait until the operator has read the list of clients so many times more: every object was looked at since the first of them."""

        def lists() -> int:
            return sum(entry.method == "GET" and entry.path == "/api/oidc/clients" for entry in list(self.fake.journal))

        wanted = lists() + count
        poll(lambda: lists() >= wanted, what="the operator has looked at the list of clients again", limit=120)

    def secret(self, name: str, **data: str) -> JsonObject:
        """A Secret of a person."""
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}
        meta = {"name": name, "namespace": NAMESPACE}
        return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": encoded}


NAMESPACE_OBJECT: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}


def documents(text: str) -> list[JsonObject]:
    """What a text of YAML, or a List as JSON, holds."""
    if text.startswith("{"):
        return list(json.loads(text)["items"])
    return [item for item in yaml.safe_load_all(text) if item]


@contextmanager
def machine(folder: Path, env: dict[str, str], *arguments: str) -> Iterator[Path]:
    """`moorage up` on a folder; its kubeconfig."""
    command = [sys.executable, "-m", "moorage.cli", "up", "--data", str(folder / "data"), *arguments]
    with (folder / "up.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=os.environ | env)
        assert process.stdout is not None
        try:
            line = process.stdout.readline().strip()
            assert line.startswith("kubeconfig: "), (folder / "up.log").read_text()
            yield Path(line.removeprefix("kubeconfig: "))
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
