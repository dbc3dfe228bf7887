"""What `kubectl get pods` says of a pod: ready containers, one word of status, restarts.

Enters: a pod. Leaves: cells. Must not look at the clock: the time is given. Source: kubectl's reference; recorded tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from moorage.core.meta import JsonObject


@dataclass
class PodSummary:
    """A pod in the words of its table row."""

    ready: int = 0
    total: int = 0
    restarts: int = 0
    last_restart: str = ""
    reason: str = ""

    def _count(self, status: JsonObject) -> None:
        self.restarts += status.get("restartCount") or 0
        finished = ((status.get("lastState") or {}).get("terminated") or {}).get("finishedAt") or ""
        self.last_restart = max(self.last_restart, finished)


def summarize(pod: JsonObject) -> PodSummary:
    """The summary of a pod."""
    spec, status = pod.get("spec") or {}, pod.get("status") or {}
    sidecars = {item.get("name") for item in spec.get("initContainers") or () if item.get("restartPolicy") == "Always"}
    found = PodSummary(total=len(spec.get("containers") or ()) + len(sidecars))
    found.reason = status.get("reason") or status.get("phase") or ""
    if _condition(status, "PodScheduled").get("reason") == "SchedulingGated":
        found.reason = "SchedulingGated"
    waiting = _initializing(found, spec, status, sidecars)
    if not waiting or _condition(status, "Initialized").get("status") == "True":
        _running(found, status, sidecars)
    if pod["metadata"].get("deletionTimestamp"):
        if status.get("reason") == "NodeLost":
            found.reason = "Unknown"
        elif status.get("phase") not in ("Succeeded", "Failed"):
            found.reason = "Terminating"
    return found


def _condition(status: JsonObject, kind: str) -> JsonObject:
    return next((item for item in status.get("conditions") or () if item.get("type") == kind), {})


def _initializing(found: PodSummary, spec: JsonObject, status: JsonObject, sidecars: set[Any]) -> bool:
    """Whether an init container still holds the pod; then `reason` says which and how."""
    count = len(spec.get("initContainers") or ())
    for index, item in enumerate(status.get("initContainerStatuses") or ()):
        found._count(item)
        state = item.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended is not None and not ended.get("exitCode"):
            continue
        if item.get("name") in sidecars and item.get("started"):
            found.ready += bool(item.get("ready"))
            continue
        if ended is not None:
            found.reason = f"Init:{_ending(ended)}"
        elif waiting.get("reason") not in (None, "", "PodInitializing"):
            found.reason = f"Init:{waiting['reason']}"
        else:
            found.reason = f"Init:{index}/{count}"
        return True
    return False


def _running(found: PodSummary, status: JsonObject, sidecars: set[Any]) -> None:
    counted = [item for item in status.get("initContainerStatuses") or () if item.get("name") in sidecars]
    found.restarts, found.last_restart = 0, ""
    for item in counted:
        found._count(item)
    running = False
    for item in reversed(status.get("containerStatuses") or ()):
        found._count(item)
        state = item.get("state") or {}
        if (state.get("waiting") or {}).get("reason"):
            found.reason = state["waiting"]["reason"]
        elif state.get("terminated") is not None:
            found.reason = _ending(state["terminated"])
        elif item.get("ready") and state.get("running") is not None:
            running = True
            found.ready += 1
    if found.reason == "Completed" and running:
        found.reason = "Running" if _condition(status, "Ready").get("status") == "True" else "NotReady"


def _ending(ended: JsonObject) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def readiness_gates(pod: JsonObject) -> str:
    """Gates that hold, of all gates."""
    gates = [item.get("conditionType") for item in (pod.get("spec") or {}).get("readinessGates") or ()]
    if not gates:
        return "<none>"
    conditions = (pod.get("status") or {}).get("conditions") or ()
    holding = {item.get("type") for item in conditions if item.get("status") == "True"}
    return f"{sum(gate in holding for gate in gates)}/{len(gates)}"


def row_conditions(pod: JsonObject) -> Iterator[JsonObject]:
    """Conditions of the row: clients hide completed pods by them."""
    texts = {"Succeeded": "The pod has completed successfully.", "Failed": "The pod failed."}
    phase = (pod.get("status") or {}).get("phase")
    if phase in texts:
        yield {"type": "Completed", "status": "True", "reason": phase, "message": texts[phase]}
