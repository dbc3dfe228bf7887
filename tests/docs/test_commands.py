"""Every command of README, guides and examples is run, in the order of its page, against a live machine with a directory beside it.

Paths and the directory's address are mapped. Pages about providers: test_federated_commands.py, about Pocket-ID: test_pocketid_commands.py. What cannot run at all stands in ELSEWHERE with the place
where it is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest
import yaml
from tests.docs.commands import DEPLOYED, FEDERATED, PAGES, PEOPLE, POCKETID, commands
from tests.docs.reader import ELSEWHERE, Reader, copy
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, cloud, holds
from tests.e2e.one_machine.machine import Machine, machine

from moorage.core.meta import JsonObject, Key
from moorage.kube import resources
from moorage.kube.errors import NotFound

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

GUIDE = "docs/guides/ldap.md"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A machine, and a copy of the examples whose directory is the one that runs beside it."""
    folder = tmp_path_factory.mktemp("reader")
    with machine(folder) as up:
        checkout = copy(folder)
        file = checkout / "examples" / "keystone-ldap" / "30-backend.yaml"
        file.write_text(file.read_text().replace("ldap://127.0.0.1:10389", up.directory.url))
        (checkout / "examples" / "keystone-ldap" / "20-keystone.yaml").write_text(
            yaml.safe_dump(example.of_kind(_documents(up), "Keystone"))
        )
        yield Reader(up, checkout)


def _documents(up: Machine) -> list[JsonObject]:
    """The example; its Keystone starts one worker a pod."""
    found = example.manifests(up.directory)
    example.of_kind(found, "Keystone")["spec"] |= example.QUICK
    return found


async def _attached(reader: Reader) -> None:
    """The example is there, whatever the page before did to it."""
    async with cloud(reader.up.kubeconfig) as site:
        await site.apply(_documents(reader.up))
        await site.ready(example.BACKEND)


async def _keystone_alone(reader: Reader) -> None:
    """A Keystone that nothing is attached to, and no bind Secret: where docs/guides/ldap.md begins."""
    bind = Key("openstack", "planetexpress-bind")
    async with cloud(reader.up.kubeconfig) as site:
        documents = _documents(reader.up)
        await site.apply([item for item in documents if item["metadata"]["name"] not in (bind.name, example.BACKEND)])
        with contextlib.suppress(NotFound):
            await site.client.delete(BACKEND, site.key(example.BACKEND))
        await site.gone(BACKEND, example.BACKEND)
        with contextlib.suppress(NotFound):
            await site.client.delete(resources.SECRETS, bind)
        await site.until(KEYSTONE, "keystone", holds("Ready"))


@pytest.mark.parametrize(
    "page", sorted({*PAGES} - {*FEDERATED, *POCKETID, *PEOPLE, *DEPLOYED}, key=lambda page: (page != GUIDE, page))
)
async def test_every_command_of_a_page_works(page: str, reader: Reader) -> None:
    """In order, each exits 0."""
    written = [command for command in commands(page) if command not in ELSEWHERE]
    if written:
        await (_keystone_alone(reader) if page == GUIDE else _attached(reader))
    for command in written:
        await reader.run(command)
    if page == GUIDE:
        await _attached_and_detached(reader)


async def _attached_and_detached(reader: Reader) -> None:
    """Where docs/guides/ldap.md ends: the backend leaves, and the file that it names was written for its owner alone."""
    async with cloud(reader.up.kubeconfig) as site:
        await site.gone(BACKEND, example.BACKEND)
        assert await site.domain("planetexpress") is None
    file = reader.checkout / "rendered/openstack/files/keystone-domains/keystone.planetexpress.conf"
    assert file.stat().st_mode & 0o777 == 0o600


def test_what_is_run_elsewhere_is_still_written_somewhere() -> None:
    """No entry of ELSEWHERE outlives its command."""
    written = {command for page in (*PAGES, "CONTRIBUTING.md") for command in commands(page)}
    assert set(ELSEWHERE) <= written | {"make check test"}
