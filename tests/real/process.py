"""One child process of a test: started, awaited by a condition, stopped by its own pid.

Enters: a command, a folder for its log, a question "are you ready?". Leaves: a running `Process`, or `NotReady` with the last
lines of its log. It never sleeps blindly and never signals a process that it did not start.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.real.ports import holds

TICK = 0.03


class NotReady(Exception):
    """A real server did not come up; holds the tail of its log."""


@dataclass
class Process:
    """A running child and its log."""

    name: str
    child: subprocess.Popen[bytes]
    log: Path
    stop_signal: int = signal.SIGTERM
    stop_limit: float = 20.0
    _ended: bool = field(default=False, init=False)

    @property
    def pid(self) -> int:
        return self.child.pid

    def tail(self, lines: int = 25) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def wait_until(self, ready: Callable[[], bool], *, limit: float = 60.0) -> None:
        """Ask until the answer is yes; raises NotReady when the process ends first or the limit (seconds) is over."""
        deadline = time.monotonic() + limit
        while not ready():
            try:
                code = self.child.wait(timeout=TICK)
            except subprocess.TimeoutExpired:
                if time.monotonic() < deadline:
                    continue
                raise NotReady(f"{self.name} is not ready after {limit:.0f} s\n{self.tail()}") from None
            raise NotReady(f"{self.name} ended with {code}\n{self.tail()}")

    def stop(self) -> int:
        """End the child; returns its exit code (negative for a signal)."""
        if self.child.poll() is None:
            self.child.send_signal(self.stop_signal)
            try:
                self.child.wait(timeout=self.stop_limit)
            except subprocess.TimeoutExpired:
                self.child.kill()
        return self.child.wait()


@dataclass(frozen=True)
class Command:
    """What to start: `argv` in `folder`, its output into `folder/<name>.log`."""

    name: str
    argv: Sequence[str]
    folder: Path
    env: Mapping[str, str] | None = None
    stop_signal: int = signal.SIGTERM

    def start(self) -> Process:
        """Start it; the caller stops it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"{self.name}.log"
        with log.open("ab") as output:
            child = subprocess.Popen(
                list(self.argv), cwd=self.folder, env=self.env, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        return Process(self.name, child, log, self.stop_signal)


@contextmanager
def running(
    command: Command, *, port: int = 0, ready: Callable[[], bool] = lambda: True, limit: float = 60.0
) -> Iterator[Process]:
    """Run the command for the time of a `with`: ready means that it holds `port` (0 for none) and `ready` says so."""
    process = command.start()
    try:
        process.wait_until(lambda: (not port or holds(process.pid, port)) and ready(), limit=limit)
        yield process
    finally:
        process.stop()


def poll(question: Callable[[], bool], *, what: str, limit: float = 30.0) -> None:
    """Ask until yes; for conditions of a server that no process of ours stands for. Raises TimeoutError."""
    deadline = time.monotonic() + limit
    while not question():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not so after {limit:.0f} s: {what}")
        time.sleep(TICK)
