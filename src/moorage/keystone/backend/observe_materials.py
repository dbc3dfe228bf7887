"""Reads what a backend's projection is made from: Secrets, the public address, the provider's metadata.

Enters: the world and a backend. Leaves: Materials. From the shared cache and the memory of documents; it waits for no server. Both rooms
call it, so that both render the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.core.meta import Key
from moorage.keystone.service.types import KIND as KEYSTONE
from moorage.kube.resources import DEPLOYMENTS
from moorage.runtime.world import World

from . import documents
from .federation import data_key
from .materials import Data, Document, Fault, Materials
from .observe_mount import VOLUMES, data_of, mounted_secret
from .render import VARIANTS, secret_names
from .types import KeystoneIdentityBackend


def materials_of(world: World, backend: KeystoneIdentityBackend) -> Materials:
    """All that `project` needs."""
    namespace = backend.metadata.namespace
    secrets = {name: data_of(world, namespace, name) for name in secret_names(backend)}
    if backend.spec.type == "LDAP":
        return Materials(secrets)
    return Materials(secrets, _base(world, backend), _document(world, backend, secrets))


def _base(world: World, backend: KeystoneIdentityBackend) -> str:
    """The public address without `/v3`; "" while the Keystone does not exist."""
    obj = world.cache.get(KEYSTONE.resource, Key(backend.metadata.namespace, backend.spec.keystone_ref.name))
    return "" if obj is None else KEYSTONE.parse(obj).public_base


def _document(
    world: World, backend: KeystoneIdentityBackend, secrets: Mapping[str, Data | None]
) -> Document | Fault | None:
    """A terminating backend fetches nothing any more."""
    if backend.metadata.deletion_timestamp:
        documents.forget(world, backend.key)
        return None
    return documents.look(world, backend, secrets, _last_good(world, backend))


def _last_good(world: World, backend: KeystoneIdentityBackend) -> bytes | None:
    """The document that the pods have mounted, for the time until the first answer after a restart."""
    namespace = backend.metadata.namespace
    deployment = world.cache.get(DEPLOYMENTS, Key(namespace, backend.spec.keystone_ref.name))
    name = mounted_secret(deployment, VOLUMES[backend.spec.type]) if deployment else ""
    key = data_key(backend, VARIANTS[backend.spec.type].document)
    return (data_of(world, namespace, name, (key,)) or {}).get(key) if name else None
