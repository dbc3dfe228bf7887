"""One run of one container: adopted, signalled, waited for; launch.py starts it.

Enters: the folder of a run. Leaves: a `Run` that follows the supervisor.
It must not decide whether a container should run. What survives a restart of the node lies in the folder:
`spec.json`, `state.json`, `exit.json`, `lock` (see shim.py). What a container is told, its environment above all, may hold secrets: it is
in memory only, handed to the supervisor, who keeps it as long as the container lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moorage.node.pods import shim

_KILLED_SUPERVISOR = 137
SETUP_LOOK = 0.005
"""Seconds between two looks at a sandbox that is being set up; that takes some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class Running:
    """A container that runs: host process numbers, guarded by their start ticks."""

    shim: int
    shim_ticks: int
    pid: int
    ticks: int
    started_at: str


@dataclass(frozen=True, slots=True)
class Exit:
    """How a container ended. `start_error`: what bubblewrap said when the command could not be started."""

    code: int
    started_at: str
    finished_at: str
    start_error: str = ""
    out_of_memory: bool = False


@dataclass(slots=True)
class Run:
    """One run that was started or adopted by this node process."""

    folder: Path
    environment: Mapping[str, str]
    identity: tuple[int, int]
    working_directory: str = "/"
    running: Running | None = None
    exit: Exit | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    _pidfd: int = -1

    def signal(self, number: int) -> None:
        """Sends a signal to the container's first process, if it is still that one."""
        if self.running is not None and self.exit is None:
            send(self.running.pid, self.running.ticks, number)

    def follow(self, shim_pid: int) -> None:
        """Watches the supervisor; `ended` is set when it is gone and `exit` is known."""
        try:
            self._pidfd = os.pidfd_open(shim_pid)
        except ProcessLookupError:
            self._gone(shim_pid)
            return
        asyncio.get_running_loop().add_reader(self._pidfd, self._gone, shim_pid)

    def forget(self) -> None:
        """Stops following; the container goes on."""
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1

    def _gone(self, shim_pid: int) -> None:
        self.forget()
        with contextlib.suppress(ChildProcessError):  # adopted: the supervisor is a child of init
            os.waitpid(shim_pid, os.WNOHANG)
        self.exit = read_exit(self.folder) or _lost(self.running)
        self.ended.set()


async def adopt(folder: Path) -> Run:
    """Takes over the run in `folder`: still running, or ended meanwhile (then `exit` is set)."""
    while lives(folder) and read_running(folder) is None:  # noqa: ASYNC110 - not our child, nobody tells
        await asyncio.sleep(SETUP_LOOK)
    spec = json.loads((folder / "spec.json").read_text())
    identity, running = (int(spec["identity"][0]), int(spec["identity"][1])), read_running(folder)
    run = Run(folder, _environment(running), identity, spec["workingDirectory"], running=running)
    if lives(folder) and run.running is not None and alive(run.running.shim, run.running.shim_ticks):
        run.follow(run.running.shim)
        return run
    run.exit = read_exit(folder) or _lost(run.running)
    run.ended.set()
    return run


def _environment(running: Running | None) -> Mapping[str, str]:
    """What a supervisor that lives was told of its container's environment; empty when it is gone."""
    if running is None or not alive(running.shim, running.shim_ticks):
        return {}
    try:
        with open(f"/proc/{running.shim}/fd/{shim.SPEC_FD}") as told:
            found: dict[str, str] = json.load(told)["environment"]
    except (OSError, ValueError):
        return {}
    return found


def lives(folder: Path) -> bool:
    """Whether a supervisor holds the lock of this run."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def alive(pid: int, ticks: int) -> bool:
    """Whether the process of this number is still the one that started at `ticks`."""
    try:
        return shim.start_ticks(pid) == ticks
    except (OSError, IndexError):
        return False


def send(pid: int, ticks: int, number: int) -> None:
    """Sends a signal to a process named by number and start; nothing happens when it is gone."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if alive(pid, ticks):
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def read_running(folder: Path) -> Running | None:
    """The facts of a start, or None when there was none."""
    facts = _read(folder / "state.json")
    if facts is None:
        return None
    return Running(facts["shim"], facts["shimTicks"], facts["pid"], facts["ticks"], facts["startedAt"])


def read_exit(folder: Path) -> Exit | None:
    """The facts of an end, or None when it did not end or nobody saw it."""
    facts = _read(folder / "exit.json")
    if facts is None:
        return None
    start_error = facts.get("startError", "")
    return Exit(facts["exitCode"], facts["startedAt"], facts["finishedAt"], start_error, facts["oom"])


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return found


def _lost(running: Running | None) -> Exit:
    """The supervisor itself was killed, and the sandbox died with it."""
    return Exit(_KILLED_SUPERVISOR, running.started_at if running else shim.now(), shim.now())
