"""The fake Pocket-ID as a program. Enters: {port, ready}. Leaves: a served fake on loopback until it is stopped."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path
from typing import Any

import uvloop
from tests.fakes.pocketid import Fake, serving

from bench.children import told


async def _serve(spec: dict[str, Any]) -> None:
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with serving(Fake(), spec["port"]):
        told(Path(spec["ready"]), {})
        await ended.wait()


if __name__ == "__main__":
    uvloop.run(_serve(json.loads(sys.argv[1])))
