"""Programs of the bench in processes of their own, stopped by their own pids.

Enters: a module of this package and a specification as JSON. Leaves: a running process, or the JSON that it printed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.real.process import Command, Process

ROOT = Path(__file__).parents[1]
ENVIRONMENT = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}


def argv(module: str, spec: Mapping[str, Any]) -> list[str]:
    """Command line of a program of this package."""
    return [sys.executable, "-m", f"bench.{module}", json.dumps(spec)]


@contextmanager
def serving(
    module: str, spec: Mapping[str, Any], folder: Path, *, ready: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """Run a program until the block ends; it is ready when it has written `ready`."""
    ready.unlink(missing_ok=True)
    process = Command(module, argv(module, spec), folder, ENVIRONMENT | dict(environment or {})).start()
    try:
        process.wait_until(ready.exists)
        yield process
    finally:
        process.stop()


def ask(module: str, spec: Mapping[str, Any]) -> Any:
    """Run a program to its end; what it printed."""
    done = subprocess.run(argv(module, spec), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"bench.{module} ended with {done.returncode}\n{done.stderr[-3000:]}")
    return json.loads(done.stdout)


def begin(module: str, spec: Mapping[str, Any]) -> subprocess.Popen[str]:
    """Start a program whose JSON is read later by `outcome`."""
    return subprocess.Popen(
        argv(module, spec), env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def outcome(child: subprocess.Popen[str]) -> Any:
    """What a program of `begin` printed at its end."""
    text, _ = child.communicate()
    return json.loads(text)


def told(path: Path, value: Any) -> None:
    """Write a file that is either absent or whole."""
    half = path.with_suffix(".half")
    half.write_text(json.dumps(value))
    half.rename(path)
