"""The embedded API server as a program, started as `moorage up` starts it (uvloop), without controllers and node.

Enters: {data, kubeconfig, ready, sync_ms, cidr}. Leaves: a served API; `ready` then holds how long the start took. On SIGUSR1 it
writes {commits, revision} to `ready` with the suffix `.stats`. `sync_ms` makes every commit of the store so much slower, before
it is acknowledged: the store's own code is unchanged, the bench wraps the function that commits.
"""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

import uvloop

from bench.children import told
from moorage.apiserver import Server, store


def slow_sync(milliseconds: float) -> None:
    """Every commit takes so much longer, as on a disk whose sync does."""
    quick = store._store

    def commit(connection: sqlite3.Connection, batch: list[store.Record]) -> None:
        quick(connection, batch)
        time.sleep(milliseconds / 1000)

    store._store = commit


async def _serve(spec: dict[str, Any]) -> None:
    if spec.get("sync_ms"):
        slow_sync(spec["sync_ms"])
    ready, kubeconfig = Path(spec["ready"]), Path(spec["kubeconfig"])
    began, cpu = time.perf_counter(), time.process_time()
    server = Server(Path(spec["data"]), service_cidr=spec.get("cidr", "10.0.0.0/24"))
    await server.start()
    took = {"start": time.perf_counter() - began, "cpu": time.process_time() - cpu}
    server.kubeconfig(kubeconfig)
    ended, loop = asyncio.Event(), asyncio.get_running_loop()

    def stats() -> None:
        told(ready.with_suffix(".stats"), {"commits": server.hub.store.commits, "revision": server.hub.revision})

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, stats)
    told(ready, took)
    await ended.wait()
    await server.stop()


if __name__ == "__main__":
    gc.set_threshold(20_000)  # as the command `moorage` does
    uvloop.run(_serve(json.loads(sys.argv[1])))
