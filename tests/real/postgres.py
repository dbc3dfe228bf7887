"""A private PostgreSQL (Debian's postgresql).

Enters: a folder. Leaves: a served `Postgres` for the time of a `with`, with an empty database and an account for Keystone.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.real.database import NAME, USER, Database, asked
from tests.real.ports import free_port
from tests.real.unprivileged import ServerMissing, as_user, program

INSTALLED = Path("/usr/lib/postgresql")
PACKAGE = "postgresql"


def binary(name: str) -> str:
    """A program of the newest installed version; raises ServerMissing."""
    versions = sorted(INSTALLED.glob("[0-9]*"), key=lambda folder: float(folder.name))
    if not versions:
        raise ServerMissing(f"{INSTALLED} is empty; Debian package {PACKAGE}")
    return program(versions[-1] / "bin" / name, PACKAGE)


@dataclass
class Postgres(Database):
    """A postgres on a loopback port. SIGINT is its fast shutdown: SIGTERM would wait for Keystone's connections."""

    engine: ClassVar[str] = "PostgreSQL"
    stop_signal: ClassVar[int] = signal.SIGINT

    def prepare(self) -> None:
        argv = [binary("initdb"), "--pgdata", str(self.data), "--username=postgres", "--encoding=UTF8"]
        argv += ["--locale=C.UTF-8", "--auth-local=trust", "--auth-host=scram-sha-256", "--no-sync"]
        self.folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(as_user("postgres", argv), check=True, capture_output=True)

    def _argv(self) -> list[str]:
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder,
            "shared_buffers": "32MB", "synchronous_commit": "off",
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        return as_user("postgres", [binary("postgres"), "-D", str(self.data), *words])

    def _first_words(self) -> Sequence[str]:
        return (f"CREATE ROLE {USER} LOGIN PASSWORD '{self.password}'", f"CREATE DATABASE {NAME} OWNER {USER}")

    def sql(self, text: str) -> str:
        argv = [binary("psql"), "-h", str(self.folder), "-p", str(self.port), "-U", "postgres", "-d", "postgres"]
        return asked([*argv, "-X", "-q", "-A", "-t", "-F", "\t", "-v", "ON_ERROR_STOP=1"], text)

    def set_password(self, password: str) -> None:
        self.sql(f"ALTER ROLE {USER} PASSWORD '{password}'")
        self.password = password


@contextmanager
def postgres(folder: Path) -> Iterator[Postgres]:
    """Serve an empty database; raises ServerMissing with the package that is needed."""
    served = Postgres(folder, free_port())
    try:
        served.create()
        yield served
    finally:
        served.stop()
