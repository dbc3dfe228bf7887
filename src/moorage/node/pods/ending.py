"""How containers end: preStop, then the stop signal, then, when the grace is over, SIGKILL.

Enters: a pod's worker. Leaves: no process. It must not decide that a pod ends.
Source: Kubernetes documentation, "Termination of Pods", "Sidecar containers".
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from moorage.core.meta import JsonObject
from moorage.node.pods.asking import Asker, named_ports
from moorage.node.pods.status import is_sidecar

if TYPE_CHECKING:
    from moorage.node.pods.record import Record
    from moorage.node.pods.worker import Worker


LAST_WORD: Final = 1.0
"""Seconds between the end of a hook and that of its container within which the one is the other's doing."""
DRAINED: Final = "POD_DRAINED"
"""Variable of a hook that need not wait until nobody sends the pod anything any more."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """When a pod's grace is over. A later deletion may shorten it: then it is over sooner, hooks included."""

    worker: Worker
    begun: float

    @classmethod
    def of(cls, worker: Worker) -> Deadline:
        """The deadline of an end that begins now."""
        return cls(worker, asyncio.get_running_loop().time())

    @property
    def left(self) -> float:
        """Seconds until SIGKILL."""
        return max(self.begun + self.worker.grace - asyncio.get_running_loop().time(), 0.0)

    async def over(self) -> None:
        """Returns when the grace is over."""
        while (left := self.left) > 0:
            heard = self.worker.heard
            try:
                async with asyncio.timeout(left):
                    await heard.wait()
            except TimeoutError:
                continue


async def end_pod(worker: Worker, *, drained: bool = False) -> None:
    """Ends all containers: the plain ones together, then sidecars from the last to the first, within one grace.

    Args:
        drained: nobody sends the pod anything any more, so hooks that only wait for that are left out, and others are told (DRAINED).
    """
    deadline = Deadline.of(worker)
    plain = [record for record in worker.records.values() if not is_sidecar(record.container)]
    await asyncio.gather(*(end_container(worker, record, deadline, drained=drained) for record in plain))
    sidecars = [record for record in worker.records.values() if is_sidecar(record.container)]
    for record in reversed(sidecars):
        await end_container(worker, record, deadline, drained=drained)


async def end_container(worker: Worker, record: Record, deadline: Deadline, *, drained: bool = False) -> None:
    """Ends one container within the grace, its preStop hook included; then it is killed."""
    run = record.run
    if run is None or run.ended.is_set():
        return
    if record.prober is not None:
        record.prober.stop()
    hook = (record.container.get("lifecycle") or {}).get("preStop")
    if hook and deadline.left > 0 and not (drained and only_waits(hook)):
        said = {DRAINED: "1"} if drained else {}
        await _first_of(run.ended.wait(), _hook(worker, record, deadline, said), deadline.over())
    if deadline.left > 0:
        run.signal(_stop_signal(record.container))
        await _first_of(run.ended.wait(), deadline.over())
    if not run.ended.is_set():
        run.signal(signal.SIGKILL)
        await run.ended.wait()


async def _hook(worker: Worker, record: Record, deadline: Deadline, said: Mapping[str, str]) -> None:
    """The preStop hook; one that fails is told, and the container ends all the same. One that its container took along did not fail."""
    run = record.run
    assert run is not None
    handler = record.container["lifecycle"]["preStop"]
    asker = Asker(worker.pod_ip, named_ports(record.container), run, said)
    answer = await asker.attempt(handler, deadline.left)
    if answer.good:
        return
    with suppress(TimeoutError):  # the kernel ends a hook before the first process, whose end is told last
        async with asyncio.timeout(min(LAST_WORD, deadline.left)):
            await run.ended.wait()
    if not run.ended.is_set():
        worker.warn("FailedPreStopHook", answer.message)


def only_waits(hook: JsonObject) -> bool:
    """Whether a preStop hook does nothing but wait, as one that gives endpoints time to drain does."""
    words = (hook.get("exec") or {}).get("command") or [""]
    return "sleep" in hook or (len(words) == 2 and words[0].rpartition("/")[2] == "sleep")


async def _first_of(*works: Coroutine[object, object, object]) -> None:
    """Waits for whichever ends first; the others are cancelled."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _stop_signal(container: JsonObject) -> int:
    name = (container.get("lifecycle") or {}).get("stopSignal") or "SIGTERM"
    return int(signal.Signals[name]) if name in signal.Signals.__members__ else int(signal.SIGTERM)
