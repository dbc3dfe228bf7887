"""One machine with one Keystone for all tests of a file, and a client of its API for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.e2e.cloud import Cloud, cloud
from tests.e2e.one_machine.machine import Machine, machine


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """`moorage up` and a directory, with nothing applied yet."""
    with machine(tmp_path_factory.mktemp("machine")) as running:
        yield running


@pytest.fixture
async def opened(up: Machine) -> AsyncIterator[Cloud]:
    """A client for this test."""
    async with cloud(up.kubeconfig) as site:
        yield site
