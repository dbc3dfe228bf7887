"""`moorage ARGS` as a person types it, without reading moorage anew for each call: a process that has read it forks, and the child becomes the command.

Enters: words, standard input, a folder, an environment. Leaves: exit code and what was printed. It must not be used for what is tested of a start
itself (tests/cli/test_startup.py) nor for commands that go on (`up`, `run`).
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any, NoReturn


def typed(
    words: Sequence[object], folder: Path, *, given: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `moorage` with these words."""
    command = ["moorage", *map(str, words)]
    with TemporaryDirectory(prefix="typed-") as name:
        files = [Path(name) / kind for kind in ("in", "out", "err")]
        files[0].write_text(given)
        asked = {"argv": command, "folder": str(folder), "env": dict(env or os.environ), "files": [*map(str, files)]}
        code = _ask(json.dumps(asked))
        return subprocess.CompletedProcess(command, code, files[1].read_text(), files[2].read_text())


def _ask(line: str) -> int:
    child = _child()
    assert child.stdin
    assert child.stdout
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return int(child.stdout.readline())


@cache
def _child() -> subprocess.Popen[str]:
    """The process that forks; it ends with ours."""
    started = subprocess.Popen(
        [sys.executable, "-P", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    atexit.register(_end, started)
    return started


def _end(child: subprocess.Popen[str]) -> None:
    child.communicate()


def _serve() -> None:
    import moorage
    from moorage.cli import main

    for found in walk_packages(moorage.__path__, "moorage."):
        if not found.name.endswith(".__main__"):
            import_module(found.name)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            _become(json.loads(line), main)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(asked: Any, main: Any) -> NoReturn:
    """The rest of this process is the command."""
    os.chdir(asked["folder"])
    for number, (path, flags) in enumerate(zip(asked["files"], (os.O_RDONLY, os.O_WRONLY, os.O_WRONLY), strict=True)):
        os.dup2(os.open(path, flags | os.O_CREAT, 0o600), number)
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115  they stay open
    sys.stderr = open(2, "w", closefd=False, buffering=1, errors="backslashreplace")  # noqa: SIM115
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = asked["argv"]
    code: Any = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code or 0
    except BaseException:  # noqa: BLE001  as the interpreter ends with what nobody caught
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
