"""One stand for all files that a worker runs: it is up in ten seconds, and each test leaves it as it found it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.e2e.cloud import Cloud
from tests.e2e.federation.machine import Federated, client
from tests.e2e.federation.stand import Stand, stand
from tests.fakes.idp import SamlFault


@pytest.fixture(scope="session")
def _stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with stand(tmp_path_factory.mktemp("stand")) as served:
        yield served


@pytest.fixture
def site(_stand: Stand) -> Iterator[Stand]:
    """The stand, its providers as they should be."""
    yield _stand
    for realm in _stand.idp.realms.values():
        realm.fault, realm.down, realm.lifetime = SamlFault.NONE, False, 300.0
        realm.revoked.clear()
        realm.answers.set()


@pytest.fixture
async def on(machine: Federated) -> AsyncIterator[Cloud]:
    """A client of the API of a file's own `machine`."""
    async with client(machine) as opened:
        yield opened
