"""64 writers at the store's own door, without HTTP and TLS. A program.

Enters: {folder, sync_ms, writers, seconds}. Leaves: JSON {done, commits, per_sync}.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.serve import slow_sync
from moorage.apiserver.hub import Hub


async def _run(spec: dict[str, Any]) -> dict[str, Any]:
    slow_sync(spec["sync_ms"])
    hub = Hub(Path(spec["folder"]) / "store.db")
    hub.open()
    until, done = time.perf_counter() + spec["seconds"], 0

    async def write(writer: int) -> None:
        nonlocal done
        number = 0
        while time.perf_counter() < until:
            number += 1
            obj = {"metadata": {"name": f"c-{writer}-{number}", "namespace": "bench"}, "data": {"payload": "x" * 1024}}
            await hub.write("configmaps", f"bench/c-{writer}-{number}", obj, 0)
            done += 1

    await asyncio.gather(*(write(writer) for writer in range(spec["writers"])))
    commits = hub.store.commits
    hub.close()
    return {"done": done, "commits": commits, "per_sync": done / commits}


if __name__ == "__main__":
    print(json.dumps(uvloop.run(_run(json.loads(sys.argv[1])))))
