"""What is known of one container of a pod over all its runs.

Enters: the folder of its runs. Leaves: the container's state as the status shows it, and when it may start again.
It must not start anything.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from moorage.core.meta import JsonObject
from moorage.node.options import NodeOptions
from moorage.node.pods.container import Exit, Run, adopt, read_exit, read_running
from moorage.node.pods.probes import Prober
from moorage.node.pods.status import CREATING, Seen

_MESSAGE_LIMIT = 4096
_KEPT_RUNS = 2
_START_ERROR = 128


@dataclass(slots=True)
class Record:
    """One container. `attempt`: number of the current or last run, -1 before the first."""

    container: JsonObject
    folder: Path
    attempt: int = -1
    run: Run | None = None
    last: JsonObject = field(default_factory=dict)
    waiting: JsonObject = field(default_factory=lambda: CREATING)
    image: str = ""
    prober: Prober | None = None
    not_before: float = 0.0
    failures: int = 0
    noted: bool = True

    @classmethod
    async def load(cls, container: JsonObject, folder: Path) -> Record:
        """What the disk knows; a run that still lives is adopted."""
        record = cls(container, folder)
        attempts = _attempts(folder)
        if not attempts:
            return record
        record.attempt = attempts[-1]
        if len(attempts) > 1:
            record.last = _terminated(folder / str(attempts[-2]), container)
        if _has_spec(record.run_folder):
            record.run = await adopt(record.run_folder)
        else:
            record.attempt -= 1  # the node died before anything was started
            shutil.rmtree(folder / str(attempts[-1]))
        return record

    @property
    def name(self) -> str:
        return str(self.container["name"])

    @property
    def run_folder(self) -> Path:
        return self.folder / str(self.attempt)

    @property
    def running(self) -> bool:
        return self.run is not None and not self.run.ended.is_set()

    @property
    def exit(self) -> Exit | None:
        """How the current run ended; None while it runs or before the first."""
        return self.run.exit if self.run is not None else None

    @property
    def born(self) -> bool:
        """Whether it was ever started."""
        return self.run is not None

    def begin(self) -> Path:
        """Makes room for the next run; the folder is not made."""
        if self.run is not None:
            self.last = _terminated(self.run_folder, self.container)
        self.attempt += 1
        old = self.attempt - _KEPT_RUNS
        if old >= 0:
            shutil.rmtree(self.folder / str(old), ignore_errors=True)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.run_folder

    def note_exit(self, now: float, options: NodeOptions) -> None:
        """After an end: when the container may start again. Source: Kubernetes, container restart back-off."""
        if self.noted:
            return
        self.noted = True
        if self.exit is not None and _seconds(self.exit) >= options.steady_after:
            self.failures = 0
        self.not_before = now + options.restart_backoff.delay(self.failures - 1, 0.0) if self.failures else now
        self.failures += 1

    def seen(self, *, restarting: bool) -> Seen:
        """The container as the status shows it. `restarting`: it ended and is to start again."""
        base = {"restarts": max(self.attempt, 0), "image_id": self.image}
        if self.run is None:
            return Seen(self.waiting, **base)  # type: ignore[arg-type]
        identity = f"bwrap://{self.run.running.pid}-{self.run.running.ticks}" if self.run.running else ""
        if self.running:
            started_at = self.run.running.started_at if self.run.running else ""
            prober = self.prober
            return Seen(
                {"running": {"startedAt": _seconds_of(started_at)}},
                self.last,
                ready=prober is not None and prober.ready,
                started=prober is not None and prober.started,
                container_id=identity,
                **base,  # type: ignore[arg-type]
            )
        ended = _terminated(self.run_folder, self.container)
        if restarting and self.waiting is not CREATING:
            return Seen(self.waiting, ended, container_id=identity, **base)  # type: ignore[arg-type]
        return Seen(ended, self.last, container_id=identity, **base)  # type: ignore[arg-type]


def _attempts(folder: Path) -> list[int]:
    return sorted(int(entry.name) for entry in folder.glob("[0-9]*")) if folder.is_dir() else []


def _has_spec(folder: Path) -> bool:
    return (folder / "spec.json").exists()


def _seconds_of(stamp: str) -> str:
    """A stamp with nanoseconds as Kubernetes' whole-second time."""
    return stamp[:19] + "Z" if stamp else stamp


def _seconds(ended: Exit) -> float:
    return (_time(ended.finished_at) - _time(ended.started_at)).total_seconds()


def _time(stamp: str) -> datetime:
    return datetime.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)


def _terminated(folder: Path, container: JsonObject) -> JsonObject:
    """The `terminated` state of a run that ended."""
    ended, running = read_exit(folder), read_running(folder)
    if ended is None:
        started = _seconds_of(running.started_at) if running else None
        lost = {"exitCode": 137, "reason": "ContainerStatusUnknown", "startedAt": started}
        said = _last_line(folder / "shim.log")
        return {"terminated": {**lost, "message": f"the supervisor ended: {said}"} if said else lost}
    state: JsonObject = {
        "exitCode": _START_ERROR if ended.start_error else ended.code,
        "reason": _reason(ended),
        "startedAt": _seconds_of(ended.started_at),
        "finishedAt": _seconds_of(ended.finished_at),
    }
    if running is not None:
        state["containerID"] = f"bwrap://{running.pid}-{running.ticks}"
    if ended.code > 128:
        state["signal"] = ended.code - 128
    if message := ended.start_error or _message(folder, container, ended):
        state["message"] = message
    return {"terminated": state}


def _reason(ended: Exit) -> str:
    if ended.start_error:
        return "StartError"
    if ended.out_of_memory:
        return "OOMKilled"
    return "Completed" if ended.code == 0 else "Error"


def _message(folder: Path, container: JsonObject, ended: Exit) -> str:
    """The termination message, or the end of the log where the container asks for that."""
    try:
        with (folder / "termination-log").open("rb") as said:
            text = said.read(_MESSAGE_LIMIT).decode(errors="replace")
    except OSError:
        text = ""
    fallback = container.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    if text or not fallback or ended.code == 0:
        return text
    return _log_end(folder)


def _last_line(path: Path) -> str:
    try:
        lines = path.read_bytes()[-_MESSAGE_LIMIT:].decode(errors="replace").split("\n")
    except OSError:
        return ""
    return next((line for line in reversed(lines) if line.strip()), "")


def _log_end(folder: Path) -> str:
    try:
        path = Path(json.loads((folder / "spec.json").read_text())["log"]["path"])
        lines = path.read_bytes()[-2048:].decode(errors="replace").splitlines()[-80:]
    except (OSError, ValueError, KeyError):
        return ""
    return "\n".join(line.split(" ", 3)[3] for line in lines if line.count(" ") >= 3)
