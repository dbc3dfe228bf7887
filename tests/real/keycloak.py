"""A real Keycloak over https on a loopback address, with realms that are imported at its start.

Enters: a folder, realms, an authority that tests trust. Leaves: a served `Keycloak` for the time of a `with`. The distribution is fetched and built
once by tools/keycloak.py; each run has data of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import ssl
from collections.abc import Iterator, Sequence
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


def _home(folder: Path, realms: Sequence[dict[str, Any]]) -> Path:
    """A Keycloak folder of this run: programs are those of the cache, data is its own."""
    if not HOME.exists():
        raise NotBuilt(f"{HOME} is missing. Run `python3 tools/keycloak.py` once")
    home = folder / "keycloak"
    imports = home / "data" / "import"
    imports.mkdir(parents=True)
    shutil.copytree(HOME / "bin", home / "bin")
    shutil.copytree(HOME / "conf", home / "conf")
    for name in ("lib", "providers", "themes"):
        (home / name).symlink_to(HOME / name)
    for item in realms:
        (imports / f"{item['realm']}.json").write_text(json.dumps(item))
    return home


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
def keycloak(
    folder: Path,
    realms: Sequence[dict[str, Any]],
    authority: Authority | None = None,
    *,
    host: str = "127.0.0.11",
    port: int = 0,
) -> Iterator[Keycloak]:
    """Serve the realms over https on `host`; port 0 is a free one."""
    trusted = authority or Authority()
    home, port = _home(folder, realms), port or free_port(host)
    certificate, key = trusted.issue(folder, "keycloak", (host,))
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
        "JAVA_OPTS_APPEND": "-XX:TieredStopAtLevel=1",
    }
    probe = f"/realms/{realms[-1]['realm']}/.well-known/openid-configuration"
    made = Keycloak(url, trusted, Command("keycloak", argv, folder, env), probe)
    try:
        made.start()
        yield made
    finally:
        made.stop()
