"""`moorage up` as a process on a folder of the test's own, with a real directory beside it.

Enters: a folder. Leaves: a running machine that can be stopped, killed and started again on the same data. At the end nothing
that was started here is left: pods that a killed machine left behind are ended by a last life of it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.example import BIND_PASSWORD
from tests.real.directory import Directory, slapd
from tests.real.process import Command, Process

STOP_LIMIT = 90.0
"""Seconds that pods may take to end in order."""


@dataclass
class Machine:
    """One-machine mode on `data`, its log in `folder`."""

    folder: Path
    directory: Directory
    process: Process | None = None
    lives: int = 0
    dirty: bool = False
    bind_password: str = BIND_PASSWORD
    arguments: tuple[str, ...] = ()
    data: Path = field(init=False)

    def __post_init__(self) -> None:
        self.data = self.folder / "data"

    @property
    def kubeconfig(self) -> Path:
        return self.data / "kubeconfig"

    @property
    def command(self) -> list[str]:
        argv = [sys.executable, "-m", "moorage.cli", "up", "--data", str(self.data), "--log-level", "info"]
        return [*argv, *self.arguments]

    @property
    def logs(self) -> list[Path]:
        """What each life wrote."""
        return sorted(self.folder.glob("up-*.log"))

    def start(self) -> None:
        """One more life; returns when the server answers."""
        self.lives += 1
        self.process = Command(f"up-{self.lives}", self.command, self.folder, stop_signal=signal.SIGINT).start()
        self.process.stop_limit = STOP_LIMIT
        self.process.wait_until(self._announced, limit=60)

    def _announced(self) -> bool:
        return self.process is not None and f"kubeconfig: {self.kubeconfig}" in self.process.log.read_text()

    def stop(self) -> int:
        """Ctrl-C; the exit code."""
        assert self.process is not None
        code = self.process.stop()
        self.process, self.dirty = None, False
        return code

    def kill(self) -> None:
        """As a power cut for this process alone: its pods live on."""
        assert self.process is not None
        self.process.child.kill()
        self.process.child.wait()
        self.process, self.dirty = None, True

    def pods(self) -> dict[int, str]:
        """Processes that belong to pods of this data folder: pid and command line, by the folder in their arguments or roots."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                words = command_line(int(entry.name))
                if str(self.data / "node" / "pods") in words:
                    found[int(entry.name)] = words
        return found


def command_line(pid: int) -> str:
    """The arguments of a process; "" when it has ended."""
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    """Whether a process exists and has not ended."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def machine(folder: Path, *arguments: str) -> Iterator[Machine]:
    """A directory and a machine, for the time of a `with`; `arguments` are further ones of `moorage up`."""
    with slapd(folder / "slapd") as directory:
        made = Machine(folder, directory, arguments=arguments)
        try:
            made.start()
            yield made
        finally:
            if made.process is None and made.dirty:
                made.start()
            if made.process is not None:
                made.stop()
            left = made.pods()
            assert not left, f"processes are left: {left}"
