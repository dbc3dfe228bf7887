"""Reads who belongs to an instance, and which Secrets hold API keys for instances.

Enters: the world and an instance. Leaves: parts of a snapshot, from the shared cache alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject, Key, is_terminating, key_of
from moorage.kube.resources import SECRETS
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.reach import key_source
from moorage.pocketid.user.types import KIND as USER
from moorage.pocketid.usergroup.types import KIND as USER_GROUP
from moorage.runtime.room import Caches
from moorage.runtime.world import World

from .seen import Bound, Keys
from .types import KEY_FINALIZER, KIND

OBJECTS: Final = (CLIENT, USER_GROUP, API, USER)
"""Kinds that belong to an instance."""
BY_INSTANCE: Final = "pocketid-by-instance"
HELD_KEYS: Final = "pocketid-held-keys"


def instance_of(obj: JsonObject) -> Iterable[str]:
    """The instances where an object has a counterpart, for an index: that which it is bound to, and those on the way of a client that moves."""
    status = obj.get("status") or {}
    bound = [status.get("instance"), *(item["instance"] for item in status.get("moving") or ())]
    yield from dict.fromkeys(f"{item['namespace']}/{item['name']}" for item in bound if item)


def held_in(secret: JsonObject) -> Iterable[str]:
    """The namespace of a Secret that has our finalizer, for an index."""
    if KEY_FINALIZER in (secret["metadata"].get("finalizers") or ()):
        yield secret["metadata"]["namespace"]


def bound_to(world: World, key: Key) -> Bound:
    """All objects of all namespaces that are bound to the instance."""
    found = [
        (f"{kind.kind} {key_of(obj)}", is_terminating(obj))
        for kind in OBJECTS
        for obj in world.cache.list(kind.resource, index=BY_INSTANCE, value=str(key))
    ]
    leaving = tuple(sorted(name for name, leaves in found if leaves))
    return Bound(leaving, tuple(sorted(name for name, leaves in found if not leaves)))


def keys_for(world: World, instance: JsonObject) -> Keys:
    """The Secret with the API key, when a person brings it, and those that are held for nobody."""
    key = key_of(instance)
    others = {
        key_source(item)[0]
        for item in world.cache.list(KIND.resource, key.namespace)
        if item["spec"].get("external") is not None and key_of(item) != key
    }
    own = key_source(instance)[0] if instance["spec"].get("external") is not None else None
    held = world.cache.list(SECRETS, index=HELD_KEYS, value=key.namespace)
    spare = tuple(item for item in held if key_of(item) != own and key_of(item) not in others)
    return Keys(world.cache.get(SECRETS, own) if own is not None else None, own in others, spare)


def has_left(old: JsonObject | None, new: JsonObject | None) -> bool:
    """Whether an object belongs to its instance no more."""
    return new is None or (old is not None and [*instance_of(old)] != [*instance_of(new)])


def waits_for_the_last(obj: JsonObject, caches: Caches) -> Iterable[Key]:
    """The instance of an object that left, once nothing is left that its deletion waits for."""
    for name in instance_of(obj):
        key = Key(*name.split("/", 1))
        instance = caches.get(KIND.resource, key)
        if instance is None or not is_terminating(instance):
            continue
        if not any(caches.list(kind.resource, index=BY_INSTANCE, value=name) for kind in OBJECTS):
            yield key
