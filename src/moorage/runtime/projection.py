"""Content-hashed bundles in the cluster: put there, kept for a while; and when a roll of the pods that use them has ended.

Enters: immutable manifests of `render.bundle`. Leaves: objects; deletions of old generations. An object of the same name that
somebody else controls is an error, never seized. Source: spec/keystone.md 1.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from moorage.core.meta import JsonObject, Ref, ResourceType, controlled_by, controller_of, key_of
from moorage.kube.errors import AlreadyExists
from moorage.kube.resources import CONFIG_MAPS, SECRETS

from .ownership import ForeignObject

if TYPE_CHECKING:
    from .world import World

KEEP = 3
"""Old generations that are kept for a roll back; 0 when nothing of the type is projected any more."""

_TYPES = {"Secret": SECRETS, "ConfigMap": CONFIG_MAPS}


async def ensure_bundle(world: World, manifest: JsonObject) -> JsonObject:
    """The live object of an immutable manifest, created when absent; its name says its content.

    Raises:
        ForeignObject: the name is taken by an object that our owner does not control.
    """
    rt, key = _TYPES[manifest["kind"]], key_of(manifest)
    live = world.cache.get(rt, key) if world.cache.holds(rt) else None
    if live is None:
        try:
            return await world.create(rt, manifest)
        except AlreadyExists:
            live = await world.client.get(rt, key)
            world.cache.note(rt, live)
    owner = controller_of(manifest)
    if owner is None or not controlled_by(live, owner.uid):
        raise ForeignObject(rt, key, controller_of(live))
    return live


async def prune(
    world: World,
    rt: ResourceType,
    base: str,
    current: str | None,
    *,
    owner: Ref,
    keep: int = KEEP,
    confidential: tuple[str, ...] = (),
) -> tuple[str, ...]:
    """Delete old generations of a bundle, newest kept; returns the names deleted.

    Only objects that `owner` controls, whose name is `<base>-<hash>`, and that are not `current`, count. Call it after
    the Deployment reported that all its pods use `current`.

    Args:
        confidential: ends of data keys. A generation that holds something else there than `current` is not worth a roll back: it goes.
    """
    found = [obj for obj in world.cache.list(rt, owner.key.namespace) if _is_generation(obj, base, owner)]
    present = next((obj.get("data") or {} for obj in found if obj["metadata"]["name"] == current), {})
    old = [obj for obj in found if obj["metadata"]["name"] != current]
    old.sort(key=lambda obj: (obj["metadata"].get("creationTimestamp", ""), obj["metadata"]["name"]), reverse=True)
    kept = [obj for obj in old if _agrees(obj.get("data") or {}, present, confidential)][:keep]
    gone = [obj for obj in old if obj not in kept]
    for obj in gone:
        await world.delete(rt, obj)
    return tuple(obj["metadata"]["name"] for obj in gone)


def _agrees(data: Mapping[str, str], present: Mapping[str, str], confidential: tuple[str, ...]) -> bool:
    """Whether everything confidential of a generation is still in use."""
    return all(present.get(key) == data[key] for key in data if key.endswith(confidential)) if confidential else True


def _is_generation(obj: JsonObject, base: str, owner: Ref) -> bool:
    head, _, tail = obj["metadata"]["name"].rpartition("-")
    is_hash = len(tail) == 8 and all(char in "0123456789abcdef" for char in tail)
    return head == base and is_hash and controlled_by(obj, owner.uid)


def rolled_out(deployment: JsonObject | None) -> bool:
    """Whether every pod is of the newest template and ready, and no other pod is left."""
    return _all_are(deployment, "replicas", "updatedReplicas", "readyReplicas")


def replaced(deployment: JsonObject | None) -> bool:
    """Whether every pod is of the newest template, ready or not, and no other pod is left."""
    return _all_are(deployment, "replicas", "updatedReplicas")


def _all_are(deployment: JsonObject | None, *counted: str) -> bool:
    if deployment is None:
        return False
    status: Mapping[str, Any] = deployment.get("status") or {}
    if int(status.get("observedGeneration", 0)) < int(deployment["metadata"].get("generation", 0)):
        return False
    desired = int((deployment.get("spec") or {}).get("replicas", 1))
    return all(int(status.get(name, 0)) == desired for name in counted)
