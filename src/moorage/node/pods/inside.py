"""Commands inside a running container: exec probes and preStop hooks.

Enters: a run and an argument vector. Leaves: exit code and output. It must not outlive its timeout.
A process of its own enters the sandbox's namespaces (entering.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from moorage.node.pods import entering
from moorage.node.pods.container import Run, alive
from moorage.node.pods.launch import StartError

_ENTERING = Path(entering.__file__)
_OUTPUT_LIMIT = 10 * 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended; `code` -1 means the time was up. `output`: both streams, at most 10 KiB."""

    code: int
    output: str


async def run_inside(
    run: Run, argv: Sequence[str], timeout: float, more: Mapping[str, str] = MappingProxyType({})
) -> Ran:
    """Runs a command in the namespaces, environment and folder of a container; `more` are further variables.

    Raises:
        StartError: the container does not run.
    """
    running = run.running
    if running is None or run.exit is not None or not alive(running.pid, running.ticks):
        raise StartError("the container", "does not run")
    uid, gid = run.identity
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", str(_ENTERING)),
        *map(str, (running.pid, running.ticks, uid, gid, run.working_directory)),
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**run.environment, **more},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(timeout):
            out, _ = await process.communicate()
    except TimeoutError:
        return Ran(-1, f"command {argv[0]!r} timed out after {timeout:g}s")
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return Ran(process.returncode or 0, out[:_OUTPUT_LIMIT].decode(errors="replace"))
