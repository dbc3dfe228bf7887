"""Every command of the pages about a deployed Pocket-ID, against `moorage up` with an image of one; every reason has its line."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.docs.commands import DEPLOYED, ROOT, commands
from tests.docs.reader import Reader, copy
from tests.e2e.cloud import Cloud, cloud
from tests.e2e.one_machine.machine import machine
from tests.e2e.one_machine.pocketid_image import NAME, recipe

from moorage.core.meta import Key
from moorage.pocketid.instance.report import REASONS
from moorage.pocketid.instance.types import KIND
from moorage.pocketid.oidcclient.types import KIND as CLIENT

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
SPACE = "identity"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A machine with the image that the example names: it is what `moorage up --image` of the page starts."""
    folder = tmp_path_factory.mktemp("deployed-reader")
    with machine(folder, "--image", f"{NAME}={recipe(folder / 'images', '2.17.0')}") as up:
        yield Reader(up, copy(folder))


@pytest.mark.parametrize("page", DEPLOYED)
async def test_every_command_of_a_page_works(page: str, reader: Reader) -> None:
    """In order, each exits 0; the page before may have been run, or not. What it made goes again."""
    written = [command for command in commands(page) if not command.startswith("moorage up ")]
    assert len(written) >= 3
    for command in written:
        await reader.run(command)
    async with cloud(reader.up.kubeconfig) as site:
        found = Cloud(site.client, SPACE)
        await found.client.delete(CLIENT.resource, Key(SPACE, "wiki"))
        await found.gone(CLIENT.resource, "wiki")
        await found.client.delete(KIND.resource, Key(SPACE, "main"))
        await found.gone(KIND.resource, "main")


def test_every_reason_has_its_line_in_the_guide() -> None:
    """What is the matter, and what to do."""
    lines = [
        line.split("|")[1].strip() for line in (ROOT / DEPLOYED[0]).read_text().splitlines() if line.startswith("| ")
    ]
    assert {*REASONS["Ready"]} - {"Ready"} == {word for word in lines if word in REASONS["Ready"]}
