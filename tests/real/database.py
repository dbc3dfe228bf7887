"""What the real database servers have in common: an address, an account for Keystone, a life that can be cut and resumed.

Enters: a folder. Leaves: a `Database` on a free loopback port; `stop` keeps the data and the port for the next `start`.
"""

from __future__ import annotations

import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from tests.real.ports import holds
from tests.real.process import Command, Process

NAME = USER = "keystone"


@dataclass
class Database(ABC):
    """A server with an empty database NAME that belongs to USER."""

    folder: Path
    port: int
    password: str = "first-password"
    process: Process | None = field(default=None, init=False)
    engine: ClassVar[str] = ""
    stop_signal: ClassVar[int] = 15

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @abstractmethod
    def prepare(self) -> None:
        """Make the data folder."""

    @abstractmethod
    def sql(self, text: str) -> str:
        """What statements answer to the owner of the server, by its socket: rows as lines, cells apart by tabs."""

    @abstractmethod
    def set_password(self, password: str) -> None:
        """Give USER another password; connections that stand go on."""

    @abstractmethod
    def _argv(self) -> list[str]:
        """The server in the foreground."""

    @abstractmethod
    def _first_words(self) -> Sequence[str]:
        """Statements that make database and account."""

    def create(self) -> None:
        """Serve for the first time."""
        self.prepare()
        self.start()
        for statement in self._first_words():
            self.sql(statement)

    def start(self) -> None:
        """Serve; ready means that our own process holds the port and answers a question."""
        self.process = Command(self.engine, self._argv(), self.folder, stop_signal=self.stop_signal).start()
        self.process.wait_until(self._answers, limit=60)

    def _answers(self) -> bool:
        if self.process is None or not holds(self.process.pid, self.port):
            return False
        try:
            self.sql("SELECT 1")
        except subprocess.CalledProcessError:
            return False
        return True

    def stop(self) -> None:
        """End it in order; what was written stays."""
        if self.process is not None:
            self.process.stop()
            self.process = None


def asked(argv: Sequence[str], text: str) -> str:
    """What a command-line client prints."""
    return subprocess.run(argv, input=text, check=True, capture_output=True, text=True).stdout
