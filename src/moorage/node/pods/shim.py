"""The supervisor of one container: a small process of its own, so that a container outlives a restart of the node.

Enters: argv[1], the container's folder; a pipe (fd 3) on which the start is told; the lock on `lock` (fd 4), taken already; what to start
(fd 5, a file in memory: it may hold secrets, and a later node reads it there through /proc). Leaves, in that folder: `state.json` while it runs, `exit.json` when it ended, and the log.
The lock lasts as long as it lives: who finds it free knows that nothing runs, whatever became of process numbers. It must not import anything of ours:
it runs by `python -I -S`, with the standard library only.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

_LINE_LIMIT = 16384
"""Longer lines are written in parts, tagged P, as container runtimes do."""
_ERROR_LIMIT = 1024
READY_FD = 3
LOCK_FD = 4
SPEC_FD = 5


def now() -> str:
    """RFC 3339 time in UTC with nine digits, as log lines and status carry it."""
    seconds, rest = divmod(time.time_ns(), 10**9)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S") + f".{rest:09d}Z"


def start_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot: with its number it names a process for good."""
    with open(f"/proc/{pid}/stat", "rb") as stat:
        return int(stat.read().rpartition(b")")[2].split()[19])


def write_json(folder: str, name: str, value: Any) -> None:
    """Writes a file whole or not at all; a crash of the machine may lose it, a crash of a process not."""
    draft = os.path.join(folder, f".{name}.new")
    with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        json.dump(value, out)
    os.rename(draft, os.path.join(folder, name))


class Log:
    """One log file in the format of container runtimes, rotated by size."""

    def __init__(self, path: str, limit: int, keep: int) -> None:
        self.path, self.limit, self.keep = path, limit, keep
        self.rest = {"stdout": b"", "stderr": b""}
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self._open()

    def _open(self) -> None:
        self.out = open(self.path, "ab", buffering=0)  # noqa: SIM115 - kept open, rotated
        self.size = self.out.tell()

    def feed(self, stream: str, data: bytes) -> None:
        lines = (self.rest[stream] + data).split(b"\n")
        self.rest[stream] = lines.pop()
        stamp = now().encode()
        parts = [part for line in lines for part in self._parts(stamp, stream, line)]
        while len(self.rest[stream]) >= _LINE_LIMIT:
            head, self.rest[stream] = self.rest[stream][:_LINE_LIMIT], self.rest[stream][_LINE_LIMIT:]
            parts.append(self._line(stamp, stream, b"P", head))
        self._write(b"".join(parts))

    def finish(self) -> None:
        for stream, rest in self.rest.items():
            if rest:
                self._write(self._line(now().encode(), stream, b"F", rest))
        self.out.close()

    def _parts(self, stamp: bytes, stream: str, line: bytes) -> Iterator[bytes]:
        while len(line) > _LINE_LIMIT:
            yield self._line(stamp, stream, b"P", line[:_LINE_LIMIT])
            line = line[_LINE_LIMIT:]
        yield self._line(stamp, stream, b"F", line)

    @staticmethod
    def _line(stamp: bytes, stream: str, tag: bytes, text: bytes) -> bytes:
        return b"%s %s %s %s\n" % (stamp, stream.encode(), tag, text)

    def _write(self, text: bytes) -> None:
        try:
            self.out.write(text)
        except OSError:
            return  # a full disk costs log lines, never the container
        self.size += len(text)
        if self.size >= self.limit:
            self._rotate()

    def _rotate(self) -> None:
        self.out.close()
        try:
            for number in range(self.keep - 1, 0, -1):
                older = f"{self.path}.{number}"
                if os.path.exists(older):
                    os.rename(older, f"{self.path}.{number + 1}")
            os.rename(self.path, f"{self.path}.1")
            last = f"{self.path}.{self.keep + 1}"
            if os.path.exists(last):
                os.unlink(last)
        except OSError:
            os.truncate(self.path, 0)
        self._open()


class Supervisor:
    """Starts bubblewrap, copies its output to the log, writes down how it went."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(SPEC_FD, closefd=False) as spec:
            spec.seek(0)
            self.spec = json.load(spec)
        log = self.spec["log"]
        self.log = Log(log["path"], log["limit"], log["keep"])
        self.code: int | None = None
        self.started, self.first_error = now(), b""

    def run(self) -> None:
        process, pipes = self._start()
        status = b""
        while pipes:
            for ready in select.select(list(pipes), [], [])[0]:
                data = os.read(ready, 65536)
                if not data:
                    os.close(ready)
                    del pipes[ready]
                elif pipes[ready] == "status":
                    status = self._status(status + data)
                else:
                    self._said(pipes[ready], data)
        code = process.wait()
        self.log.finish()
        self._ended(code if self.code is None else self.code)

    def _start(self) -> tuple[subprocess.Popen[bytes], dict[int, str]]:
        enter = self._entrance()
        arguments = os.memfd_create("arguments")
        os.write(arguments, b"".join(item.encode(errors="surrogateescape") + b"\0" for item in self.spec["arguments"]))
        os.lseek(arguments, 0, os.SEEK_SET)
        (out, out_end), (err, err_end), (status, status_end) = os.pipe(), os.pipe(), os.pipe()
        if self.spec["user"] is not None:
            for end in (out_end, err_end):
                os.fchown(end, self.spec["user"], self.spec["user"])  # so that /dev/stdout can be opened
        command = [self.spec["bwrap"], "--args", str(arguments), "--json-status-fd", str(status_end), "--"]
        process = subprocess.Popen(  # noqa: S603
            command + self.spec["command"],
            stdin=subprocess.DEVNULL,
            stdout=out_end,
            stderr=err_end,
            pass_fds=(arguments, status_end),
            env={},
            preexec_fn=enter,
        )
        for end in (arguments, out_end, err_end, status_end):
            os.close(end)
        return process, {out: "stdout", err: "stderr", status: "status"}

    def _entrance(self) -> Callable[[], None]:
        """What the child does before it is bubblewrap; sources of the sandbox get their names on the stage here."""
        words, user = self.spec["arguments"], self.spec["user"]
        sources = [(str(index), words[index], words[index - 1].endswith("-try")) for index in self.spec["sources"]]
        stage = _stage() if user is not None else None
        if stage is not None:
            for name, _, _ in sources:
                words[int(name)] = f"{stage.STAGE}/{name}"

        def enter() -> None:
            try:
                if self.spec.get("cgroup"):
                    _enter_cgroup(self.spec["cgroup"])
                if stage is not None:
                    stage.enter(sources, user)
            except OSError as error:
                os.write(2, f"sandbox: {error.filename}: {error.strerror}\n".encode(errors="replace"))
                os._exit(1)

        return enter

    def _said(self, stream: str, data: bytes) -> None:
        if stream == "stderr" and len(self.first_error) < _ERROR_LIMIT:
            self.first_error += data  # bubblewrap writes its sentence in pieces
        self.log.feed(stream, data)

    def _status(self, text: bytes) -> bytes:
        *lines, rest = text.split(b"\n")
        for line in filter(None, lines):
            facts = json.loads(line)
            if "child-pid" in facts:
                self._running(facts["child-pid"])
            if "exit-code" in facts:
                self.code = facts["exit-code"]
        return rest

    def _running(self, child: int) -> None:
        try:
            ticks = start_ticks(child)
        except (OSError, IndexError):
            ticks = 0
        mine = {"shim": os.getpid(), "shimTicks": start_ticks(os.getpid())}
        state = {**mine, "pid": child, "ticks": ticks, "startedAt": self.started}
        write_json(self.folder, "state.json", state)
        tell_start()

    def _ended(self, code: int) -> None:
        refused = re.match(rb"(?:bwrap|sandbox): ([^\n]*)", self.first_error) if code == 1 else None
        facts = {"exitCode": code, "startedAt": self.started, "finishedAt": now(), "oom": self._out_of_memory()}
        if refused:
            facts["startError"] = refused[1].decode(errors="replace")
        write_json(self.folder, "exit.json", facts)
        tell_start()

    def _out_of_memory(self) -> bool:
        if not self.spec.get("cgroup"):
            return False
        try:
            with open(os.path.join(self.spec["cgroup"], "memory.events")) as events:
                return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in events)
        except OSError:
            return False


def _stage() -> Any:
    """The module beside this one; nothing of ours is on the path here."""
    spec = importlib.util.spec_from_file_location("stage", os.path.join(os.path.dirname(__file__), "stage.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _enter_cgroup(folder: str) -> None:
    with open(os.path.join(folder, "cgroup.procs"), "w") as procs:
        procs.write("0")


def tell_start() -> None:
    """Closes the pipe that the node waits on: the start is known now, one way or the other."""
    try:
        os.close(READY_FD)
    except OSError:
        return  # told before


def _unmoved(_number: int, _frame: object) -> None:
    """A handler, not SIG_IGN: what is ignored here would be ignored in the container, too."""


def main() -> None:
    folder = sys.argv[1]
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _unmoved)
    for descriptor in (READY_FD, LOCK_FD, SPEC_FD):
        os.set_inheritable(descriptor, False)
    Supervisor(folder).run()


if __name__ == "__main__":
    main()
