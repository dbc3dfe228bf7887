"""Reads what a backend's projection is made from: Secrets, the public address, the provider's metadata.

Enters: the world and a backend. Leaves: Materials. From the shared cache and the memory of documents; it waits for no server.
"""

from __future__ import annotations

from moorage.core.meta import Key
from moorage.keystone.service.manifests import public_endpoint
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.runtime.world import World

from .materials import Materials
from .observe_mount import data_of
from .render import secret_names
from .types import KeystoneIdentityBackend


def materials_of(world: World, backend: KeystoneIdentityBackend) -> Materials:
    """All that `project` needs."""
    namespace = backend.metadata.namespace
    secrets = {name: data_of(world, namespace, name) for name in secret_names(backend)}
    return Materials(secrets, _base(world, backend))


def _base(world: World, backend: KeystoneIdentityBackend) -> str:
    """The public address without `/v3`, as federated endpoints need it; "" while the Keystone does not exist."""
    if backend.spec.type == "LDAP":
        return ""
    obj = world.cache.get(KEYSTONE.resource, Key(backend.metadata.namespace, backend.spec.keystone_ref.name))
    return "" if obj is None else public_endpoint(KEYSTONE.parse(obj)).rstrip("/").removesuffix("/v3").rstrip("/")
