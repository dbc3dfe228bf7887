"""Our operator as a program, started as `moorage run` starts it, with the rooms of one question only.

Enters: {kubeconfig, namespace, ready, rooms}: `rooms` are modules with a ROOM each. Leaves: converged objects. `ready` appears when it works.
Services have loopback addresses here, so names of Services are resolved as in one-machine mode.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import uvloop

from bench.children import told
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.runtime import logs
from moorage.runtime.operator import Operator, Options


async def _run(spec: dict[str, Any]) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with Client(load_kubeconfig(spec["kubeconfig"])) as client:
        rooms = tuple(import_module(name).ROOM for name in spec["rooms"].split())
        operator = Operator(rooms, client, Options(namespace=spec["namespace"], local=True))
        running = asyncio.create_task(operator.run(stop))
        await operator.working.wait()
        told(Path(spec["ready"]), {})
        await running


if __name__ == "__main__":
    logs.configure()
    gc.set_threshold(20_000)  # as the command `moorage` does
    uvloop.run(_run(json.loads(sys.argv[1])))
