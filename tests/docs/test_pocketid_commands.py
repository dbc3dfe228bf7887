"""Every command of the pages about Pocket-ID, in the order of its page, against `moorage up` and a fake Pocket-ID that people have used.

The address that the pages name is the fake's. Between the commands it is proven what the page says: nothing written at adoption, a token with the stored secret,
a new secret, a client that is gone.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterator

import pytest
from tests.cli import pocketid_site
from tests.docs.commands import POCKETID, ROOT, commands
from tests.docs.reader import ELSEWHERE, Lone, Reader, copy
from tests.fakes.pocketid import API_KEY, Fake, running
from tests.real.process import poll

from moorage.core.meta import Key
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.kube.resources import SECRETS
from moorage.pocketid.api import report as apis
from moorage.pocketid.oidcclient import report as clients
from moorage.pocketid.user import report as users
from moorage.pocketid.usergroup import report as groups

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

ADOPT, CLIENT, NOT_READY, ROTATE, TOKENS = POCKETID[:5]
WRITTEN = "https://id.example.org"
"""The server's address in the pages."""


@pytest.fixture(scope="module")
def fake() -> Fake:
    return Fake("2.17.0", config={"autoCreateOidcClientSecret": "false"})


@pytest.fixture(scope="module")
def reader(fake: Fake, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A machine, a used server, a checkout whose examples have its address and key."""
    folder = tmp_path_factory.mktemp("pocketid-reader")
    with running(fake) as url, pocketid_site.machine(folder, {"RESYNC_INTERVAL": "2s"}) as kubeconfig:
        pocketid_site.furnished(fake, url)
        for id in ("closed", "old", "bidi"):  # what cannot be declared
            fake.store.delete_client(id)
        fake.store.providers.clear()
        checkout = copy(folder)
        for file in checkout.glob("examples/pocketid-*/*.yaml"):
            text = file.read_text().replace(WRITTEN, url)
            file.write_text(text.replace("change-me-to-an-api-key-of-your-server", API_KEY))
        (checkout / "key").write_text(API_KEY)
        yield Reader(Lone(kubeconfig.parent), checkout, places={WRITTEN: url})


@pytest.mark.parametrize("page", POCKETID)
async def test_every_command_of_a_page_works(page: str, reader: Reader, fake: Fake) -> None:
    """In order, each exits 0; then what the page promises."""
    if page in (ROTATE, TOKENS):
        for command in commands("examples/pocketid-client/README.md"):
            await reader.run(command)
    before = await credentials(reader, "my-app") if page == ROTATE else {}
    fake.journal.clear()
    for command in commands(page):
        if command not in ELSEWHERE:
            await reader.run(command)
    if page == ADOPT:
        assert [f"{entry.method} {entry.path}" for entry in fake.journal.writes()] == []
        assert fake.authenticates("wiki", pocketid_site.WIKI_SECRET)
    if page == CLIENT:
        poll(
            lambda: all(item.settings["name"] != "my-app" for item in fake.store.clients.values()),
            what="gone",
            limit=120,
        )
    if page == ROTATE:
        assert before["client_secret"] != (await changed(reader, before))["client_secret"]
    if page == TOKENS:
        assert ("POST", "/api/oidc/token", 200) in [(item.method, item.path, item.status) for item in fake.journal]


async def credentials(reader: Reader, name: str) -> dict[str, str]:
    """What the application reads."""
    async with Client(load_kubeconfig(reader.up.kubeconfig)) as client:
        found = await client.get(SECRETS, Key("pocket-id", f"{name}-oidc-credentials"))
    return {key: base64.b64decode(text).decode() for key, text in found["data"].items()}


async def changed(reader: Reader, before: dict[str, str]) -> dict[str, str]:
    """The credentials, once they are others."""
    async with asyncio.timeout(120):
        while (found := await credentials(reader, "my-app")) == before:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    return found


def test_every_reason_has_its_line_in_the_guide() -> None:
    """Those of deployed instances stand in the guide about them."""
    page = (ROOT / NOT_READY).read_text()
    reasons = {reason for report in (clients, groups, apis, users) for reason in report.REASONS["Ready"]}
    lines = {
        word
        for line in page.splitlines()
        if line.startswith("| ")
        for word in line.split("|")[1].replace(",", " ").split()
    }
    assert reasons - {"Reconciled"} <= lines


def test_the_guide_names_every_variable_of_the_environment() -> None:
    """As `settings` reads them."""
    read = (ROOT / "src/moorage/pocketid/settings.py").read_text()
    names = {line.split('found.get("')[1].split('"')[0] for line in read.splitlines() if 'found.get("' in line}
    page = (ROOT / CLIENT).read_text()
    assert len(names) > 4
    assert [name for name in names if f"`{name}`" not in page] == []
