"""Deployment: a ReplicaSet for each template, moved from old to new as the strategy says.

Enters: a Deployment and what it owns. Leaves: ReplicaSets made, sized, taken away; the status. The decisions are in
`rollout.py`, `scaling.py` and `progress.py`; here are the reads and writes.
"""

from __future__ import annotations

from moorage.core.meta import JsonObject, is_terminating
from moorage.kube.errors import AlreadyExists
from moorage.kube.resources import DEPLOYMENTS, PODS, REPLICA_SETS
from moorage.node.api import Api
from moorage.node.controllers import progress, rollout, scaling
from moorage.node.controllers.loop import Controller
from moorage.node.times import now
from moorage.runtime.room import Event


def controller() -> Controller:
    """The Deployment controller."""
    return Controller(DEPLOYMENTS, _reconcile, (REPLICA_SETS,))


async def _reconcile(api: Api, deployment: JsonObject) -> float | None:
    if is_terminating(deployment):
        return None
    sets = rollout.sort_out(deployment, api.owned(REPLICA_SETS, deployment))
    if scaling.was_scaled(deployment, sets):
        for replica_set, wanted in scaling.sizes(deployment, sets):
            await _scale(api, deployment, replica_set, wanted)
        sets = rollout.sort_out(deployment, api.owned(REPLICA_SETS, deployment))
    if sets.new is None and not deployment["spec"].get("paused"):
        await _create(api, deployment, sets)
        sets = rollout.sort_out(deployment, api.owned(REPLICA_SETS, deployment))
    if sets.new is not None:
        await _annotate(api, deployment, sets)
        if not deployment["spec"].get("paused"):
            await _resize(api, deployment, sets)
    sets = rollout.sort_out(deployment, api.owned(REPLICA_SETS, deployment))
    for surplus in rollout.superfluous(deployment, sets):
        await api.delete(REPLICA_SETS, surplus)
    await api.set_status(DEPLOYMENTS, deployment, progress.status_of(deployment, sets, now()))
    looks = (progress.time_left(deployment, now()), _poll(deployment, api, sets))
    return min((after for after in looks if after), default=None)


def _poll(deployment: JsonObject, api: Api, sets: rollout.Sets) -> float | None:
    """Recreate waits for old pods to be gone, which no ReplicaSet tells."""
    waits = (deployment["spec"].get("strategy") or {}).get("type") == "Recreate" and _old_pods(api, sets)
    return 1.0 if waits else None


def _old_pods(api: Api, sets: rollout.Sets) -> list[JsonObject]:
    return [pod for item in sets.old for pod in api.owned(PODS, item)]


async def _create(api: Api, deployment: JsonObject, sets: rollout.Sets) -> None:
    wanted = rollout.new_replica_set(deployment, sets)
    if _recreates(deployment) and _old_pods(api, sets):
        wanted["spec"]["replicas"] = 0
    try:
        made = await api.create(REPLICA_SETS, wanted)
    except AlreadyExists:
        count = int((deployment.get("status") or {}).get("collisionCount") or 0) + 1
        await api.patch(DEPLOYMENTS, deployment, {"status": {"collisionCount": count}}, "status")
        raise
    _tell_scaled(api, deployment, made, 0, rollout.size(made))


def _recreates(deployment: JsonObject) -> bool:
    return (deployment["spec"].get("strategy") or {}).get("type") == "Recreate"


async def _annotate(api: Api, deployment: JsonObject, sets: rollout.Sets) -> None:
    """The revision on both objects; no request when they are right."""
    assert sets.new is not None
    revision = rollout.next_revision(sets)
    wanted = rollout.notes(deployment, revision)
    have = sets.new["metadata"].get("annotations") or {}
    if not wanted.items() <= have.items():
        await api.patch(REPLICA_SETS, sets.new, {"metadata": {"annotations": wanted}})
    if rollout.revision_of(deployment) != revision:
        note = {rollout.REVISION: str(revision)}
        await api.patch(DEPLOYMENTS, deployment, {"metadata": {"annotations": note}})


async def _resize(api: Api, deployment: JsonObject, sets: rollout.Sets) -> None:
    """The new ReplicaSet first, then, from what that left, the old ones."""
    assert sets.new is not None
    wanted = rollout.new_size(deployment, sets, _old_pods(api, sets))
    if wanted != rollout.size(sets.new):
        await _scale(api, deployment, sets.new, wanted)
        sets = rollout.sort_out(deployment, api.owned(REPLICA_SETS, deployment))
    for replica_set, smaller in rollout.old_sizes(deployment, sets):
        await _scale(api, deployment, replica_set, smaller)


async def _scale(api: Api, deployment: JsonObject, replica_set: JsonObject, wanted: int) -> None:
    before = rollout.size(replica_set)
    notes = rollout.size_notes(deployment)
    await api.patch(REPLICA_SETS, replica_set, {"spec": {"replicas": wanted}, "metadata": {"annotations": notes}})
    _tell_scaled(api, deployment, replica_set, before, wanted)


def _tell_scaled(api: Api, deployment: JsonObject, replica_set: JsonObject, before: int, after: int) -> None:
    if before == after:
        return
    way = "up" if after > before else "down"
    text = f"Scaled {way} replica set {replica_set['metadata']['name']} from {before} to {after}"
    api.tell(deployment, Event("Normal", "ScalingReplicaSet", text))
