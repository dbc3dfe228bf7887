"""A private MariaDB (Debian's mariadb-server).

Enters: a folder. Leaves: a served `MariaDb` for the time of a `with`, with an empty database and an account for Keystone.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tests.real.database import NAME, USER, Database, asked
from tests.real.ports import free_port
from tests.real.unprivileged import as_user, program

SERVER, INSTALL, CLIENT = (
    Path(path) for path in ("/usr/sbin/mariadbd", "/usr/bin/mariadb-install-db", "/usr/bin/mariadb")
)
PACKAGE = "mariadb-server"


@dataclass
class MariaDb(Database):
    """A mariadbd on a loopback port."""

    engine: ClassVar[str] = "MySQL"

    @property
    def socket(self) -> Path:
        return self.folder / "socket"

    @property
    def temporary(self) -> Path:
        """Of this server alone: one that starts removes every temporary table that it finds, those of others that run, too."""
        return self.folder / "tmp"

    def prepare(self) -> None:
        argv = [program(INSTALL, PACKAGE), "--no-defaults", f"--datadir={self.data}", "--skip-test-db"]
        argv += ["--auth-root-authentication-method=normal", f"--tmpdir={self.temporary}"]
        self.temporary.mkdir(parents=True, exist_ok=True)
        subprocess.run(as_user("mysql", argv), check=True, stdout=subprocess.DEVNULL)

    def _argv(self) -> list[str]:
        argv = [program(SERVER, PACKAGE), "--no-defaults", f"--datadir={self.data}", f"--socket={self.socket}"]
        argv += [f"--port={self.port}", "--bind-address=127.0.0.1", f"--pid-file={self.folder / 'pid'}"]
        argv += ["--skip-name-resolve", "--innodb-buffer-pool-size=32M", "--innodb-flush-log-at-trx-commit=2"]
        argv += [f"--tmpdir={self.temporary}"]
        return as_user("mysql", argv)

    def _first_words(self) -> Sequence[str]:
        return (
            f"CREATE DATABASE {NAME} CHARACTER SET utf8mb3",
            f"CREATE USER '{USER}'@'%' IDENTIFIED BY '{self.password}'",
            f"GRANT ALL ON {NAME}.* TO '{USER}'@'%'",
        )

    def sql(self, text: str) -> str:
        argv = [program(CLIENT, PACKAGE), "--no-defaults", f"--socket={self.socket}", "--user=root", "--batch"]
        return asked([*argv, "--skip-column-names", "mysql"], text)

    def set_password(self, password: str) -> None:
        self.sql(f"ALTER USER '{USER}'@'%' IDENTIFIED BY '{password}'")
        self.password = password


@contextmanager
def mariadb(folder: Path) -> Iterator[MariaDb]:
    """Serve an empty database; raises ServerMissing with the package that is needed."""
    served = MariaDb(folder, free_port())
    try:
        served.create()
        yield served
    finally:
        served.stop()
