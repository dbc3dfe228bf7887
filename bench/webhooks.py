"""Our admission server as a program: an operator without controllers, its reflectors synced.

Enters: {kubeconfig, bind, certificates, siblings, ready}. Leaves: webhooks over TLS. `ready` appears when they are served and the
reflector holds that many backends.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sys
from pathlib import Path
from typing import Any

import uvloop

from bench.children import told
from moorage.keystone import ADMISSIONS
from moorage.keystone.backend.types import KIND
from moorage.kube.client import Client
from moorage.kube.config import load_kubeconfig
from moorage.runtime import logs
from moorage.runtime.admission_server import Files
from moorage.runtime.operator import Operator, Options, WebhookServing


async def _run(spec: dict[str, Any]) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    async with Client(load_kubeconfig(spec["kubeconfig"])) as client:
        webhooks = WebhookServing(spec["bind"], Files(Path(spec["certificates"])))
        operator = Operator((), client, Options(admissions=ADMISSIONS, webhooks=webhooks))
        running = asyncio.create_task(operator.run(stop))
        await operator.working.wait()
        while operator._webhooks_ready() or len(operator.cache.list(KIND.resource)) < spec["siblings"]:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        told(Path(spec["ready"]), {})
        await running


if __name__ == "__main__":
    logs.configure()
    gc.set_threshold(20_000)  # as the command `moorage` does
    uvloop.run(_run(json.loads(sys.argv[1])))
