"""The command line as a person calls it, and a served API for the commands that need one."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.cli.typist import typed
from tests.real.embedded import Embedded, embedded

Run = Callable[..., "subprocess.CompletedProcess[str]"]
EXAMPLE = Path(__file__).parents[2] / "examples" / "keystone-ldap"


@pytest.fixture
def moorage(tmp_path: Path) -> Run:
    """Runs `moorage ARGS` in an empty folder; `given` is its standard input."""

    def run(*args: object, given: str = "") -> subprocess.CompletedProcess[str]:
        return typed(args, tmp_path, given=given)

    return run


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedded]:
    """An embedded API server with our CRDs and the example's objects, without controllers."""
    with embedded(tmp_path_factory.mktemp("served")) as server:
        yield server
