"""The three providers of a stand as realms of a real Keycloak, and what an administrator of Keycloak does for the service provider.

Enters: a public address, a served Keycloak. Leaves: realms to import, manifests, a `Real` site.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.e2e.federation import manifests
from tests.e2e.federation.site import ACME, BETA, CORP, PEOPLE, REDIRECT, Site
from tests.fakes.idp import ServiceProvider
from tests.real.keycloak import Keycloak, oidc_client, realm, saml_client, users

from moorage.core.meta import JsonObject

GROUPS = {ACME: ("eng", "ops"), BETA: ("eng",), CORP: ("eng", "ops")}


@dataclass
class Real(Site):
    """A site whose people are those of a Keycloak."""

    provider: Keycloak = None  # type: ignore[assignment]

    def asserted(self, name: str) -> str:
        return self.provider.issuer(name)


def realms(base: str) -> list[dict[str, Any]]:
    """Realms for a Keystone at `base`."""
    clients = [
        oidc_client("keystone", [f"{base}{REDIRECT}"], audience="keystone"),
        oidc_client("cli", audience="keystone"),
        oidc_client("other"),
    ]
    alice, bob, carol = (users((PEOPLE[name], groups)) for name, groups in GROUPS.items())
    return [realm(ACME, alice, clients), realm(BETA, bob, clients), realm(CORP, carol, [])]


async def backends(provider: Keycloak) -> dict[str, list[JsonObject]]:
    """The three backends, their documents declared, as somebody writes them whose operator does not reach the provider."""
    found = {}
    for name in (ACME, BETA):
        document = json.loads(await provider.fetch(f"/realms/{name}/.well-known/openid-configuration"))
        found[name] = manifests.oidc(name, document, provider.authority.pem.decode(), bearer=name == ACME)
    found[CORP] = manifests.saml(CORP, provider.issuer(CORP), await provider.descriptor(CORP))
    return found


async def register(provider: Keycloak, found: ServiceProvider, **encryption: str) -> None:
    """Register the service provider anew, as an administrator of Keycloak would."""
    for item in await provider.manage("GET", f"/{CORP}/clients"):
        if item["clientId"] == found.entity_id:
            await provider.manage("DELETE", f"/{CORP}/clients/{item['id']}")
    client = saml_client(found.entity_id, found.acs, found.logout, **encryption)
    await provider.manage("POST", f"/{CORP}/clients", client)


async def rotate(provider: Keycloak, name: str, priority: int = 200) -> None:
    """Sign with a new key from now on; the old one stays in the documents."""
    key = {
        "name": f"newer-{priority}", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
        "config": {"priority": [str(priority)], "enabled": ["true"], "active": ["true"], "algorithm": ["RS256"]},
    }  # fmt: skip
    await provider.manage("POST", f"/{name}/components", key)
