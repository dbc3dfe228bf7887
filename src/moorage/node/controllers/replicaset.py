"""ReplicaSet: as many pods as declared.

Enters: a ReplicaSet and its pods. Leaves: pods made or taken away, and the status. Source: Kubernetes documentation,
"ReplicaSet"; API reference, ReplicaSetStatus.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from moorage.core.meta import JsonObject, is_terminating
from moorage.kube.errors import ApiError
from moorage.kube.resources import PODS, REPLICA_SETS
from moorage.node.api import Api
from moorage.node.controllers.loop import Controller
from moorage.node.controllers.templates import is_active, pod_from
from moorage.node.network.services import is_ready
from moorage.node.times import age, now
from moorage.runtime.room import Event

_BURST = 500


def controller(node: str) -> Controller:
    """The ReplicaSet controller of a node."""

    async def reconcile(api: Api, replica_set: JsonObject) -> float | None:
        return await _reconcile(api, replica_set, node)

    return Controller(REPLICA_SETS, reconcile, (PODS,))


async def _reconcile(api: Api, replica_set: JsonObject, node: str) -> float | None:
    pods = [pod for pod in api.owned(PODS, replica_set) if is_active(pod)]
    failure = None
    if not is_terminating(replica_set):
        missing = int(replica_set["spec"].get("replicas", 1)) - len(pods)
        try:
            pods = await _make(api, replica_set, pods, missing, node) if missing > 0 else pods
            for victim in doomed(pods, -missing):
                await api.delete(PODS, victim)
                api.tell(replica_set, Event("Normal", "SuccessfulDelete", f"Deleted pod: {victim['metadata']['name']}"))
        except ApiError as error:
            failure = error
    pods = [pod for pod in api.owned(PODS, replica_set) if is_active(pod)]
    wanted = status_of(replica_set, pods, now(), str(failure) if failure else "")
    await api.set_status(REPLICA_SETS, replica_set, wanted)
    if failure is not None:
        raise failure
    return next_availability(replica_set, pods, now())


async def _make(api: Api, replica_set: JsonObject, pods: list[JsonObject], count: int, node: str) -> list[JsonObject]:
    made = []
    for _ in range(min(count, _BURST)):
        pod = await api.create(PODS, pod_from(replica_set["spec"]["template"], replica_set, node))
        api.tell(replica_set, Event("Normal", "SuccessfulCreate", f"Created pod: {pod['metadata']['name']}"))
        made.append(pod)
    return pods + made


def doomed(pods: Sequence[JsonObject], count: int) -> list[JsonObject]:
    """The pods to take away: pending before running, unready before ready, young before old."""

    def rank(pod: JsonObject) -> tuple[bool, bool, str]:
        status = pod.get("status") or {}
        return (status.get("phase") == "Running", is_ready(pod), "")

    young_first = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), reverse=True)
    return sorted(young_first, key=rank)[: max(count, 0)]


def is_available(pod: JsonObject, seconds: int, at: datetime) -> bool:
    """Whether a pod has been ready for `seconds`."""
    if not is_ready(pod):
        return False
    return seconds == 0 or age(_ready_since(pod), at) >= seconds


def next_availability(replica_set: JsonObject, pods: Sequence[JsonObject], at: datetime) -> float | None:
    """Seconds until the next ready pod counts as available; None when none is awaited."""
    seconds = int(replica_set["spec"].get("minReadySeconds", 0))
    left = [
        seconds - age(_ready_since(pod), at) for pod in pods if is_ready(pod) and not is_available(pod, seconds, at)
    ]
    return max(min(left), 0.1) if left else None


def status_of(replica_set: JsonObject, pods: Sequence[JsonObject], at: datetime, failure: str = "") -> JsonObject:
    """The status of a ReplicaSet with these active pods."""
    labels = replica_set["spec"]["template"]["metadata"].get("labels") or {}
    seconds = int(replica_set["spec"].get("minReadySeconds", 0))
    full = [pod for pod in pods if labels.items() <= (pod["metadata"].get("labels") or {}).items()]
    status: JsonObject = {
        "replicas": len(pods),
        "fullyLabeledReplicas": len(full),
        "readyReplicas": sum(map(is_ready, pods)),
        "availableReplicas": sum(is_available(pod, seconds, at) for pod in pods),
        "observedGeneration": replica_set["metadata"].get("generation", 1),
    }
    status = {name: value for name, value in status.items() if value or name in ("replicas", "observedGeneration")}
    if failure:
        old = (replica_set.get("status") or {}).get("conditions") or []
        since = old[0]["lastTransitionTime"] if old else at.strftime("%Y-%m-%dT%H:%M:%SZ")
        reason = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": failure}
        status["conditions"] = [{**reason, "lastTransitionTime": since}]
    return status


def _ready_since(pod: JsonObject) -> str:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return next((str(item["lastTransitionTime"]) for item in conditions if item["type"] == "Ready"), "")
