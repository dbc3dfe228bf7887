"""People of a real Keycloak sign in: two OpenID Connect realms and a SAML realm, by Chromium, by a plain client and by bearer tokens."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.federation import manifests
from tests.e2e.federation.site import ACME, BETA, CORP, PEOPLE, REDIRECT, Site
from tests.e2e.federation.stand import GATEWAY, Parts, assembled
from tests.real.certificates import Authority
from tests.real.chromium import chromium, fill_in, profile, send
from tests.real.keycloak import Keycloak, keycloak, oidc_client, realm, saml_client, users
from tests.real.keystone import PASSWORD
from tests.real.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.conformance, pytest.mark.timeout(600)]
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "cannot-log-in.md"


@dataclass
class Real(Site):
    """A stand with a Keycloak in place of the fake."""

    provider: Keycloak = None  # type: ignore[assignment]
    parts: Parts = None  # type: ignore[assignment]


def _realms(base: str) -> list[dict[str, Any]]:
    clients = [
        oidc_client("keystone", [f"{base}{REDIRECT}"], audience="keystone"),
        oidc_client("cli", audience="keystone"),
        oidc_client("other"),
    ]
    alice, bob, carol = (users((PEOPLE[name], groups)) for name, groups in _GROUPS.items())
    return [realm(ACME, alice, clients), realm(BETA, bob, clients), realm(CORP, carol, [])]


_GROUPS = {ACME: ("eng", "ops"), BETA: ("eng",), CORP: ("eng", "ops")}


async def _backends(provider: Keycloak) -> dict[str, list[dict[str, Any]]]:
    found = {}
    for name in (ACME, BETA):
        document = json.loads(await provider.fetch(f"/realms/{name}/.well-known/openid-configuration"))
        found[name] = manifests.oidc(name, document, provider.authority.pem.decode(), bearer=name == ACME)
    found[CORP] = manifests.saml(CORP, provider.issuer(CORP), await provider.descriptor(CORP))
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """Keycloak, and a Keystone that its people sign in to."""
    folder, authority, port = tmp_path_factory.mktemp("keycloak"), Authority(), free_port(GATEWAY)
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(keycloak(folder, _realms(f"https://{GATEWAY}:{port}"), authority))
        wanted = asyncio.run(_backends(provider))
        parts = stack.enter_context(assembled(folder, authority, port, wanted))
        made = Real(
            parts.base, parts.server.url, None, provider.trust, PASSWORD, parts.dashboard.origin,  # type: ignore[arg-type]
            provider=provider, parts=parts,
        )  # fmt: skip
        asyncio.run(_register(made))
        yield made


async def _register(site: Real, **encryption: str) -> None:
    """Register the service provider anew, as an administrator of Keycloak would."""
    found = site.parts.service_provider
    for item in await site.provider.manage("GET", f"/{CORP}/clients"):
        if item["clientId"] == found.entity_id:
            await site.provider.manage("DELETE", f"/{CORP}/clients/{item['id']}")
    client = saml_client(found.entity_id, found.acs, found.logout, **encryption)
    await site.provider.manage("POST", f"/{CORP}/clients", client)


@pytest.fixture
async def encrypting(site: Real) -> AsyncIterator[Real]:
    """A Keycloak that encrypts assertions by its default; afterwards it does not."""
    await _register(site, certificate=site.parts.service_provider.certificate)
    yield site
    await _register(site)


async def test_people_sign_in_with_chromium(site: Real) -> None:
    """Keycloak's own pages, cookies and scripts; SAML by POST binding with two groups in one attribute."""
    async with chromium() as browser:
        for name in (ACME, BETA, CORP):
            async with profile(browser) as page:
                await page.goto(f"{site.parts.dashboard.url}/")
                await page.click(f"#{name}")
                await fill_in(page, PEOPLE[name])
                await send(page)
                await page.wait_for_url(site.origin)
            said = await site.said_of(site.parts.dashboard.tokens[-1])
            assert (said["user"]["name"], said["user"]["domain"]["name"]) == (PEOPLE[name], name)
            assert len(said["user"]["OS-FEDERATION"]["groups"]) == len(_GROUPS[name])


async def test_a_bearer_token_is_introspected_over_https(site: Real) -> None:
    """With a private authority; the audience decides, whatever the client."""
    for client in ("keystone", "cli"):
        found = await site.bearer(await site.provider.token(ACME, "alice", client))
        assert (found.status, found.user, await site.scoped(found.token, ACME)) == (201, "alice", ["member", "reader"])
    for token in (
        await site.provider.token(ACME, "alice", "other"),
        await site.provider.token(BETA, "bob", "keystone"),
    ):
        assert (await site.bearer(token)).status == 401


@pytest.mark.case("B25")
async def test_each_realm_is_pinned_to_its_own_issuer(site: Real) -> None:
    """A session of one leads to the other's login."""
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    page = await person.open(site.websso(BETA))
    assert page.url.startswith(site.provider.issuer(BETA))
    assert (await person.sign_in(page, "bob")).token


async def test_saml_logout_ends_both_sessions(site: Real) -> None:
    """Here and at Keycloak: the next visit meets the login form."""
    person = site.visitor()
    assert (await site.sign_in(person, CORP)).token
    page = await person.open(site.mellon("logout", ReturnTo=f"{site.base}/v3"))
    page = await person.carry_on(page)
    assert (page.status, page.url) == (200, f"{site.base}/v3"), (page.way, page.body[:300])
    page = await person.open(site.websso(CORP))
    assert page.form is not None
    assert page.form.id == "kc-form-login"


async def test_keycloak_s_default_encryption_is_refused_and_the_guide_says_what_to_set(encrypting: Real) -> None:
    """The module cannot read rsa-oaep of XML Encryption 1.1; the same with rsa-oaep-mgf1p works."""
    page = await encrypting.sign_in(encrypting.visitor(), CORP)
    assert (page.status, page.token) == (400, "")
    assert "rsa-oaep-mgf1p" in GUIDE.read_text()
    certificate = encrypting.parts.service_provider.certificate
    await _register(encrypting, certificate=certificate, algorithm="rsa-oaep-mgf1p")
    assert await encrypting.token_of(CORP)


async def test_a_new_signing_key_of_a_realm_is_taken_at_once(site: Real) -> None:
    """Keycloak signs with a key of higher priority from now on."""
    key = {
        "name": "newer", "providerId": "rsa-generated", "providerType": "org.keycloak.keys.KeyProvider",
        "config": {"priority": ["200"], "enabled": ["true"], "active": ["true"], "algorithm": ["RS256"]},
    }  # fmt: skip
    await site.provider.manage("POST", f"/{ACME}/components", key)
    assert await site.token_of(ACME)
    assert (await site.bearer(await site.provider.token(ACME, "alice", "cli"))).status == 201
