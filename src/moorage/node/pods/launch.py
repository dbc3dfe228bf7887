"""How a run of a container begins: a supervisor of its own, told what to start.

Enters: a folder for this run and what to start in it. Leaves: facts on disk and a `Run`. What a container is told, its environment above
all, may hold secrets: it goes to the supervisor through a file in memory and is written nowhere.
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moorage.core.errors import EnvironmentError_
from moorage.node.pods import shim
from moorage.node.pods.container import SETUP_LOOK, Run, read_running
from moorage.node.pods.source import Source

_SOURCES = ("shim.py", "stage.py")


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
    supervisor: Path = Path(shim.__file__)


def install(folder: Path) -> Path:
    """Copies the supervisor's sources into a folder, whole or not at all: what an upgrade does to ours leaves a node that runs alone.

    Raises:
        OSError: the disk refused.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in _SOURCES:
        draft = folder / f".{name}.new"
        draft.write_bytes(Path(shim.__file__).with_name(name).read_bytes())
        draft.rename(folder / name)
    return folder / _SOURCES[0]


async def start(folder: Path, what: Start, working_directory: str = "/") -> Run:
    """Starts a container under a supervisor of its own; returns when the sandbox runs, or has failed already.

    Raises:
        StartError: bubblewrap is missing or the supervisor could not start.
    """
    bwrap = _bubblewrap()
    facts = _write_facts(folder, what, working_directory)
    shim_pid = await _spawn(folder, what.supervisor, _told(what, {**facts, "bwrap": bwrap}))
    run = Run(folder, what.environment, what.identity, working_directory, running=read_running(folder))
    run.follow(shim_pid)
    if run.running is None and not run.ended.is_set():
        await run.ended.wait()
    await _entered(run, bwrap)
    return run


def _bubblewrap() -> str:
    found = shutil.which("bwrap")
    if found is None:
        raise StartError("bwrap", "is not installed", "apt-get install bubblewrap")
    return os.path.realpath(found)


def _write_facts(folder: Path, what: Start, working_directory: str) -> dict[str, Any]:
    """Writes down what a later node must know of the run; nothing of it is secret."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    facts = {
        "identity": list(what.identity),
        "workingDirectory": working_directory,
        "log": {"path": str(what.log), "limit": what.log_limit, "keep": what.log_keep},
        "cgroup": str(what.cgroup) if what.cgroup else None,
    }
    shim.write_json(str(folder), "spec.json", facts)
    return facts


def _told(what: Start, facts: Mapping[str, Any]) -> int:
    """A file in memory with all that the supervisor needs."""
    setenv = [part for name, value in what.environment.items() for part in ("--setenv", name, value)]
    spec = {
        **facts,
        "arguments": [*what.arguments, "--clearenv", *setenv],
        "sources": [index for index, word in enumerate(what.arguments) if isinstance(word, Source)],
        "user": what.user,
        "command": list(what.command),
        "environment": dict(what.environment),
    }
    told = os.memfd_create("spec", os.MFD_CLOEXEC)
    with open(told, "w", closefd=False) as out:
        json.dump(spec, out)
    return told


async def _entered(run: Run, bwrap: str) -> None:
    """Waits until the command has taken bubblewrap's place: only then do signals and entering mean the container."""
    while run.running is not None and not run.ended.is_set() and _program(run.running.pid) in (bwrap, ""):  # noqa: ASYNC110
        await asyncio.sleep(SETUP_LOOK)


def _program(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


async def _spawn(folder: Path, supervisor: Path, told: int) -> int:
    """Starts the supervisor in a session of its own and waits until it says that it started; its process number."""
    started, tell = os.pipe()
    try:
        pid = _spawn_process(folder, supervisor, (tell, told))
        await _closed(started)
    finally:
        os.close(started)
    return pid


def _spawn_process(folder: Path, supervisor: Path, ends: tuple[int, int]) -> int:
    lock = _lock(folder)
    errors = _high(os.open(folder / "shim.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600))
    null = _high(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
    high, told = map(_high, ends)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-I", "-S", str(supervisor), str(folder)],
            {"LANG": "C.UTF-8"},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, null, 0),
                (os.POSIX_SPAWN_DUP2, errors, 1),
                (os.POSIX_SPAWN_DUP2, errors, 2),
                (os.POSIX_SPAWN_DUP2, high, shim.READY_FD),
                (os.POSIX_SPAWN_DUP2, lock, shim.LOCK_FD),
                (os.POSIX_SPAWN_DUP2, told, shim.SPEC_FD),
            ],
            setsid=True,
        )
    finally:
        for descriptor in (high, told, errors, null, lock):
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
