"""How a Deployment moves from its old ReplicaSets to the new one. Pure.

Enters: a Deployment, its ReplicaSets. Leaves: the ReplicaSet to make, and the sizes to set. It must not read a clock.
Source: Kubernetes documentation, "Deployments": rolling update, Recreate, maxSurge, maxUnavailable, revision history.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, is_terminating, owner_reference, ref_of
from moorage.node.controllers.templates import HASH_LABEL, is_active, template_hash

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MAXIMUM = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = (REVISION, DESIRED, MAXIMUM, "kubectl.kubernetes.io/last-applied-configuration")


@dataclass(frozen=True, slots=True)
class Sets:
    """A Deployment's ReplicaSets: the one of its present template, if it is there, and the others, oldest first."""

    new: JsonObject | None
    old: tuple[JsonObject, ...]

    @property
    def all(self) -> tuple[JsonObject, ...]:
        return self.old if self.new is None else (*self.old, self.new)


def size(replica_set: JsonObject) -> int:
    """Declared replicas."""
    return int(replica_set["spec"].get("replicas", 1))


def observed(replica_set: JsonObject, field: str) -> int:
    """A count of the status; 0 while there is none."""
    return int((replica_set.get("status") or {}).get(field, 0))


def desired(deployment: JsonObject) -> int:
    return int(deployment["spec"].get("replicas", 1))


def sort_out(deployment: JsonObject, replica_sets: Sequence[JsonObject]) -> Sets:
    """Finds the ReplicaSet of the present template."""
    born = sorted(replica_sets, key=lambda item: (item["metadata"]["creationTimestamp"], item["metadata"]["name"]))
    wanted = deployment["spec"]["template"]
    new = next((item for item in born if _plain(item["spec"]["template"]) == _plain(wanted)), None)
    return Sets(new, tuple(item for item in born if item is not new))


def _plain(template: JsonObject) -> JsonObject:
    """A template without the hash label."""
    meta = dict(template.get("metadata") or {})
    meta["labels"] = {key: value for key, value in (meta.get("labels") or {}).items() if key != HASH_LABEL}
    meta = {key: value for key, value in meta.items() if value not in (None, {}, [])}
    return {**template, "metadata": meta}


def revision_of(obj: JsonObject) -> int:
    """The revision annotation; 0 when there is none."""
    text = (obj["metadata"].get("annotations") or {}).get(REVISION, "0")
    return int(text) if text.isdecimal() else 0


def next_revision(sets: Sets) -> int:
    """The revision that the new ReplicaSet must carry."""
    highest = max((revision_of(item) for item in sets.old), default=0)
    mine = revision_of(sets.new) if sets.new is not None else 0
    return mine if mine > highest else highest + 1


def bounds(deployment: JsonObject) -> tuple[int, int]:
    """(maxSurge, maxUnavailable) as numbers of pods; never both 0."""
    strategy = deployment["spec"].get("strategy") or {}
    if strategy.get("type") == "Recreate":
        return 0, desired(deployment)
    rolling = strategy.get("rollingUpdate") or {}
    surge = _share(rolling.get("maxSurge", "25%"), desired(deployment), math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), desired(deployment), math.floor)
    return surge, (1 if surge == unavailable == 0 else min(unavailable, desired(deployment)))


def _share(value: int | str, total: int, rounded: object) -> int:
    if isinstance(value, int):
        return value
    exact = int(value.rstrip("%")) * total / 100
    return math.ceil(exact) if rounded is math.ceil else math.floor(exact)


def new_replica_set(deployment: JsonObject, sets: Sets) -> JsonObject:
    """The ReplicaSet to make for the present template."""
    template = copied(deployment["spec"]["template"])
    mark = template_hash(template, int((deployment.get("status") or {}).get("collisionCount") or 0))
    labels = {**(template["metadata"].get("labels") or {}), HASH_LABEL: mark}
    template["metadata"]["labels"] = labels
    selector = copied(deployment["spec"]["selector"])
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), HASH_LABEL: mark}
    meta = deployment["metadata"]
    empty = {"metadata": {}, "spec": {"replicas": 0}}
    spec: JsonObject = {"replicas": 0, "selector": selector, "template": template}
    if "minReadySeconds" in deployment["spec"]:
        spec["minReadySeconds"] = deployment["spec"]["minReadySeconds"]
    made: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"{meta['name'][:242]}-{mark}",
            "namespace": meta["namespace"],
            "labels": labels,
            "annotations": notes(deployment, next_revision(sets)),
            "ownerReferences": [owner_reference(ref_of(deployment))],
        },
        "spec": spec,
    }
    spec["replicas"] = new_size(deployment, Sets(empty, sets.old), ())
    return made


def notes(deployment: JsonObject, revision: int) -> dict[str, str]:
    """The annotations of the new ReplicaSet: the Deployment's own, the revision, the sizes kubectl shows."""
    own = deployment["metadata"].get("annotations") or {}
    kept = {key: value for key, value in own.items() if key not in _NOT_COPIED}
    return {**kept, **size_notes(deployment), REVISION: str(revision)}


def size_notes(deployment: JsonObject) -> dict[str, str]:
    """The annotations that tell for which size of the Deployment a ReplicaSet got its own."""
    surge, _ = bounds(deployment)
    return {DESIRED: str(desired(deployment)), MAXIMUM: str(desired(deployment) + surge)}


def new_size(deployment: JsonObject, sets: Sets, old_pods: Sequence[JsonObject]) -> int:
    """The size that the new ReplicaSet gets now. `old_pods`: pods of old ReplicaSets, ending ones included."""
    assert sets.new is not None
    wanted, have = desired(deployment), size(sets.new)
    if have >= wanted:
        return wanted
    if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        busy = any(size(item) for item in sets.old) or any(_occupies(pod) for pod in old_pods)
        return have if busy else wanted
    surge, _ = bounds(deployment)
    total = sum(size(item) for item in sets.all)
    return have + max(min(wanted - have, wanted + surge - total), 0)


def _occupies(pod: JsonObject) -> bool:
    return is_active(pod) or is_terminating(pod)


def old_sizes(deployment: JsonObject, sets: Sets) -> list[tuple[JsonObject, int]]:
    """The old ReplicaSets that shrink now, with their new sizes: first what is not available, then oldest first."""
    sizes = {item["metadata"]["name"]: size(item) for item in sets.old}
    if not any(sizes.values()):
        return []
    if (deployment["spec"].get("strategy") or {}).get("type") == "Recreate":
        return [(item, 0) for item in sets.old if size(item)]
    if sets.new is None:
        return []
    _, unavailable = bounds(deployment)
    least = desired(deployment) - unavailable
    unborn = size(sets.new) - observed(sets.new, "availableReplicas")
    budget = sum(size(item) for item in sets.all) - least - unborn
    budget = _shrink_unavailable(sets.old, sizes, budget)
    spare = sum(observed(item, "availableReplicas") for item in sets.all) - least
    for item in sets.old:
        name = item["metadata"]["name"]
        less = max(min(sizes[name], spare, budget), 0)
        sizes[name], spare, budget = sizes[name] - less, spare - less, budget - less
    return [
        (item, sizes[item["metadata"]["name"]]) for item in sets.old if sizes[item["metadata"]["name"]] != size(item)
    ]


def _shrink_unavailable(old: Sequence[JsonObject], sizes: dict[str, int], budget: int) -> int:
    """Takes away pods that serve nobody; the budget that is left."""
    for item in old:
        name = item["metadata"]["name"]
        idle = sizes[name] - min(observed(item, "availableReplicas"), sizes[name])
        less = max(min(idle, budget), 0)
        sizes[name], budget = sizes[name] - less, budget - less
    return budget


def superfluous(deployment: JsonObject, sets: Sets) -> list[JsonObject]:
    """Old, empty ReplicaSets beyond revisionHistoryLimit, lowest revision first."""
    limit = int(deployment["spec"].get("revisionHistoryLimit", 10))
    empty = [
        item for item in sets.old if size(item) == 0 and observed(item, "replicas") == 0 and not is_terminating(item)
    ]
    surplus = len(sets.old) - limit
    return sorted(empty, key=revision_of)[: max(surplus, 0)]
