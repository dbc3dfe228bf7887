"""The disk of a machine is full: the answer says so, reads go on, and it works again when there is room."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.cloud import Cloud, cloud
from tests.e2e.one_machine.machine import Machine, machine

from moorage.core.meta import JsonObject
from moorage.kube import resources
from moorage.kube.errors import ApiError

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]
SIZE = "40m"


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Machine]:
    """A machine whose data folder is a small disk of its own."""
    disk = tmp_path / "data"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("a small disk cannot be mounted here")
    try:
        with machine(tmp_path) as running:
            yield running
    finally:
        subprocess.run(["umount", str(disk)], check=True)


async def test_a_full_disk_is_told_reads_go_on_and_it_heals_by_itself(up: Machine) -> None:
    """507 with a sentence, nothing acknowledged is lost, no restart is needed."""
    async with cloud(up.kubeconfig, "default") as site:
        kept = await _filled(up, site)
        assert {item["metadata"]["name"] for item in await _maps(site)} == kept
        (up.data / "ballast").unlink()
        assert up.process is not None
        assert up.process.child.poll() is None
        await site.client.create(resources.CONFIG_MAPS, _map("after"))
        assert {item["metadata"]["name"] for item in await _maps(site)} == {*kept, "after"}


async def _filled(up: Machine, site: Cloud) -> set[str]:
    """Fill the disk, then write until it is refused; the names of what was acknowledged."""
    kept: set[str] = set()
    for number in range(200):
        await asyncio.to_thread(_fill, up.data / "ballast")
        if refused := await _refused(site, f"map-{number}"):
            assert refused.status == 507
            assert "the disk that holds the store is full" in str(refused)
            return kept
        kept.add(f"map-{number}")
    raise AssertionError("the disk is never full")


def _fill(ballast: Path) -> None:
    """Grow a file until nothing more fits."""
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)) == 4096:
            pass


async def _refused(site: Cloud, name: str) -> ApiError | None:
    try:
        await site.client.create(resources.CONFIG_MAPS, _map(name))
    except ApiError as error:
        return error
    return None


async def _maps(site: Cloud) -> list[JsonObject]:
    listing = await site.client.list(resources.CONFIG_MAPS, "default")
    return [item for item in listing.items if item["metadata"]["name"] != "kube-root-ca.crt"]


def _map(name: str) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"text": "x" * 20_000}}
