"""`moorage status` on the day on which the disk is full: resources may all be ready, and yet nobody new can log in."""

from __future__ import annotations

import click
import pytest

from moorage.cli import status
from moorage.core.errors import WireError
from moorage.kube.client import Client
from moorage.kube.errors import ApiError, ConnectionFailed, NotFound

FULL = "the disk of the data folder is full"


class Asked(Client):
    """A server that refuses, or answers, each question about its disk."""

    def __init__(self, answer: WireError | None) -> None:
        self.answer = answer

    async def raw(self, *_: object, **__: object) -> object:
        if self.answer is not None:
            raise self.answer
        return {"full": False}


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ApiError(507, "InsufficientStorage", FULL), FULL),
        (NotFound(404, "NotFound", "page not found"), ""),
        (ConnectionFailed("gone"), ""),
        (None, ""),
    ],
    ids=["full", "another server", "no answer", "room"],
)
async def test_only_a_server_that_knows_its_disk_to_be_full_says_so(answer: WireError | None, told: str) -> None:
    """A server of Kubernetes knows no such path."""
    assert await status._full_disk(Asked(answer)) == told


@pytest.mark.parametrize(("full", "code"), [(FULL, 1), ("", 0)])
def test_a_full_disk_is_a_warning_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], full: str, code: int
) -> None:
    """Beside what the resources say, which JSON on standard output does not notice."""
    monkeypatch.setattr(status, "with_client", lambda *_: ([], full))
    with pytest.raises(click.exceptions.Exit) as ended:
        status.command()
    assert ended.value.exit_code == code
    assert capsys.readouterr().err == (f"warning: {full}\n" if full else "")
