"""What a change of `replicas` does to the ReplicaSets of a Deployment, in the middle of a rollout, too. Pure.

Enters: a Deployment, its ReplicaSets with the size that each was made for in its annotations. Leaves: new sizes. The rollout itself is
`rollout.py`. Source: Kubernetes documentation, "Deployments": proportional scaling.
"""

from __future__ import annotations

from moorage.core.meta import JsonObject
from moorage.node.controllers.rollout import DESIRED, MAXIMUM, Sets, bounds, desired, observed, size


def was_scaled(deployment: JsonObject, sets: Sets) -> bool:
    """Whether `replicas` is another than when the ReplicaSets got their sizes."""
    return any(_noted(item, DESIRED) not in (None, desired(deployment)) for item in _active(sets))


def sizes(deployment: JsonObject, sets: Sets) -> list[tuple[JsonObject, int]]:
    """The ReplicaSets that have pods, with their new sizes: each grows or shrinks by its share, the largest takes what rounding leaves.

    Empty where nothing is shared out: a Recreate rollout under way.
    """
    active = _active(sets)
    if len(active) == 1:
        return [(active[0], desired(deployment))]
    if _saturated(deployment, sets.new):
        return [(item, 0) for item in active if item is not sets.new]
    if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        return []
    return _shared(deployment, active)


def _shared(deployment: JsonObject, active: list[JsonObject]) -> list[tuple[JsonObject, int]]:
    wanted = desired(deployment)
    allowed = wanted + bounds(deployment)[0] if wanted else 0
    left = allowed - sum(size(item) for item in active)
    newest_first = active[::-1] if left > 0 else active
    ranked = sorted(newest_first, key=size, reverse=True)
    found = []
    for item in ranked:
        share = _share(deployment, item, allowed)
        step = max(min(share, left), 0) if left > 0 else min(max(share, left), 0)
        found.append((item, size(item) + step))
        left -= step
    largest, its_size = found[0]
    return [(largest, max(its_size + left, 0)), *found[1:]]


def _share(deployment: JsonObject, replica_set: JsonObject, allowed: int) -> int:
    """By how many pods a ReplicaSet changes, so that it keeps its part of all."""
    before = _noted(replica_set, MAXIMUM) or int((deployment.get("status") or {}).get("replicas") or 0)
    if not allowed:
        return -size(replica_set)
    return int(size(replica_set) * allowed / before + 0.5) - size(replica_set) if before else 0


def _active(sets: Sets) -> list[JsonObject]:
    return [item for item in sets.all if size(item)]


def _saturated(deployment: JsonObject, new: JsonObject | None) -> bool:
    """Whether the new ReplicaSet has all pods that are wanted, and they serve."""
    if new is None or _noted(new, DESIRED) != desired(deployment):
        return False
    return size(new) == observed(new, "availableReplicas") == desired(deployment)


def _noted(replica_set: JsonObject, name: str) -> int | None:
    text = (replica_set["metadata"].get("annotations") or {}).get(name, "")
    return int(text) if text.isdecimal() else None
