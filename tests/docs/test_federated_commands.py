"""Every command of the pages about OpenID Connect and SAML, in the order of its page, against a live machine with providers beside it.

Between the commands stands what the page tells the reader to do elsewhere: register the service provider, sign in. The providers are tests/fakes/idp.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.docs.commands import FEDERATED, commands
from tests.docs.reader import ELSEWHERE, Reader, copy
from tests.e2e.cloud import BACKEND, Cloud, holds
from tests.e2e.example import QUICK
from tests.e2e.federation import manifests
from tests.e2e.federation.machine import SP_METADATA, Federated, client, content, federated_machine
from tests.e2e.federation.site import ACME, CORP, DASHBOARD

from moorage.core.meta import JsonObject
from moorage.kube import resources

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

OIDC, SAML = "docs/guides/oidc.md", "docs/guides/saml.md"
ENDS = {OIDC: ACME, SAML: CORP}
"""Pages that end with a detach, and of what."""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Federated]:
    """A Keystone that nothing is attached to, a gateway before it."""
    with federated_machine(tmp_path_factory.mktemp("federated-reader")) as machine:
        asyncio.run(_served(machine))
        yield machine


async def _served(machine: Federated) -> None:
    async with client(machine) as on:
        await machine.serve(on, keystone=QUICK)


@pytest.fixture(scope="module")
def reader(running: Federated, tmp_path_factory: pytest.TempPathFactory) -> Reader:
    """A checkout whose examples have the addresses of now, and what the pages take for granted."""
    folder = tmp_path_factory.mktemp("federated-checkout")
    checkout = copy(folder)
    backends = manifests.backends(running.idp)
    for name, example, issuer in (
        (ACME, manifests.OIDC, running.idp.issuer(ACME)),
        (CORP, manifests.SAML, running.idp.entity(CORP)),
    ):
        site = manifests.site(running.base, DASHBOARD)
        site[-1]["spec"] |= QUICK
        _adapt(checkout / "examples" / example.name, [*site, *backends[name]])
        (claims,) = (checkout / "examples" / example.name).glob("*.claims")
        claims.write_text(claims.read_text().replace(f"https://127.0.0.11:8443/realms/{name}", issuer))
    trusted = folder / "ca.pem"
    trusted.write_bytes(running.authority.pem)
    return Reader(running.up, checkout, {"KEYSTONE": f"{running.base}/v3", "CURL_CA_BUNDLE": str(trusted)})


def _adapt(folder: Path, documents: list[JsonObject]) -> None:
    """The same documents in the same files."""
    files = {"Keystone": "20-keystone.yaml", "KeystoneIdentityBackend": "30-backend.yaml"}
    for file in ("10-secrets.yaml", *files.values()):
        chosen = [item for item in documents if files.get(item["kind"], "10-secrets.yaml") == file]
        assert len(chosen) == len(list(yaml.safe_load_all((folder / file).read_text())))
        (folder / file).write_text(yaml.safe_dump_all(chosen))


@pytest.mark.parametrize("page", FEDERATED)
async def test_every_command_of_a_page_works(page: str, running: Federated, reader: Reader) -> None:
    """In order, each exits 0, and people sign in where the page says that they can."""
    reader.environment = {**reader.environment, "TOKEN": running.idp.token(ACME, "alice", "cli")}
    async with client(running) as on:
        for command in commands(page):
            if command not in ELSEWHERE:
                await reader.run(command)
                await _meanwhile(command, running, on)
        if page in ENDS:
            await on.gone(BACKEND, ENDS[page])
            assert await on.domain(ENDS[page]) is None


async def _meanwhile(command: str, running: Federated, on: Cloud) -> None:
    """What the reader does elsewhere after this command."""
    assert running.site is not None
    match command.split():
        case ["moorage", "wait", _, name, *_]:
            if name == CORP:
                await running.register(on)
            assert await running.site.token_of(name)
        case [*_, "moorage.internal/saml-sp-rollover=stage", "--overwrite"]:
            await on.until(resources.SECRETS, SP_METADATA, lambda obj: _certificates(obj) == 2)
            await running.register(on)
            assert await running.site.token_of(CORP)
        case [*_, "moorage.internal/saml-sp-rollover=switch", "--overwrite"]:
            await on.until(resources.SECRETS, SP_METADATA, lambda obj: _certificates(obj) == 1)
            await on.until(BACKEND, CORP, holds("Ready"))
            await running.register(on)
            assert await running.site.token_of(CORP)


def _certificates(secret: JsonObject) -> int:
    """How many signing certificates the metadata names."""
    return content(secret, "sp-metadata.xml").decode().count('use="signing"')


def test_the_claims_of_the_examples_are_let_in_as_they_stand() -> None:
    """Unadapted, as a reader finds them: issuer and entityID agree with the backend beside them."""
    for folder, member, field in ((manifests.OIDC, "iss", "issuer"), (manifests.SAML, "IDP", "idpEntityID")):
        (claims,) = folder.glob("*.claims")
        (backend,) = manifests.read(folder, "30-backend.yaml")
        assert json.loads(claims.read_text())[member] == backend["spec"][backend["spec"]["type"].lower()][field]
