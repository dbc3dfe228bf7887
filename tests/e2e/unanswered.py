"""Federated backends whose provider nobody asks: endpoints are declared, or the metadata stands inline. For what needs no login of a person.

Enters: a Cloud. Leaves: manifests, and what can be seen of the sidecar from outside.
"""

from __future__ import annotations

from pathlib import Path

import aiohttp
import yaml
from tests.e2e.cloud import BACKEND, KEYSTONE, Cloud, holds
from tests.e2e.example import QUICK
from tests.keystone.service.federated import idp_metadata

from moorage.core.meta import JsonObject
from moorage.kube import resources

EXAMPLE = Path(__file__).parents[2] / "examples" / "keystone-oidc"
AUTH = "/OS-FEDERATION/identity_providers/{}/protocols/openid/auth"


def documents() -> list[JsonObject]:
    found = [doc for file in sorted(EXAMPLE.glob("*.yaml")) for doc in yaml.safe_load_all(file.read_text())]
    for doc in found:
        if doc["kind"] == "Keystone":
            doc["spec"] |= QUICK
    return found


def backend(name: str) -> JsonObject:
    """The example's backend under another name: a provider of its own, no bearer tokens."""
    made = next(doc for doc in documents() if doc["kind"] == "KeystoneIdentityBackend")
    text = yaml.safe_dump(made).replace("realms/acme", f"realms/{name}").replace("name: acme\n", f"name: {name}\n")
    found: JsonObject = yaml.safe_load(text)
    found["spec"]["oidc"].pop("oauth2Introspection", None)
    found["spec"]["oidc"].pop("caBundleSecretRef", None)
    found["spec"]["oidc"]["clientSecretRef"]["name"] = "acme-client"
    found["spec"]["groups"] = []
    return found


def saml(name: str = "corp") -> JsonObject:
    """A SAML backend with its provider's metadata inline."""
    made = backend(name)
    entity = f"https://127.0.0.11:8443/realms/{name}"
    made["spec"] |= {"type": "SAML", "saml": {"idpEntityID": entity, "idpMetadata": {"inline": idp_metadata(entity)}}}
    del made["spec"]["oidc"]
    made["spec"]["mappings"] = [{"remote": [{"type": "HTTP_MELLON_NAME_ID"}], "local": [{"user": {"name": "{0}"}}]}]
    return made


async def asked(site: Cloud, path: str, **headers: str) -> int:
    """The status of a GET below /v3, on a connection of its own."""
    async with (
        aiohttp.ClientSession() as session,
        session.get((await site.url()) + path, headers=headers, allow_redirects=False) as answer,
    ):
        return answer.status


async def containers(site: Cloud) -> list[str]:
    live = await site.client.get(resources.DEPLOYMENTS, site.key("keystone"))
    return [item["name"] for item in live["spec"]["template"]["spec"]["containers"]]


async def projected(site: Cloud, name: str) -> None:
    await site.until(BACKEND, name, holds("Ready"))
    await site.until(KEYSTONE, "keystone", holds("IdentityBackendsReady", "True", "AllBackendsProjected"))


async def located(url: str) -> tuple[int, str]:
    """Status and Location of a browser's GET."""
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={"Accept": "text/html"}, allow_redirects=False) as answer,
    ):
        return answer.status, answer.headers.get("Location", "")
