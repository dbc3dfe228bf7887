"""Processes of pods that nobody wants any more: ended at the next start of the node.

Enters: a pod's folder that an earlier node left. Leaves: no process of that pod. It must not delete the folder.
"""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

from moorage.node.pods.container import adopt

_GRACE = 10.0
"""Seconds; the pod is gone from the API server, so its own grace is not known any more."""


async def end_orphans(folder: Path) -> None:
    """Ends every run of the pod that still lives."""
    await asyncio.gather(*map(_end, _runs(folder)))


def _runs(folder: Path) -> list[Path]:
    return [item for item in folder.glob("containers/*/[0-9]*") if (item / "spec.json").exists()]


async def _end(folder: Path) -> None:
    run = await adopt(folder)
    run.signal(signal.SIGTERM)
    try:
        async with asyncio.timeout(_GRACE):
            await run.ended.wait()
    except TimeoutError:
        run.signal(signal.SIGKILL)
        await run.ended.wait()
