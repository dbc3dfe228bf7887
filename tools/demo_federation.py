"""`make demo FEDERATION=1`: people of a Keycloak sign in to a Keystone by OpenID Connect and by SAML, in a browser without a window.

It starts a Keycloak, a TLS gateway, a dashboard and one-machine mode, applies examples/keystone-oidc and examples/keystone-saml, signs in, and writes a
picture of each page to a folder that it names. SHOTS=FOLDER names another one. Nothing else is left behind.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import keycloak as keycloak_program
from demo import SPACE, Cloud, condition, machine, say, tell

from moorage.cli.server import kind_named
from moorage.core.meta import JsonObject, Key
from moorage.kube import resources
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from playwright.async_api import Browser  # noqa: E402
from tests.e2e.federation import manifests  # noqa: E402
from tests.e2e.federation.wire import ask  # noqa: E402
from tests.fakes.dashboard import Dashboard, dashboard  # noqa: E402
from tests.fakes.idp import ServiceProvider  # noqa: E402
from tests.real.certificates import Authority  # noqa: E402
from tests.real.chromium import chromium, fill_in, profile, send  # noqa: E402
from tests.real.gateway import gateway  # noqa: E402
from tests.real.keycloak import Keycloak, keycloak, oidc_client, realm, saml_client, users  # noqa: E402

OIDC, SAML = "acme", "corp"
PEOPLE = {OIDC: "alice", SAML: "carol"}
PROTOCOLS = {OIDC: "openid", SAML: "mapped"}
KEYCLOAK, DASHBOARD, GATEWAY = ("127.0.0.11", 8443), ("127.0.0.30", 9443), ("127.0.0.40", 5443)
"""Addresses as the examples have them."""
PASSWORD = "change-me-please"


def port_of(host: str, wanted: int) -> int:
    """The port that the examples name, or a free one when somebody else listens there."""
    for port in (wanted, 0):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind((host, port))
            return int(probe.getsockname()[1])
    raise SystemExit(f"no free port on {host}")


@dataclass
class Stage:
    """All that is started around the machine."""

    base: str
    authority: Authority
    keycloak: Keycloak
    dashboard: Dashboard
    shots: Path
    folder: Path
    api: str = ""

    def protected(self, name: str) -> str:
        return f"/OS-FEDERATION/identity_providers/{name}/protocols/{PROTOCOLS[name]}"

    def token(self, identity: JsonObject, scope: JsonObject | None = None) -> tuple[JsonObject, str]:
        """A Keystone token by POST /v3/auth/tokens."""
        auth = {"identity": identity, **({"scope": scope} if scope else {})}
        headers, body = {"Content-Type": "application/json"}, json.dumps({"auth": auth}).encode()
        answer = ask(self.keycloak.trust, "POST", f"{self.base}/v3/auth/tokens", headers, body)
        return answer.json.get("token", {}), answer.header("X-Subject-Token")

    def administrator(self) -> str:
        """The administrator's token; "" when the login fails."""
        user = {"name": "admin", "domain": {"name": "Default"}, "password": PASSWORD}
        identity = {"methods": ["password"], "password": {"user": user}}
        return self.token(identity, {"system": {"all": True}})[1]

    def describe(self, token: str) -> Mapping[str, str]:
        """Who a token is, as Keystone says it: what the dashboard shows."""
        trusted = {"X-Auth-Token": self.administrator(), "X-Subject-Token": token}
        found = ask(self.keycloak.trust, "GET", f"{self.base}/v3/auth/tokens", trusted).json.get("token", {})
        user = found.get("user", {})
        domain = user.get("domain", {}).get("name", "")
        scoped, _ = self.token({"methods": ["token"], "token": {"id": token}}, {"domain": {"name": domain}})
        federated = user.get("OS-FEDERATION", {})
        return {
            "User": user.get("name", ""),
            "Domain": domain,
            "Identity provider": federated.get("identity_provider", {}).get("id", ""),
            "Groups": str(len(federated.get("groups", ()))),
            "Roles on the domain": ", ".join(sorted(role["name"] for role in scoped.get("roles", ()))),
        }


async def attach(stage: Stage, cloud: Cloud) -> None:
    """Apply the examples, adapted to the addresses of now; tell Keycloak of the service provider when its metadata is there."""
    discovery = json.loads(await stage.keycloak.fetch(f"/realms/{OIDC}/.well-known/openid-configuration"))
    trusted = stage.authority.pem.decode()
    descriptor = await stage.keycloak.descriptor(SAML)
    documents = [
        *manifests.site(stage.base, stage.dashboard.origin),
        *manifests.oidc(OIDC, discovery, trusted, bearer=True),
        *manifests.saml(SAML, stage.keycloak.issuer(SAML), descriptor),
    ]
    builtin = {"Namespace": resources.NAMESPACES, "Secret": resources.SECRETS}
    say("apply examples/keystone-oidc and examples/keystone-saml")
    for document in documents:
        await cloud.client.apply(builtin.get(document["kind"]) or kind_named(document["kind"]).resource, document)
        say(f"  applied {document['kind']} {document['metadata']['name']}")
    await cloud.follow(cloud.keystone, Key(SPACE, "keystone"), lambda o: condition(o, "KeystoneAPIReady"))
    stage.api = (await cloud.address()).removesuffix("/v3")


async def register(stage: Stage, cloud: Cloud) -> None:
    """What an administrator does at Keycloak with the exported SP metadata."""
    secret = await cloud.client.get(resources.SECRETS, Key(SPACE, "keystone-saml-sp-metadata"))
    found = ServiceProvider.of(base64.b64decode(secret["data"]["sp-metadata.xml"]))
    await stage.keycloak.manage("POST", f"/{SAML}/clients", saml_client(found.entity_id, found.acs, found.logout))
    say(f"  registered at Keycloak: {found.entity_id}")


async def sign_in(stage: Stage, browser: Browser, name: str, number: int) -> None:
    """One person, from the dashboard's link to the dashboard's page for who is signed in; a picture of each page."""
    async with profile(browser) as page:
        await page.goto(f"{stage.dashboard.url}/")
        await page.screenshot(path=stage.shots / f"{number}-{name}-1-dashboard.png")
        await page.click(f"#{name}")
        await fill_in(page, PEOPLE[name])
        await page.screenshot(path=stage.shots / f"{number}-{name}-2-keycloak.png")
        await send(page)
        await page.wait_for_url(stage.dashboard.origin)
        await page.screenshot(path=stage.shots / f"{number}-{name}-3-signed-in.png")
        facts = (await page.inner_text("#who")).replace("\n", " ")
    say(f"  {PEOPLE[name]} signed in: {facts}")


async def bearer(stage: Stage) -> None:
    """A Keycloak token in place of a password."""
    token = await stage.keycloak.token(OIDC, PEOPLE[OIDC], "cli")
    headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
    answer = ask(stage.keycloak.trust, "GET", f"{stage.base}/v3{stage.protected(OIDC)}/auth", headers)
    say(f"  a bearer token of Keycloak: {answer.status}, user {answer.json['token']['user']['name']}")


async def story(stage: Stage, client: Client) -> None:
    """The demo after the machine is up."""
    cloud = Cloud(client)
    await attach(stage, cloud)
    place = stage.folder / "gateway"
    with gateway(place, stage.authority, [stage.api], host=GATEWAY[0], port=int(stage.base.rpartition(":")[2])):
        say(f"a TLS gateway serves it as {stage.base}/v3")
        say("conditions, as they turn True:")
        await cloud.follow(cloud.backend, Key(SPACE, SAML), lambda o: bool(o["status"].get("samlSPMetadataSecretName")))
        await register(stage, cloud)
        for name in (OIDC, SAML):
            await cloud.follow(cloud.backend, Key(SPACE, name), lambda o: condition(o, "Ready"))
        stage.dashboard.ways = {
            name: f"{stage.base}/v3/auth{stage.protected(name)}/websso?origin={stage.dashboard.origin}"
            for name in (OIDC, SAML)
        }
        stage.dashboard.describe = stage.describe
        say("sign in with a browser, at Keycloak's own login pages:")
        async with chromium() as browser:
            await sign_in(stage, browser, OIDC, 1)
            await sign_in(stage, browser, SAML, 2)
        await bearer(stage)
        say("detach both (deletionPolicy Delete)")
        for name in (OIDC, SAML):
            await client.delete(cloud.backend, Key(SPACE, name))
        for name in (OIDC, SAML):
            await cloud.follow(cloud.backend, Key(SPACE, name), lambda _: False)
        await cloud.follow(
            cloud.keystone, Key(SPACE, "keystone"), lambda o: "IdentityBackendsNotRequired" in str(o["status"])
        )
        live = await client.get(resources.DEPLOYMENTS, Key(SPACE, "keystone"))
        containers = [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]
        works = "works" if stage.administrator() else "fails"
        say(f"  containers of Keystone: {', '.join(containers)}; the administrator's login {works}")


def shots_folder() -> Path:
    """Where the pictures go."""
    named = os.environ.get("SHOTS")
    folder = Path(named).resolve() if named else Path(tempfile.mkdtemp(prefix="moorage-demo-screenshots-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


async def main() -> None:
    """Start everything, tell the story, end everything but the pictures."""
    if keycloak_program.main():
        raise SystemExit(1)
    folder, authority = Path(tempfile.mkdtemp(prefix="moorage-demo-")), Authority()
    base = f"https://{GATEWAY[0]}:{port_of(*GATEWAY)}"
    clients = [
        oidc_client("keystone", [f"{base}/v3/OS-FEDERATION/redirect_uri"], audience="keystone"),
        oidc_client("cli", audience="keystone"),
    ]
    people = users((PEOPLE[OIDC], ("eng", "ops"))), users((PEOPLE[SAML], ("eng", "ops")))
    shots = shots_folder()
    try:
        say("start a Keycloak with realms acme and corp (half a minute)")
        with (
            keycloak(
                folder / "kc", [realm(OIDC, people[0], clients), realm(SAML, people[1], [])], authority,
                host=KEYCLOAK[0], port=port_of(*KEYCLOAK),
            ) as provider,
            dashboard(folder / "dashboard", authority, host=DASHBOARD[0], port=port_of(*DASHBOARD)) as shown,
        ):  # fmt: skip
            stage = Stage(base, authority, provider, shown, shots, folder)
            say("start one-machine mode: moorage up")
            async with machine(folder / "data") as kubeconfig, Client(load_kubeconfig(str(kubeconfig))) as client:
                await story(stage, client)
                say("stop one-machine mode, Keycloak and the gateway")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    say(f"ended; nothing is left running. Pictures of each page: {shots}")
    for picture in sorted(shots.glob("*.png")):
        print(f"  {picture.name}")


if __name__ == "__main__":
    tell(main)
