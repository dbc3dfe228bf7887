"""Commands inside a running container: exec probes and preStop hooks.

Enters: a run and an argument vector. Leaves: exit code and output. It must not outlive its timeout.
It enters the sandbox's namespaces with nsenter(1) and gives up every privilege that entering brought.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
from collections.abc import Sequence
from dataclasses import dataclass

from moorage.node.pods.container import Run, StartError, alive

_OUTPUT_LIMIT = 10 * 1024


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended; `code` -1 means the time was up. `output`: both streams, at most 10 KiB."""

    code: int
    output: str


async def run_inside(run: Run, argv: Sequence[str], timeout: float) -> Ran:
    """Runs a command in the namespaces, environment and folder of a container.

    Raises:
        StartError: the container does not run, or nsenter is missing.
    """
    running = run.running
    if running is None or run.exit is not None or not alive(running.pid, running.ticks):
        raise StartError("the container", "does not run")
    nsenter, setpriv = shutil.which("nsenter"), shutil.which("setpriv")
    if nsenter is None or setpriv is None:
        raise StartError("nsenter and setpriv", "are not installed", "apt-get install util-linux")
    process = await asyncio.create_subprocess_exec(
        *(setpriv, "--no-new-privs", "--inh-caps=-all"),
        *(nsenter, f"--target={running.pid}", "--user", "--mount", "--pid", "--ipc", "--uts"),
        *("--preserve-credentials", f"--wdns={run.working_directory}", "--", *argv),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=dict(run.environment),
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
