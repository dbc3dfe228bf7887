"""The audit log: who asked for what, as whom, and what the answer was; one JSON line a request, never a body.

Changes, refusals and reads of Secrets are always written down; other reads are not. A line is with the system before its request is
answered, so killing the server loses none; a machine that loses its power may lose what it had not written to the disk yet.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring_ascii as _text
from pathlib import Path

from moorage.apiserver.request import Request

_ROTATE_AT = 20 * 1024 * 1024
_WRITES = frozenset({"create", "update", "patch", "delete", "deletecollection"})


@lru_cache(maxsize=1024)
def _who_text(word: str, name: str, groups: tuple[str, ...]) -> str:
    return f'"{word}":{_text(name)},"{word}Groups":[{",".join(map(_text, groups))}]'


def _who(request: Request) -> str:
    actor, as_whom = request.actor or request.user, request.user
    text = _who_text("user", actor.name, actor.groups)
    if request.actor is not None:
        text += "," + _who_text("impersonatedUser", as_whom.name, as_whom.groups)
    return f'{text},"peer":{_text(request.peer)}'


@dataclass(frozen=True, slots=True)
class Audited:
    """One request and its answer."""

    request: Request
    status: int
    seconds: float


class Audit:
    """Appends to one file, which is kept in two generations of 20 MiB."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._open()

    def _open(self) -> None:
        self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._size, self._torn = os.fstat(self._file).st_size, False

    def write(self, seen: Audited) -> None:
        """Note a change or a refusal; a disk that cannot take the line loses it, the request goes on."""
        request, target = seen.request, seen.request.target
        if target.verb not in _WRITES and seen.status not in (401, 403) and target.resource != "secrets":
            return
        line = (
            f'{{"time":"{datetime.now(UTC).isoformat(timespec="milliseconds")}",{_who(request)},'
            f'"verb":{_text(target.verb)},"path":{_text(target.path)},'
            f'"dryRun":{"true" if request.query.get("dryRun") else "false"},'
            f'"code":{seen.status},"ms":{seen.seconds * 1000:.1f}}}\n'
        )
        with suppress(OSError):
            self._append(line.encode())
            if self._size > _ROTATE_AT:
                self._path.replace(self._path.with_suffix(".log.1"))
                os.close(self._file)
                self._open()

    def _append(self, line: bytes) -> None:
        """A line of its own, also after one of which a full disk took only a part."""
        written = os.write(self._file, b"\n" + line if self._torn else line)
        self._torn = not written or written < len(line)
        self._size += written

    def close(self) -> None:
        """No more lines are written."""
        os.close(self._file)
