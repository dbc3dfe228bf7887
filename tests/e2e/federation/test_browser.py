"""Chromium signs in over https: scripts post the forms, cookies are kept or dropped as a browser does it."""

from __future__ import annotations

import pytest
from tests.e2e.federation.site import ACME, BETA, CORP, PEOPLE
from tests.e2e.federation.stand import Stand
from tests.fakes.idp import SamlFault
from tests.real.chromium import chromium, fill_in, profile, send

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.case("K21", "B40")
async def test_people_sign_in_with_chromium_at_every_provider(site: Stand) -> None:
    """From the dashboard's link through the provider's form back to the dashboard, SAML by POST binding."""
    async with chromium() as browser:
        for name in (ACME, BETA, CORP):
            async with profile(browser) as page:
                await page.goto(f"{site.dashboard.url}/")
                await page.click(f"#{name}")
                await fill_in(page, PEOPLE[name])
                await send(page)
                await page.wait_for_url(site.origin)
                assert "Signed in" in await page.inner_text("h1")
                said = await site.said_of(site.dashboard.tokens[-1])
                assert (said["user"]["name"], said["user"]["domain"]["name"]) == (PEOPLE[name], name)
                assert await site.scoped(site.dashboard.tokens[-1], name) == ["member", "reader"]


async def test_one_browser_signs_in_at_one_provider_after_the_other(site: Stand) -> None:
    """No session of one is in the way of another; a second visit needs no login."""
    async with chromium() as browser, profile(browser) as page:
        for name in (ACME, CORP, BETA):
            await page.goto(site.websso(name))
            await fill_in(page, PEOPLE[name])
            await send(page)
            await page.wait_for_url(site.origin)
        await page.goto(site.websso(CORP))
        await page.wait_for_url(site.origin)
    domains = [(await site.said_of(token))["user"]["domain"]["name"] for token in site.dashboard.tokens[-4:]]
    assert domains == [ACME, CORP, BETA, CORP]


async def test_a_refused_assertion_is_a_page_that_hands_nothing_to_the_dashboard(site: Stand) -> None:
    """Encrypted in the way that is Keycloak's default: the module cannot read it."""
    before = len(site.dashboard.tokens)
    site.idp.realm(CORP).fault = SamlFault.ENCRYPTED_OAEP11
    async with chromium() as browser, profile(browser) as page:
        await page.goto(site.websso(CORP))
        await fill_in(page, PEOPLE[CORP])
        async with page.expect_response(lambda answer: answer.url.endswith("/postResponse")) as answered:
            await send(page)
        assert (await answered.value).status == 400
    assert len(site.dashboard.tokens) == before
