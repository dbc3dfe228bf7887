"""People of a real Keycloak sign in: two OpenID Connect realms and a SAML realm, by Chromium, by a plain client and by bearer tokens."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.e2e.federation.realms import GROUPS, Real, backends, realms, register, rotate
from tests.e2e.federation.site import ACME, BETA, CORP, PEOPLE
from tests.e2e.federation.stand import GATEWAY, Parts, assembled
from tests.real.certificates import Authority
from tests.real.chromium import chromium, fill_in, profile, send
from tests.real.keycloak import keycloak
from tests.real.keystone import PASSWORD
from tests.real.ports import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.conformance, pytest.mark.timeout(900)]
GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "cannot-log-in.md"


@dataclass
class Stand(Real):
    """A stand with a Keycloak in place of the fake."""

    parts: Parts = None  # type: ignore[assignment]

    async def register(self, **encryption: str) -> None:
        """Tell Keycloak of the service provider anew."""
        await register(self.provider, self.parts.service_provider, **encryption)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """Keycloak, and a Keystone that its people sign in to."""
    folder, authority, port = tmp_path_factory.mktemp("keycloak"), Authority(), free_port(GATEWAY)
    with contextlib.ExitStack() as stack:
        provider = stack.enter_context(keycloak(folder, realms(f"https://{GATEWAY}:{port}"), authority))
        wanted = asyncio.run(backends(provider))
        parts = stack.enter_context(assembled(folder, authority, port, wanted))
        made = Stand(
            parts.base, parts.server.url, None, provider.trust, PASSWORD, parts.dashboard.origin,  # type: ignore[arg-type]
            provider=provider, parts=parts,
        )  # fmt: skip
        asyncio.run(made.register())
        yield made


@pytest.fixture
async def encrypting(site: Stand) -> AsyncIterator[Stand]:
    """A Keycloak that encrypts assertions by its default; afterwards it does not."""
    await site.register(certificate=site.parts.service_provider.certificate)
    yield site
    await site.register()


async def test_people_sign_in_with_chromium(site: Stand) -> None:
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
            assert len(said["user"]["OS-FEDERATION"]["groups"]) == len(GROUPS[name])


async def test_a_bearer_token_is_introspected_over_https(site: Stand) -> None:
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
async def test_each_realm_is_pinned_to_its_own_issuer(site: Stand) -> None:
    """A session of one leads to the other's login."""
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    page = await person.open(site.websso(BETA))
    assert page.url.startswith(site.provider.issuer(BETA))
    assert (await person.sign_in(page, "bob")).token


async def test_saml_logout_ends_both_sessions(site: Stand) -> None:
    """Here and at Keycloak: the next visit meets the login form."""
    person = site.visitor()
    assert (await site.sign_in(person, CORP)).token
    page = await person.open(site.mellon("logout", ReturnTo=f"{site.base}/v3"))
    page = await person.carry_on(page)
    assert (page.status, page.url) == (200, f"{site.base}/v3"), (page.way, page.body[:300])
    page = await person.open(site.websso(CORP))
    assert page.form is not None
    assert page.form.id == "kc-form-login"


async def test_keycloak_s_default_encryption_is_refused_and_the_guide_says_what_to_set(encrypting: Stand) -> None:
    """The module cannot read rsa-oaep of XML Encryption 1.1; the same with rsa-oaep-mgf1p works."""
    page = await encrypting.sign_in(encrypting.visitor(), CORP)
    assert (page.status, page.token) == (400, "")
    assert "rsa-oaep-mgf1p" in GUIDE.read_text()
    certificate = encrypting.parts.service_provider.certificate
    await encrypting.register(certificate=certificate, algorithm="rsa-oaep-mgf1p")
    assert await encrypting.token_of(CORP)


async def test_a_new_signing_key_of_a_realm_is_taken_at_once(site: Stand) -> None:
    """Keycloak signs with a key of higher priority from now on."""
    await rotate(site.provider, ACME)
    assert await site.token_of(ACME)
    assert (await site.bearer(await site.provider.token(ACME, "alice", "cli"))).status == 201


async def test_while_keycloak_is_down_its_people_stay_out_and_everybody_else_gets_in(site: Stand) -> None:
    """New logins and tokens fail closed, sessions that were made before last, passwords go on; afterwards all is as before, the sidecar untouched."""
    people = {name: site.visitor() for name in (BETA, CORP)}
    for name, person in people.items():
        assert (await site.sign_in(person, name)).token
    token, sidecar = await site.provider.token(ACME, "alice", "cli"), site.parts.proxy.process.pid
    with site.provider.down():
        found = await site.bearer(token)
        assert (found.status, found.token) == (401, "")
        for name in (ACME, BETA, CORP):
            with pytest.raises(OSError):
                await site.token_of(name)
        for name, person in people.items():
            assert (await person.open(site.websso(name))).token, name
        assert (await site.administrator_gets_in()).status == 201
    assert (await site.bearer(token)).status == 201
    for name in (ACME, BETA, CORP):
        assert await site.token_of(name)
    assert site.parts.proxy.process.pid == sidecar
