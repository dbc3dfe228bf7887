"""`moorage up`: the example becomes Ready, its secret logs in, whatever happens to the machine, the secret or the client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.e2e.one_machine.machine import Machine

from .life import all_at_once, whole
from .site import RESYNC, pocketid, site

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]


@pytest.fixture
def up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machine]:
    """A machine without a directory, whose operator looks at everything each second."""
    for name, value in RESYNC.items():
        monkeypatch.setenv(name, value)
    made = Machine(tmp_path, None)  # type: ignore[arg-type]
    made.start()
    try:
        yield made
    finally:
        if made.process is not None:
            made.stop()


@pytest.mark.case("P5", "P6", "B68", "PIDX1", "PIDX2")
async def test_a_client_from_nothing_to_nothing_on_a_machine_that_dies(up: Machine, tmp_path: Path) -> None:
    def restart() -> None:
        up.kill()
        up.start()

    with pocketid(tmp_path / "pocketid") as url:
        await whole(lambda: site(up.kubeconfig, url), restart)


async def test_a_namespace_that_is_deleted_on_a_machine_that_dies_leaves_nothing_at_the_server(
    up: Machine, tmp_path: Path
) -> None:
    def restart() -> None:
        up.kill()
        up.start()

    with pocketid(tmp_path / "pocketid") as url:
        await all_at_once(lambda: site(up.kubeconfig, url), restart)
