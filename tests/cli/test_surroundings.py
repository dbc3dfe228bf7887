"""What a command says when the surroundings fail: a sentence and exit code 3, never the name of a class."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from moorage.cli.server import states
from moorage.core.meta import ResourceType
from moorage.kube.client import Client
from moorage.kube.errors import Forbidden


class Listing:
    """One object of each kind that may be seen."""

    items = ({"kind": "KeystoneIdentityBackend", "metadata": {"name": "a", "namespace": "n"}},)


class Tenant(Client):
    """Who may see the kinds with these plurals only."""

    def __init__(self, *plurals: str) -> None:
        self.plurals = plurals

    async def list(self, rt: ResourceType, *_: object, **__: object) -> Listing:  # type: ignore[override]
        if rt.plural not in self.plurals:
            raise Forbidden(403, "Forbidden", f"{rt.plural} is forbidden")
        return Listing()


async def test_status_shows_what_may_be_seen_and_names_what_may_not(capsys: pytest.CaptureFixture[str]) -> None:
    """A tenant's Role may hold backends only."""
    assert [state.name for state in await states(Tenant("keystoneidentitybackends"), "n")] == ["a"]
    told = capsys.readouterr().err
    assert told.startswith("warning: not shown, since you may not list them: Keystone, ")
    assert "KeystoneIdentityBackend" not in told


async def test_who_may_see_nothing_is_told_so() -> None:
    with pytest.raises(Forbidden):
        await states(Tenant(), "n")


@pytest.mark.parametrize("call", [["crds"], ["version"]])
def test_output_that_finds_no_room_is_told_in_one_sentence(call: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from moorage.cli import main; main()", *call],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert done.stderr == "error: reading or writing failed: no space left on device\n"
    assert done.returncode == 3
