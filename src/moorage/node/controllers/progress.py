"""The status of a Deployment: counts, Available, Progressing. Pure; the time is given.

Enters: a Deployment, its ReplicaSets, the time. Leaves: the status, and when the progress deadline will be over.
Source: Kubernetes documentation, "Deployment status"; what `kubectl rollout status` reads.
"""

from __future__ import annotations

from datetime import datetime

from moorage.core.meta import JsonObject
from moorage.node.controllers.rollout import Sets, bounds, desired, observed
from moorage.node.times import age, stamp

_DONE = "NewReplicaSetAvailable"
_LATE = "ProgressDeadlineExceeded"


def status_of(deployment: JsonObject, sets: Sets, at: datetime) -> JsonObject:
    """The status to store."""
    before: JsonObject = deployment.get("status") or {}
    total = sum(observed(item, "replicas") for item in sets.all)
    available = sum(observed(item, "availableReplicas") for item in sets.all)
    counts = {
        "replicas": total,
        "updatedReplicas": observed(sets.new, "replicas") if sets.new is not None else 0,
        "readyReplicas": sum(observed(item, "readyReplicas") for item in sets.all),
        "availableReplicas": available,
        "unavailableReplicas": max(desired(deployment) - available, total - available, 0),
    }
    status: JsonObject = {name: value for name, value in counts.items() if value}
    status["observedGeneration"] = deployment["metadata"].get("generation", 1)
    if before.get("collisionCount"):
        status["collisionCount"] = before["collisionCount"]
    status["conditions"] = _conditions(deployment, sets, counts, at)
    return status


def time_left(deployment: JsonObject, at: datetime) -> float | None:
    """Seconds until the progress deadline, from the stored condition; None when nothing is awaited."""
    limit = deployment["spec"].get("progressDeadlineSeconds", 600)
    item = _find(deployment, "Progressing")
    if item is None or item["reason"] in (_DONE, _LATE) or deployment["spec"].get("paused"):
        return None
    return max(float(limit - age(str(item["lastUpdateTime"]), at)), 0.1)


def _conditions(deployment: JsonObject, sets: Sets, counts: dict[str, int], at: datetime) -> list[JsonObject]:
    found = [_available(deployment, counts), _progressing(deployment, sets, counts, at)]
    failures = [
        {"type": "ReplicaFailure", "status": "True", "reason": item["reason"], "message": item["message"]}
        for replica_set in sets.all
        for item in (replica_set.get("status") or {}).get("conditions") or ()
        if item["type"] == "ReplicaFailure" and item["status"] == "True"
    ]
    return [_dated(deployment, item, at) for item in [*found, *failures[:1]] if item is not None]


def _available(deployment: JsonObject, counts: dict[str, int]) -> JsonObject:
    _, unavailable = bounds(deployment)
    enough = counts["availableReplicas"] >= desired(deployment) - unavailable
    word = "has minimum availability." if enough else "does not have minimum availability."
    reason = "MinimumReplicasAvailable" if enough else "MinimumReplicasUnavailable"
    state = "True" if enough else "False"
    return {"type": "Available", "status": state, "reason": reason, "message": f"Deployment {word}"}


def _progressing(deployment: JsonObject, sets: Sets, counts: dict[str, int], at: datetime) -> JsonObject | None:
    old = _find(deployment, "Progressing")
    if deployment["spec"].get("paused"):
        return {
            "type": "Progressing",
            "status": "Unknown",
            "reason": "DeploymentPaused",
            "message": "Deployment is paused",
        }
    name = sets.new["metadata"]["name"] if sets.new is not None else ""
    if is_complete(deployment, sets, counts):
        return _progress("True", _DONE, f'ReplicaSet "{name}" has successfully progressed.')
    if old is None or _template_changed(deployment):
        return _progress("True", "NewReplicaSetCreated", f'Created new replica set "{name}"')
    if _moved(deployment, counts):
        return _progress("True", "ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.', fresh=True)
    limit = float(deployment["spec"].get("progressDeadlineSeconds", 600))
    waiting = old["reason"] not in (_DONE, _LATE)
    if waiting and age(str(old["lastUpdateTime"]), at) >= limit:
        return _progress("False", _LATE, f'ReplicaSet "{name}" has timed out progressing.')
    return {key: old[key] for key in ("type", "status", "reason", "message")}


def is_complete(deployment: JsonObject, sets: Sets, counts: dict[str, int]) -> bool:
    """Whether every pod is new and available."""
    wanted = desired(deployment)
    same = all(counts[name] == wanted for name in ("updatedReplicas", "replicas", "availableReplicas"))
    return sets.new is not None and same


def _template_changed(deployment: JsonObject) -> bool:
    """Whether the spec changed since the stored status; sizes alone count, too, as they restart the clock."""
    seen = (deployment.get("status") or {}).get("observedGeneration", 0)
    return bool(seen < deployment["metadata"].get("generation", 1))


def _moved(deployment: JsonObject, counts: dict[str, int]) -> bool:
    """Whether the rollout came nearer to its end since the stored status."""
    before: JsonObject = deployment.get("status") or {}
    old = before.get("replicas", 0) - before.get("updatedReplicas", 0)
    return bool(
        counts["updatedReplicas"] > before.get("updatedReplicas", 0)
        or counts["replicas"] - counts["updatedReplicas"] < old
        or counts["readyReplicas"] > before.get("readyReplicas", 0)
        or counts["availableReplicas"] > before.get("availableReplicas", 0)
    )


def _progress(state: str, reason: str, message: str, *, fresh: bool = False) -> JsonObject:
    return {"type": "Progressing", "status": state, "reason": reason, "message": message, "fresh": fresh}


def _dated(deployment: JsonObject, item: JsonObject, at: datetime) -> JsonObject:
    """`lastTransitionTime` moves with the status, `lastUpdateTime` with any change, and with each step of a rollout."""
    item = dict(item)
    fresh = item.pop("fresh", False)
    old = _find(deployment, item["type"])
    if old is None:
        return {**item, "lastUpdateTime": stamp(at), "lastTransitionTime": stamp(at)}
    same = all(old.get(key) == item[key] for key in ("status", "reason", "message"))
    updated = old.get("lastUpdateTime") if same and not fresh else stamp(at)
    moved = old.get("lastTransitionTime") if old.get("status") == item["status"] else stamp(at)
    return {**item, "lastUpdateTime": updated, "lastTransitionTime": moved}


def _find(deployment: JsonObject, type_: str) -> JsonObject | None:
    conditions = (deployment.get("status") or {}).get("conditions") or ()
    found: JsonObject | None = next((item for item in conditions if item["type"] == type_), None)
    return found
