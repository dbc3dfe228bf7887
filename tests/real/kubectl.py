"""kubectl as people run it: the machine's own (1.32) and the one of the real server's version.

Enters: arguments, a kubeconfig, standard input. Leaves: what it printed. It never touches the person's own ~/.kube.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.real.kubernetes import BIN

MACHINE, BUILT = Path("/usr/bin/kubectl"), BIN / "kubectl"


def programs() -> list[Path]:
    """The kubectl programs that this machine has."""
    return [program for program in (MACHINE, BUILT) if program.exists()]


@dataclass(frozen=True)
class Printed:
    """Exit code and both outputs of one run."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Kubectl:
    """kubectl bound to one cluster and namespace; `home` keeps its caches."""

    kubeconfig: Path
    home: Path
    namespace: str = "default"
    program: Path = MACHINE

    def command(self, *words: str) -> list[str]:
        """The whole command line, for tests that follow a running kubectl themselves."""
        return [str(self.program), "--kubeconfig", str(self.kubeconfig), "-n", self.namespace, *words]

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"HOME": str(self.home)}

    def try_(self, *words: str, given: str = "", limit: float = 60) -> Printed:
        """Run it, whatever the exit code."""
        done = subprocess.run(
            self.command(*words), input=given, capture_output=True, text=True, timeout=limit, env=self.environment
        )
        return Printed(done.returncode, done.stdout, done.stderr)

    def __call__(self, *words: str, given: str = "", limit: float = 60) -> str:
        """Run it and return its standard output; AssertionError with its words when it fails."""
        printed = self.try_(*words, given=given, limit=limit)
        assert printed.code == 0, f"kubectl {' '.join(words)}: {printed.code}\n{printed.output}{printed.errors}"
        return printed.output
