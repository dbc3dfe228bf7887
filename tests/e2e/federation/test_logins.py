"""People sign in: by a browser at an OpenID Connect and at a SAML provider, by a bearer token, and out again."""

from __future__ import annotations

import pytest
from tests.e2e.federation.site import ACME, BETA, CORP, REDIRECT
from tests.e2e.federation.stand import Stand
from tests.fakes.idp import SamlFault

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.case("B17", "B40")
@pytest.mark.parametrize(("name", "user", "roles"), [(ACME, "alice", 2), (BETA, "bob", 1), (CORP, "carol", 2)])
async def test_a_browser_login_hands_the_dashboard_a_token_with_user_domain_and_groups(
    site: Stand, name: str, user: str, roles: int
) -> None:
    """The page posts the token to the dashboard that asked; the token is that of the mapped user, in the groups of the provider."""
    person = site.visitor()
    page = await site.sign_in(person, name)
    assert (page.status, page.form and page.form.action) == (200, site.origin), page.body[:500]
    said = await site.said_of(page.token)
    federated = said["user"]["OS-FEDERATION"]
    assert (said["user"]["name"], said["user"]["domain"]["name"]) == (user, name)
    assert (federated["identity_provider"]["id"], len(federated["groups"])) == (name, roles)
    assert await site.scoped(page.token, name) == ["member", "reader"]


async def test_a_bearer_token_of_the_provider_is_exchanged_for_a_token_with_the_roles_of_the_groups(
    site: Stand,
) -> None:
    """Introspected at the provider; a client of its own whose tokens are for us is as good."""
    for client in ("keystone", "cli"):
        found = await site.bearer(site.idp.token(ACME, "alice", client))
        assert (found.status, found.user) == (201, "alice"), found.text[:300]
        assert await site.scoped(found.token, ACME) == ["member", "reader"]
    assert site.idp.asked("POST", f"{ACME}/introspect") >= 2


async def test_a_user_in_no_group_gets_a_token_without_any_role(site: Stand) -> None:
    """Unscoped, and good for nothing more."""
    found = await site.bearer(site.idp.token(ACME, "dave", "cli"))
    assert (found.status, found.user, await site.scoped(found.token, ACME)) == (201, "dave", [])


async def test_someone_who_signs_in_twice_is_the_same_user(site: Stand) -> None:
    """By browser and by token, at either visit."""
    token = await site.token_of(ACME)
    first, second = await site.said_of(token), await site.bearer(site.idp.token(ACME, "alice", "cli"))
    assert first["user"]["id"] == second.body["user"]["id"]


async def test_a_wrong_password_at_the_provider_gives_no_token(site: Stand) -> None:
    """The provider says so, and nobody comes back from there."""
    person = site.visitor()
    page = await person.open(site.websso(ACME))
    page = await person.submit(page, username="alice", password="wrong")
    assert "Invalid user name or password" in page.body


async def test_after_logout_at_the_saml_provider_a_login_is_asked_for_again(site: Stand) -> None:
    """SP-initiated single logout: the session here is gone, the browser comes back to where it asked to."""
    person = site.visitor()
    assert (await site.sign_in(person, CORP)).token
    assert (await person.open(site.websso(CORP))).token, "the session lasts"
    page = await person.carry_on(await person.open(site.mellon("logout", ReturnTo=f"{site.base}/v3")))
    assert (page.status, page.url) == (200, f"{site.base}/v3"), (page.way, page.body[:300])
    page = await person.open(site.websso(CORP))
    assert page.url.startswith(site.idp.entity(CORP))


async def test_after_logout_at_the_oidc_provider_a_login_is_asked_for_again(site: Stand) -> None:
    """RP-initiated logout of mod_auth_openidc."""
    person = site.visitor()
    assert (await site.sign_in(person, ACME)).token
    assert (await person.open(site.websso(ACME))).token, "the session lasts"
    page = await person.open(f"{site.base}{REDIRECT}?logout={site.base}/v3")
    assert (page.status, page.url) == (200, f"{site.base}/v3"), (page.way, page.body[:300])
    page = await person.open(site.websso(ACME))
    assert page.url.startswith(site.idp.issuer(ACME))


async def test_an_assertion_that_is_encrypted_by_mgf1p_is_read(site: Stand) -> None:
    """The key transport that the guides tell administrators to set."""
    site.idp.realm(CORP).fault = SamlFault.ENCRYPTED_MGF1P
    assert (await site.said_of(await site.token_of(CORP)))["user"]["name"] == "carol"


async def test_a_provider_signs_with_a_new_key_and_logins_go_on(site: Stand) -> None:
    """OIDC: an unknown key id makes the module read the key set again; nothing is started anew."""
    site.idp.realm(ACME).rotate()
    assert await site.token_of(ACME)
    assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201
