"""Reads what there is of a deployed server: its children, the Secrets that the declaration names, what its pod complains about.

Enters: the world and a declared instance. Leaves: a snapshot. Kinds that a server may lack (StatefulSets on one machine, HTTPRoutes without
the Gateway API) are asked for by name, not watched, and only where an instance wants one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.kube.errors import NotFound
from moorage.kube.resources import DEPLOYMENTS, PODS, PVCS, SECRETS, SERVICES, STATEFUL_SETS
from moorage.pocketid.reach import data_text
from moorage.pocketid.rest_errors import clean
from moorage.pocketid.settings import settings
from moorage.runtime.projection import rolled_out
from moorage.runtime.troubles import SERVING, troubles
from moorage.runtime.world import World

from .children import DATA, ENCRYPTION_KEY, SETTINGS, name_of, selector
from .environment import beside, references
from .render import route_name
from .seen import Deployed
from .types import KEY_SUFFIX, PocketIDInstance

HTTP_ROUTES: Final = ResourceType("gateway.networking.k8s.io", "v1", "HTTPRoute", "httproutes")
KINDS: Final = {rt.kind: rt for rt in (SECRETS, PVCS, SERVICES, DEPLOYMENTS, STATEFUL_SETS, HTTP_ROUTES)}
"""The kinds of children."""
WATCHED: Final = (SECRETS, PVCS, SERVICES, DEPLOYMENTS)

_TELLING: Final = 4
"""Characters below which a value is no secret, and blotting it out would make any sentence unreadable."""


async def children(world: World, instance: PocketIDInstance) -> Deployed:
    """All that is there now."""
    namespace, live = instance.metadata.namespace, dict[tuple[str, str], JsonObject]()
    for rt, name in _names(instance):
        found = await _found(world, rt, Key(namespace, name))
        if found is not None:
            live[rt.kind, name] = {**found, "apiVersion": rt.api_version, "kind": rt.kind}
    read = {name: world.cache.get(SECRETS, Key(namespace, name)) for name in brought(instance)}
    sources = {name: secret for name, secret in read.items() if secret is not None}
    workload = live.get((instance.spec.deployment_type, instance.metadata.name))
    struggles = workload is not None and not rolled_out(workload)
    image = instance.spec.image or settings().image
    return Deployed(image, live, sources, await _trouble(world, instance) if struggles else "")


def _names(instance: PocketIDInstance) -> Iterator[tuple[ResourceType, str]]:
    """Everything that carries the name of a child."""
    yield from ((SECRETS, name) for name in made(instance))
    yield PVCS, claim(instance)
    yield SERVICES, instance.metadata.name
    yield KINDS[instance.spec.deployment_type], instance.metadata.name
    wanted = {route_name(instance), instance.status.route_name} - {None}
    yield from ((HTTP_ROUTES, name) for name in sorted(map(str, wanted)))


def made(instance: PocketIDInstance) -> tuple[str, ...]:
    """Names of our Secrets."""
    return tuple(name_of(instance, suffix) for suffix in (ENCRYPTION_KEY, KEY_SUFFIX, SETTINGS))


def claim(instance: PocketIDInstance) -> str:
    """The name of the volume, ours or one that a person brings."""
    return instance.spec.volume.existing_claim or name_of(instance, DATA)


def brought(instance: PocketIDInstance) -> set[str]:
    """Names of the Secrets that a person brings."""
    found = {item.secret for item in references(instance.spec)} | {name for name, _ in beside(instance.spec)}
    key = instance.spec.encryption_key
    return found | {key.value_from.secret_key_ref.name} if key is not None and key.value_from is not None else found


async def _found(world: World, rt: ResourceType, key: Key) -> JsonObject | None:
    if rt in WATCHED:
        return world.cache.get(rt, key)
    try:
        return await world.client.get(rt, key)
    except NotFound:
        return None


async def _trouble(world: World, instance: PocketIDInstance) -> str:
    """What a pod says that does not work. Its last words may be anything, so the keys of the instance are blotted out."""
    chosen = ",".join(f"{name}={value}" for name, value in selector(instance.metadata.name).items())
    found = await world.client.list(PODS, instance.metadata.namespace, labels=chosen)
    return troubles(found.items, lambda text: clean(text, _hidden(world, instance))).get(SERVING, "")


def _hidden(world: World, instance: PocketIDInstance) -> Iterator[str]:
    for name in {*made(instance), *brought(instance)}:
        secret = world.cache.get(SECRETS, Key(instance.metadata.namespace, name))
        if secret is not None:
            found = [data_text(secret, key) for key in secret.get("data") or ()]
            yield from (text for text in found if len(text) >= _TELLING)
