"""What all children of a deployed instance share: names, labels, owner, and how one of ours is told from a stranger's.

Enters: a declared instance, wire objects. Leaves: names and wire objects. Pure.
Volume and encryption key may outlive the instance (`deletionPolicy`), so no owner controls them: labels say whose they are.
"""

from __future__ import annotations

from typing import Final

from moorage.core.meta import JsonObject, Ref, controller_of, owner_reference, owners_of
from moorage.pocketid.references import MANAGED_BY, OPERATOR

from .types import KIND, PocketIDInstance

ENCRYPTION_KEY: Final = "-held-encryption-key"
SETTINGS: Final = "-settings"
DATA: Final = "-data"
"""What follows the name of the instance in the names of its children."""


def name_of(instance: PocketIDInstance, suffix: str = "") -> str:
    """The name of a child."""
    return instance.metadata.name + suffix


def selector(name: str) -> dict[str, str]:
    """Labels by which the pods of the instance `name` are found."""
    return {"app.kubernetes.io/name": "pocket-id", "app.kubernetes.io/instance": name}


def labels(instance: PocketIDInstance) -> dict[str, str]:
    """Labels of every child; nobody's `spec.labels` can take ours away."""
    return {**(instance.spec.labels or {}), **selector(instance.metadata.name), MANAGED_BY: OPERATOR}


def child(instance: PocketIDInstance, api_version: str, kind: str, suffix: str = "") -> JsonObject:
    """A child that goes with the instance."""
    return _child(instance, api_version, kind, suffix, [_owner(instance)])


def kept_child(instance: PocketIDInstance, api_version: str, kind: str, suffix: str) -> JsonObject:
    """A child that holds what cannot be made anew: it goes with the instance only where `deletionPolicy` says so."""
    follows = instance.spec.deletion_policy == "Delete"
    return _child(instance, api_version, kind, suffix, [{**_owner(instance), "controller": False}] if follows else [])


def _owner(instance: PocketIDInstance) -> JsonObject:
    return owner_reference(Ref(KIND.resource.api_version, KIND.kind, instance.key, instance.metadata.uid))


def _child(
    instance: PocketIDInstance, api_version: str, kind: str, suffix: str, owners: list[JsonObject]
) -> JsonObject:
    meta: JsonObject = {
        "name": name_of(instance, suffix),
        "namespace": instance.metadata.namespace,
        "labels": labels(instance),
    }
    if instance.spec.annotations:
        meta["annotations"] = dict(instance.spec.annotations)
    if owners:
        meta["ownerReferences"] = owners
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


def is_kept_by(live: JsonObject, instance: PocketIDInstance) -> bool:
    """Whether an object that no owner controls is the one that an instance of this name keeps."""
    found = live["metadata"].get("labels") or {}
    ours = {**selector(instance.metadata.name), MANAGED_BY: OPERATOR}
    return controller_of(live) is None and all(found.get(name) == value for name, value in ours.items())


def follows_another(live: JsonObject, instance: PocketIDInstance) -> bool:
    """Whether an object goes with an instance of this name that was there before, or is on its way out."""
    former = [item for item in owners_of(live) if item.get("kind") == KIND.kind]
    gone = any(item.get("uid") != instance.metadata.uid for item in former)
    return gone or bool(live["metadata"].get("deletionTimestamp"))
