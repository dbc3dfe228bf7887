"""One run of one container: started, adopted, signalled, waited for.

Enters: a folder for this run and what to start in it. Leaves: facts on disk and a `Run` that follows the supervisor.
It must not decide whether a container should run. What survives a restart of the node lies in the folder:
`spec.json`, `state.json`, `exit.json`, `lock` (see shim.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moorage.core.errors import EnvironmentError_
from moorage.node.pods import shim
from moorage.node.pods.source import Source

_SHIM = Path(shim.__file__)
_KILLED_SUPERVISOR = 137
_SETUP_LOOK = 0.005
"""Seconds between two looks at a sandbox that is being set up; that takes some tens of milliseconds."""


class StartError(EnvironmentError_):
    """A container could not be started at all."""

    code = "container_start"


@dataclass(frozen=True, slots=True)
class Start:
    """What to run.

    Attributes:
        arguments: bubblewrap's, without the environment; its sources are of type `Source`.
        identity: user and group inside the sandbox.
        log: the file for both streams.
        user: user (and group) of this machine that it runs as; None: as ourselves.
    """

    arguments: Sequence[str]
    command: Sequence[str]
    environment: Mapping[str, str]
    identity: tuple[int, int]
    log: Path
    user: int | None = None
    log_limit: int = 10 * 2**20
    log_keep: int = 4
    cgroup: Path | None = None


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


async def start(folder: Path, what: Start, working_directory: str = "/") -> Run:
    """Starts a container under a supervisor of its own; returns when the sandbox runs, or has failed already.

    Raises:
        StartError: bubblewrap is missing or the supervisor could not start.
    """
    bwrap = _write_spec(folder, what, working_directory)
    shim_pid = await _spawn(folder)
    run = Run(folder, what.environment, what.identity, working_directory, running=read_running(folder))
    run.follow(shim_pid)
    if run.running is None and not run.ended.is_set():
        await run.ended.wait()
    await _entered(run, bwrap)
    return run


def _write_spec(folder: Path, what: Start, working_directory: str) -> str:
    """Writes what the supervisor needs, mode 0600; the path of bubblewrap."""
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise StartError("bwrap", "is not installed", "apt-get install bubblewrap")
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    setenv = [part for name, value in what.environment.items() for part in ("--setenv", name, value)]
    spec: dict[str, Any] = {
        "bwrap": bwrap,
        "arguments": [*what.arguments, "--clearenv", *setenv],
        "sources": [index for index, word in enumerate(what.arguments) if isinstance(word, Source)],
        "user": what.user,
        "command": list(what.command),
        "environment": dict(what.environment),
        "identity": list(what.identity),
        "workingDirectory": working_directory,
        "log": {"path": str(what.log), "limit": what.log_limit, "keep": what.log_keep},
        "cgroup": str(what.cgroup) if what.cgroup else None,
    }
    shim.write_json(str(folder), "spec.json", spec)
    return os.path.realpath(bwrap)


async def _entered(run: Run, bwrap: str) -> None:
    """Waits until the command has taken bubblewrap's place: only then do signals and entering mean the container."""
    while run.running is not None and not run.ended.is_set() and _program(run.running.pid) in (bwrap, ""):  # noqa: ASYNC110
        await asyncio.sleep(_SETUP_LOOK)


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


async def _spawn(folder: Path) -> int:
    """Starts the supervisor in a session of its own and waits until it tells of the start; its process number."""
    told, tell = os.pipe()
    try:
        pid = _spawn_process(folder, tell)
        await _closed(told)
    finally:
        os.close(told)
    return pid


def _spawn_process(folder: Path, tell: int) -> int:
    lock = _lock(folder)
    errors = _high(os.open(folder / "shim.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    null = _high(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    high = _high(tell)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(_SHIM), str(folder)],
            {"LANG": "C.UTF-8"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, errors, 1),
                (os.POSIX_SPAWN_DUP2, errors, 2),
                (os.POSIX_SPAWN_DUP2, high, shim.READY_FD),
                (os.POSIX_SPAWN_DUP2, lock, shim.LOCK_FD),
            ],
            setsid=True,
        )
    finally:
        for descriptor in (high, errors, null, lock):
            os.close(descriptor)


def _high(descriptor: int) -> int:
    """The same open file under a number that no dup2 of a spawn overwrites; the old number is closed."""
    high = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return high


def _lock(folder: Path) -> int:
    """The run's lock, taken here and handed to the supervisor: there is no moment at which a run holds none."""
    first = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(first, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return _high(first)


async def _closed(descriptor: int) -> None:
    """Waits until the other end of a pipe is closed."""
    loop = asyncio.get_running_loop()
    done = asyncio.Event()
    loop.add_reader(descriptor, done.set)
    try:
        await done.wait()
    finally:
        loop.remove_reader(descriptor)


async def adopt(folder: Path) -> Run:
    """Takes over the run in `folder`: still running, or ended meanwhile (then `exit` is set)."""
    while lives(folder) and read_running(folder) is None:  # noqa: ASYNC110 - not our child, nobody tells
        await asyncio.sleep(_SETUP_LOOK)
    spec = json.loads((folder / "spec.json").read_text())
    identity = (int(spec["identity"][0]), int(spec["identity"][1]))
    run = Run(folder, spec["environment"], identity, spec["workingDirectory"], running=read_running(folder))
    if lives(folder) and run.running is not None and alive(run.running.shim, run.running.shim_ticks):
        run.follow(run.running.shim)
        return run
    run.exit = read_exit(folder) or _lost(run.running)
    run.ended.set()
    return run


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
