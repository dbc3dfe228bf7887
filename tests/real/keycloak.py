"""A real Keycloak over https on a loopback address, with realms that it imported.

Enters: a folder, realms, an authority that tests trust. Leaves: a served `Keycloak` for the time of a `with`. The distribution is fetched and built
once by tools/keycloak.py; each run has data of its own, copied from a database into which the realms were imported once.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import http.client
import json
import os
import shutil
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from tests.real.certificates import Authority
from tests.real.etcd import CACHE, NotBuilt
from tests.real.ports import free_port, holds
from tests.real.process import Command, Process

VERSION = "26.7.3"
HOME = CACHE / f"keycloak-{VERSION}"
ADMIN, ADMIN_PASSWORD = "boss", "boss-password"
HEAP = "-Xms64m -Xmx256m"
QUICK = "-XX:TieredStopAtLevel=1 -XX:-UseG1GC -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
"""For a server that lives for a minute: what starts soonest, not what would serve best after an hour."""
DATABASE = Path("data", "h2", "keycloakdb.mv.db")
"""Of `--db=dev-file`, in its folder."""
PATIENCE = 480.0
"""Seconds until it must answer; 20 on a quiet machine."""


@dataclass
class Keycloak:
    """A Keycloak: `url` is `https://HOST:PORT`; it may be stopped and started again on the same data."""

    url: str
    authority: Authority
    command: Command
    probe: str
    """Path that answers 200 as soon as it serves."""
    process: Process | None = None

    def start(self) -> None:
        """Serve; returns when it answers."""
        where = urlsplit(self.url)
        host, port = where.hostname or "", where.port or 443
        self.process = process = self.command.start()
        process.wait_until(
            lambda: holds(process.pid, port) and _serves(host, port, self.probe, self.trust), limit=PATIENCE
        )

    def stop(self) -> None:
        """End it."""
        if self.process is not None:
            self.process.stop()
            self.process = None

    @contextmanager
    def down(self) -> Iterator[None]:
        """It does not run for the time of a `with`."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @property
    def trust(self) -> ssl.SSLContext:
        """A client context that trusts it."""
        return ssl.create_default_context(cadata=self.authority.pem.decode())

    def issuer(self, realm: str) -> str:
        """Issuer of a realm; its entityID as well."""
        return f"{self.url}/realms/{realm}"

    async def fetch(self, path: str) -> bytes:
        """A public document."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.url}{path}", ssl=self.trust) as answer:
            answer.raise_for_status()
            return await answer.read()

    async def descriptor(self, realm: str) -> bytes:
        """SAML metadata of a realm."""
        return await self.fetch(f"/realms/{realm}/protocol/saml/descriptor")

    async def token(self, realm: str, user: str, client: str) -> str:
        """A bearer token by the password grant."""
        form = {"grant_type": "password", "client_id": client, "client_secret": f"{client}-secret", "scope": "openid"}
        form |= {"username": user, "password": f"{user}-pw"}
        url = f"{self.issuer(realm)}/protocol/openid-connect/token"
        async with aiohttp.ClientSession() as session, session.post(url, data=form, ssl=self.trust) as answer:
            return str((await answer.json())["access_token"])

    async def manage(self, method: str, path: str, body: Any = None) -> Any:
        """The administration API: `path` under /admin/realms."""
        form = {"grant_type": "password", "client_id": "admin-cli", "username": ADMIN, "password": ADMIN_PASSWORD}
        url = f"{self.url}/realms/master/protocol/openid-connect/token"
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=self.trust)) as session:
            async with session.post(url, data=form) as answer:
                session.headers["Authorization"] = f"Bearer {(await answer.json())['access_token']}"
            async with session.request(method, f"{self.url}/admin/realms{path}", json=body) as answer:
                answer.raise_for_status()
                text = await answer.text()
                return json.loads(text) if text else None


def users(*people: tuple[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Users by name and groups; the password is `<name>-pw`."""
    return [
        {
            "username": name,
            "enabled": True,
            "email": f"{name}@example.test",
            "emailVerified": True,
            "firstName": name.title(),
            "lastName": "Tester",
            "groups": [f"/{group}" for group in groups],
            "credentials": [{"type": "password", "value": f"{name}-pw", "temporary": False}],
        }
        for name, groups in people
    ]


def _claim(name: str, mapper: str, **config: str) -> dict[str, Any]:
    places = {f"{kind}.token.claim": "true" for kind in ("access", "id", "introspection", "userinfo")}
    return {"name": name, "protocol": "openid-connect", "protocolMapper": mapper, "config": {**places, **config}}


def oidc_client(id: str, redirect_uris: Sequence[str] = (), *, audience: str = "") -> dict[str, Any]:
    """A confidential client with a groups mapper and, for introspection, a mapper of the audience."""
    mappers = [_claim("groups", "oidc-group-membership-mapper", **{"claim.name": "groups", "full.path": "false"})]
    if audience:
        mappers.append(_claim("audience", "oidc-audience-mapper", **{"included.client.audience": audience}))
    return {
        "clientId": id,
        "protocol": "openid-connect",
        "publicClient": False,
        "secret": f"{id}-secret",
        "redirectUris": list(redirect_uris),
        "standardFlowEnabled": True,
        "directAccessGrantsEnabled": True,
        "protocolMappers": mappers,
        "attributes": {"post.logout.redirect.uris": "+"},
    }


def saml_client(
    entity_id: str, acs: str, logout: str = "", *, certificate: str = "", algorithm: str = ""
) -> dict[str, Any]:
    """A service provider with POST binding, user name and groups attributes; assertions are encrypted when `certificate` is given.

    `algorithm` is the key transport: "" for Keycloak's default, "rsa-oaep-mgf1p" for the one that mod_auth_mellon can read, with SHA-1 as
    digest: Keycloak's own choice there, SHA-256, it cannot read either.
    """
    attributes = {
        "saml_assertion_consumer_url_post": acs,
        "saml_single_logout_service_url_redirect": logout,
        "saml.client.signature": "false",
        "saml.assertion.signature": "true",
        "saml.server.signature": "true",
        "saml.force.post.binding": "true",
        "saml_name_id_format": "username",
        "saml.authnstatement": "true",
    }
    if certificate:
        attributes |= {"saml.encrypt": "true", "saml.encryption.certificate": certificate}
    if algorithm:
        attributes["saml.encryption.keyAlgorithm"] = f"http://www.w3.org/2001/04/xmlenc#{algorithm}"
        attributes["saml.encryption.digestMethod"] = "http://www.w3.org/2000/09/xmldsig#sha1"
    basic = {"attribute.nameformat": "Basic"}
    return {
        "clientId": entity_id,
        "protocol": "saml",
        "redirectUris": [acs, logout],
        "frontchannelLogout": True,
        "attributes": attributes,
        "protocolMappers": [
            {
                "name": "groups",
                "protocol": "saml",
                "protocolMapper": "saml-group-membership-mapper",
                "config": {"attribute.name": "groups", "single": "true", "full.path": "false", **basic},
            },
            {
                "name": "username",
                "protocol": "saml",
                "protocolMapper": "saml-user-property-mapper",
                "config": {"user.attribute": "username", "attribute.name": "username", **basic},
            },
        ],
    }


def realm(name: str, people: Sequence[dict[str, Any]], clients: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A realm with groups eng and ops."""
    return {
        "realm": name,
        "displayName": name.title(),
        "enabled": True,
        "sslRequired": "external",
        "groups": [{"name": "eng"}, {"name": "ops"}],
        "users": list(people),
        "clients": list(clients),
    }


def _home(folder: Path) -> Path:
    """A Keycloak folder of this run: programs are those of the cache, data is its own."""
    if not HOME.exists():
        raise NotBuilt(f"{HOME} is missing. Run `python3 tools/keycloak.py` once")
    home = folder / "keycloak"
    for name in ("import", "h2"):
        (home / "data" / name).mkdir(parents=True)
    shutil.copytree(HOME / "bin", home / "bin")
    shutil.copytree(HOME / "conf", home / "conf")
    for name in ("lib", "providers", "themes"):
        (home / name).symlink_to(HOME / name)
    return home


def _imported(realms: Sequence[dict[str, Any]]) -> Path:
    """A database with these realms, made once: tables and key pairs take Keycloak 40 seconds of CPU, and come to the same each time."""
    digest = hashlib.sha256(json.dumps([VERSION, ADMIN, ADMIN_PASSWORD, realms]).encode()).hexdigest()[:12]
    kept = CACHE / f"keycloak-{digest}.mv.db"
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=CACHE, prefix=".keycloak-") as name:
                home = _home(Path(name))
                for item in realms:
                    (home / "data" / "import" / f"{item['realm']}.json").write_text(json.dumps(item))
                with _serving(home, Authority(), "127.0.0.11", 0, realms):
                    pass
                (home / DATABASE).rename(kept)
    return kept


def _serves(host: str, port: int, path: str, context: ssl.SSLContext) -> bool:
    connection = http.client.HTTPSConnection(host, port, context=context, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (TimeoutError, OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


@contextmanager
def _serving(
    home: Path, authority: Authority, host: str, port: int, realms: Sequence[dict[str, Any]]
) -> Iterator[Keycloak]:
    """Serve what is in `home`, realms that lie there to be imported included; returns as soon as the last of them is served."""
    port = port or free_port(host)
    certificate, key = authority.issue(home.parent, "keycloak", (host,))
    url = f"https://{host}:{port}"
    argv = [
        *(str(home / "bin" / "kc.sh"), "start", "--optimized", "--import-realm", "--cache=local", f"--hostname={url}"),
        *(f"--http-host={host}", f"--https-port={port}", f"--http-management-port={free_port(host)}"),
        *(f"--https-certificate-file={certificate}", f"--https-certificate-key-file={key}"),
    ]
    env = os.environ | {
        "KC_BOOTSTRAP_ADMIN_USERNAME": ADMIN,
        "KC_BOOTSTRAP_ADMIN_PASSWORD": ADMIN_PASSWORD,
        "JAVA_OPTS_KC_HEAP": HEAP,
        "JAVA_OPTS_APPEND": QUICK,
    }
    probe = f"/realms/{realms[-1]['realm']}/.well-known/openid-configuration"
    made = Keycloak(url, authority, Command("keycloak", argv, home.parent, env), probe)
    try:
        made.start()
        yield made
    finally:
        made.stop()


async def redirect(served: Keycloak, realms: Sequence[dict[str, Any]]) -> None:
    """Tell it where its clients' people come back to: the addresses are another run's each time, the database is not."""
    for path, uris in _redirects(realms):
        (client,) = await served.manage("GET", path)
        changed = {**client, "redirectUris": uris}
        await served.manage("PUT", f"{path.partition('?')[0]}/{client['id']}", changed)


def _redirects(realms: Sequence[dict[str, Any]]) -> Iterator[tuple[str, list[str]]]:
    for item in realms:
        for client in item["clients"]:
            if client["redirectUris"]:
                yield f"/{item['realm']}/clients?clientId={client['clientId']}", client["redirectUris"]


def _without_redirects(realms: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**item, "clients": [{**client, "redirectUris": []} for client in item["clients"]]} for item in realms]


@contextmanager
def keycloak(
    folder: Path,
    realms: Sequence[dict[str, Any]],
    authority: Authority | None = None,
    *,
    host: str = "127.0.0.11",
    port: int = 0,
) -> Iterator[Keycloak]:
    """Serve the realms over https on `host`; port 0 is a free one."""
    home = _home(folder)
    shutil.copyfile(_imported(_without_redirects(realms)), home / DATABASE)
    with _serving(home, authority or Authority(), host, port, realms) as served:
        with ThreadPoolExecutor(1) as aside:  # a test's own loop may be running here
            aside.submit(asyncio.run, redirect(served, realms)).result()
        yield served
