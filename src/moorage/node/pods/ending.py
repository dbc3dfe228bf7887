"""How containers end: preStop, then the stop signal, then, when the grace is over, SIGKILL.

Enters: a pod's worker. Leaves: no process. It must not decide that a pod ends.
Source: Kubernetes documentation, "Termination of Pods", "Sidecar containers".
"""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from moorage.core.meta import JsonObject
from moorage.node.pods.asking import Asker
from moorage.node.pods.status import is_sidecar

if TYPE_CHECKING:
    from moorage.node.pods.record import Record
    from moorage.node.pods.worker import Worker


async def end_pod(worker: Worker) -> None:
    """Ends all containers: the plain ones together, then sidecars from the last to the first, within one grace."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + worker.grace
    plain = [record for record in worker.records.values() if not is_sidecar(record.container)]
    await asyncio.gather(*(end_container(worker, record, worker.grace) for record in plain))
    sidecars = [record for record in worker.records.values() if is_sidecar(record.container)]
    for record in reversed(sidecars):
        await end_container(worker, record, max(deadline - loop.time(), 0.0))


async def end_container(worker: Worker, record: Record, grace: float) -> None:
    """Ends one container within `grace` seconds, its preStop hook included; then it is killed."""
    run = record.run
    if run is None or run.ended.is_set():
        return
    if record.prober is not None:
        record.prober.stop()
    loop = asyncio.get_running_loop()
    deadline = loop.time() + grace
    hook = (record.container.get("lifecycle") or {}).get("preStop")
    if hook and grace > 0:
        ports = {item["name"]: item["containerPort"] for item in record.container.get("ports") or () if "name" in item}
        await _first_of(run.ended, Asker(worker.pod_ip, ports, run).attempt(hook, grace))
    run.signal(_stop_signal(record.container) if grace > 0 else signal.SIGKILL)
    try:
        async with asyncio.timeout_at(deadline):
            await run.ended.wait()
    except TimeoutError:
        run.signal(signal.SIGKILL)
        await run.ended.wait()


async def _first_of(ended: asyncio.Event, hook: object) -> None:
    """Waits for the hook, or for the container's own end if that comes first."""
    assert asyncio.iscoroutine(hook)
    tasks = [asyncio.ensure_future(hook), asyncio.ensure_future(ended.wait())]
    _, late = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in late:
        task.cancel()
    await asyncio.gather(*late, return_exceptions=True)


def _stop_signal(container: JsonObject) -> int:
    name = (container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
    return int(signal.Signals[name]) if name in signal.Signals.__members__ else int(signal.SIGTERM)
