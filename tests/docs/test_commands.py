"""Every command of README, guides and examples is run, in the order of its page, against a live machine.

Paths and the directory's address are mapped; what cannot run here stands in ELSEWHERE with the place where it is run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.docs.commands import PAGES, ROOT, commands
from tests.e2e import example
from tests.e2e.cloud import BACKEND, KEYSTONE, cloud, holds
from tests.e2e.one_machine.machine import Machine, machine
from tests.real.kubectl import MACHINE

from moorage.core.meta import Key
from moorage.kube import resources
from moorage.kube.errors import NotFound

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

GUIDE = "docs/guides/ldap.md"

ELSEWHERE = {
    "make demo": "run by .ci/run",
    "make test": "this suite",
    "make check test": "run by .ci/run",
    "moorage up --data ./data": "is the machine of these tests",
    "moorage up --data /var/lib/moorage": "is the machine of these tests",
    "moorage run": "runs until it is stopped, on a cluster: tests/e2e/kubernetes",
}
"""Command -> where it is run instead."""


@dataclass
class Reader:
    """A person with a checkout, a shell and the machine's kubeconfig; what is exported stays."""

    up: Machine
    checkout: Path
    exported: list[str] = field(default_factory=list)

    def run(self, command: str) -> None:
        """Type one command; AssertionError with what it printed when it fails."""
        mapped = self._mapped(command)
        if mapped.startswith("export "):
            self.exported.append(mapped)
            return
        script = "; ".join(["set -euo pipefail", *self.exported, mapped])
        environment = {
            **os.environ,
            "HOME": str(self.checkout),
            "KUBECONFIG": str(self.up.kubeconfig),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.checkout, env=environment, capture_output=True, text=True, timeout=800
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"

    def _mapped(self, command: str) -> str:
        places = {
            "/var/lib/moorage": str(self.up.data),
            "$PWD/data": str(self.up.data),
            "/tmp/rendered": str(self.checkout / "rendered"),
        }
        for written, real in places.items():
            command = command.replace(written, real)
        return command


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A machine, and a copy of the examples whose directory is the one that runs beside it."""
    folder = tmp_path_factory.mktemp("reader")
    with machine(folder) as up:
        checkout = folder / "checkout"
        shutil.copytree(ROOT / "examples", checkout / "examples")
        file = checkout / "examples" / "keystone-ldap" / "30-backend.yaml"
        file.write_text(file.read_text().replace("ldap://127.0.0.1:10389", up.directory.url))
        yield Reader(up, checkout)


async def _attached(reader: Reader) -> None:
    """The example is there, whatever the page before did to it."""
    async with cloud(reader.up.kubeconfig) as site:
        await site.apply(example.manifests(reader.up.directory))
        await site.ready(example.BACKEND)


async def _keystone_alone(reader: Reader) -> None:
    """A Keystone that nothing is attached to, and no bind Secret: where docs/guides/ldap.md begins."""
    bind = Key("openstack", "planetexpress-bind")
    async with cloud(reader.up.kubeconfig) as site:
        documents = example.manifests(reader.up.directory)
        await site.apply([item for item in documents if item["metadata"]["name"] not in (bind.name, example.BACKEND)])
        with contextlib.suppress(NotFound):
            await site.client.delete(BACKEND, site.key(example.BACKEND))
        await site.gone(BACKEND, example.BACKEND)
        with contextlib.suppress(NotFound):
            await site.client.delete(resources.SECRETS, bind)
        await site.until(KEYSTONE, "keystone", holds("Ready"))


@pytest.mark.skipif(not MACHINE.exists(), reason="kubectl is not on this machine")
@pytest.mark.parametrize("page", sorted(PAGES, key=lambda page: page != GUIDE))
async def test_every_command_of_a_page_works(page: str, reader: Reader) -> None:
    """In order, each exits 0."""
    written = [command for command in commands(page) if command not in ELSEWHERE]
    if written:
        await (_keystone_alone(reader) if page == GUIDE else _attached(reader))
    for command in written:
        await asyncio.to_thread(reader.run, command)
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
