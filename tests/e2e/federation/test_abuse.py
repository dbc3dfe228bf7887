"""What an attacker does to the sidecar itself: foreign targets, floods. It refuses, and goes on serving."""

from __future__ import annotations

from urllib.parse import urlencode, urlsplit

import pytest
from tests.e2e.federation.site import ACME, CORP, REDIRECT
from tests.e2e.federation.stand import Stand
from tests.fakes.idp import User

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]

FOREIGN = (
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example/",
    "https:evil.example",
    "https://127.0.0.40.evil.example/",
    "https://127.0.0.40@evil.example/",
    "javascript:alert(1)",
    "https://127.0.0.30:9/auth/websso/",
)


def _ours(site: Stand, way: tuple[tuple[int, str], ...]) -> bool:
    """Whether a browser was sent to nobody but us, the provider and the dashboard."""
    hosts = {urlsplit(url).netloc for _, url in way}
    return hosts <= {urlsplit(url).netloc for url in (site.base, site.idp.url, site.origin)}


@pytest.mark.case("B26")
@pytest.mark.parametrize("target", FOREIGN)
async def test_nobody_is_sent_to_a_foreign_address_after_a_logout(site: Stand, target: str) -> None:
    """Neither by mod_auth_openidc nor by mod_auth_mellon, with a session and without."""
    for name in ("", ACME, CORP):
        person = site.visitor()
        if name:
            assert (await site.sign_in(person, name)).token
        for url in (
            f"{site.base}{REDIRECT}?{urlencode({'logout': target})}",
            site.mellon("logout", ReturnTo=target),
        ):
            page = await person.once(url)
            location = page.headers.get("Location", "")
            assert _harmless(site, location), (name, url, location)


@pytest.mark.case("B26")
@pytest.mark.parametrize("target", FOREIGN)
async def test_nobody_is_sent_to_a_foreign_address_after_a_login(site: Stand, target: str) -> None:
    """The module's own parameters for where to go on."""
    person = site.visitor()
    for url in (
        f"{site.base}{REDIRECT}?{urlencode({'iss': site.idp.issuer(ACME), 'target_link_uri': target, 'x_csrf': '1'})}",
        site.mellon("login", ReturnTo=target, IdP=site.idp.entity(CORP)),
        f"{site.base}{site.protected(CORP)}/mellon/login?{urlencode({'ReturnTo': target})}",
    ):
        page = await person.once(url)
        assert _harmless(site, page.headers.get("Location", "")), (url, page.headers)


def _harmless(site: Stand, location: str) -> bool:
    """Whether a redirect goes nowhere, to us, or to the provider (what goes on from there comes back here and is refused)."""
    if not location:
        return True
    parts = urlsplit(location)
    return parts.scheme == "https" and parts.netloc in {urlsplit(url).netloc for url in (site.base, site.idp.url)}


async def test_a_relay_state_of_somebody_else_s_choice_leads_nowhere_foreign(site: Stand) -> None:
    """It travels through the provider and comes back with a good response."""
    person = site.visitor()
    page = await person.sign_in(await person.open(site.websso(CORP)), "carol")
    page = await person.submit(page, RelayState="https://evil.example/")
    assert _ours(site, page.way), page.way


@pytest.mark.case("B27")
async def test_a_dashboard_that_is_not_trusted_gets_no_token(site: Stand) -> None:
    """Keystone refuses after the login: nothing is posted anywhere."""
    for origin in ("https://evil.example/auth/websso/", f"{site.origin}x", site.origin.rstrip("/") + "@evil.example/"):
        page = await site.sign_in(site.visitor(), ACME, origin=origin)
        assert (page.status, page.token) == (401, ""), (origin, page.body[:300])


@pytest.mark.case("B21", "K10")
async def test_logins_that_are_begun_and_never_ended_do_not_fill_the_browser(site: Stand) -> None:
    """At most seven state cookies, the oldest go; the login that is ended works."""
    person = site.visitor()
    for _ in range(12):
        await person.open(site.websso(ACME))
    assert len(person.cookies("mod_auth_openidc_state")) <= 7
    assert (await site.sign_in(person, ACME)).token


async def test_state_cookies_that_somebody_planted_do_not_keep_a_person_out(site: Stand) -> None:
    """A neighbour on the same host sets cookies of that name; the module takes them away."""
    person = site.visitor()
    host = urlsplit(site.base).hostname or ""
    for number in range(30):
        person.jar.kept[host, f"mod_auth_openidc_state_{number:027d}"] = ("x" * 100, "/", True)
    assert (await site.sign_in(person, ACME)).token


@pytest.mark.parametrize("headers", ["many", "long", "cookies"])
async def test_a_flood_of_headers_is_refused_and_others_are_served(site: Stand, headers: str) -> None:
    """Too many, too long, or a session that is none: no crash, and the next login works."""
    flood = {
        "many": {f"X-Flood-{number}": "x" for number in range(400)},
        "long": {"X-Flood": "x" * 70_000},
        "cookies": {"Cookie": "; ".join(f"mod_auth_openidc_session_{number}={'A' * 4000}" for number in range(15))},
    }[headers]
    for path in (site.protected(ACME), site.protected(CORP), "/v3"):
        found = await site.raw("GET", path, {"Accept": "application/json", **flood})
        assert (found.status != 500, found.token) == (True, ""), (path, found.status)
        if headers != "cookies":
            assert found.status in (400, 431), (path, found.status)
    assert (await site.bearer(site.idp.token(ACME, "alice", "cli"))).status == 201


@pytest.mark.case("B21")
async def test_a_session_and_long_groups_pass_through_the_sidecar(site: Stand) -> None:
    """A person in two hundred groups: the claims are some kilobytes, in the session as in the headers."""
    realm = site.idp.realm(ACME)
    many = User("frank", (*tuple(f"group-{number:04d}-of-a-large-company" for number in range(200)), "eng"))
    before, realm.users = realm.users, (*realm.users, many)
    try:
        found = await site.bearer(site.idp.token(ACME, "frank", "cli"))
        assert (found.status, await site.scoped(found.token, ACME)) == (201, ["member", "reader"])
    finally:
        realm.users = before
