"""Debian's Chromium without a window, driven by Playwright: what a person's browser does with cookies, redirects and scripts.

Enters: addresses. Leaves: pages, screenshots. Certificates are not verified by the browser (a private authority would have to be put into the machine's
store); who is spoken to is fixed by loopback addresses of the test's own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright
from tests.real.unprivileged import program

CHROMIUM = Path("/usr/bin/chromium")
LIMIT = 60_000
"""Milliseconds that a page may take."""
FLAGS = [
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--no-first-run",
]


@contextlib.asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser for the time of a `with`."""
    flags = [*FLAGS, "--no-sandbox"] if os.geteuid() == 0 else FLAGS
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program(CHROMIUM, "chromium"), headless=True, args=flags
        )
        try:
            yield browser
        finally:
            await browser.close()


@contextlib.asynccontextmanager
async def profile(browser: Browser) -> AsyncIterator[Page]:
    """A page of a person who was never here."""
    context = await browser.new_context(ignore_https_errors=True, viewport={"width": 1000, "height": 720})
    try:
        page = await context.new_page()
        page.set_default_timeout(LIMIT)
        yield page
    finally:
        await context.close()


async def fill_in(page: Page, user: str) -> None:
    """Wait for a provider's login form, the fake's or Keycloak's, and fill it in; the password is `<user>-pw`."""
    await page.wait_for_selector("#username")
    await page.fill("#username", user)
    await page.fill("#password", f"{user}-pw")


async def send(page: Page) -> None:
    """Press the login form's button."""
    await page.click("#kc-login, #submit")
