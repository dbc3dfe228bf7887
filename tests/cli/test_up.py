"""`moorage up` before it is up: the first line, the folder's mode, what it says when it cannot start."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.cli.conftest import Run


@contextmanager
def up(data: Path, *args: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """A running machine and its first line."""
    command = [sys.executable, "-m", "moorage.cli", "up", "--data", str(data), *args]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline(), process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)


@pytest.mark.case("P2")
def test_a_folder_that_was_open_to_others_is_closed(tmp_path: Path) -> None:
    """Packages and service managers make it 0755 beforehand; it holds every Secret."""
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    with up(data) as (line, process):
        assert line == f"kubeconfig: {data}/kubeconfig\n"
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        assert stat.S_IMODE((data / "kubeconfig").stat().st_mode) == 0o600
    assert process.returncode == 0


def test_a_second_one_on_the_same_data_says_so(tmp_path: Path, moorage: Run) -> None:
    """Exit 3, and where the first one is reached."""
    with up(tmp_path / "data"):
        done = moorage("up", "--data", tmp_path / "data")
    assert done.returncode == 3
    assert "another `moorage up` runs on this data. Use it: kubeconfig" in done.stderr


def test_a_taken_port_is_named(tmp_path: Path, moorage: Run) -> None:
    """Exit 3, one line, with the way out."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = moorage("up", "--data", tmp_path / "data", "--port", port)
    assert (done.returncode, done.stderr) == (
        3,
        f"error: port {port}: is taken by another process. Choose another with --port\n",
    )


@pytest.mark.parametrize(
    ("args", "why"),
    [
        (("--data", ""), "--data: is empty"),
        (("--history", "soon"), "--history"),
        (("--log-level", "loud"), "is no level"),
    ],
)
def test_options_that_make_no_sense_are_refused(moorage: Run, args: tuple[str, str], why: str) -> None:
    """Exit 2, nothing is written."""
    done = moorage("up", *args)
    assert done.returncode == 2
    assert why in done.stderr


def test_a_file_in_place_of_the_folder_is_named(tmp_path: Path, moorage: Run) -> None:
    """Exit 3 with the path."""
    (tmp_path / "file").write_text("")
    done = moorage("up", "--data", tmp_path / "file")
    assert done.returncode == 3
    assert "cannot be used" in done.stderr


def test_an_image_of_a_person_is_read_before_anything_starts(tmp_path: Path, moorage: Run) -> None:
    """What is wrong with `--image`, and how it is written; nothing of the machine was made."""
    wrong = moorage("up", "--data", tmp_path / "data", "--image", "pocket-id")
    assert wrong.returncode == 2
    assert "--image pocket-id: is not NAME=FOLDER" in wrong.stderr
    missing = moorage("up", "--data", tmp_path / "data", "--image", f"pocket-id={tmp_path / 'nowhere'}")
    assert missing.returncode == 2
    assert "image.toml: No such file or directory" in missing.stderr
    assert not (tmp_path / "data").exists()
