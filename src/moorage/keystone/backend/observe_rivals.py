"""Reads which sibling comes first to what this backend lays claim to: a domain, an issuer, a name; writes nothing.

Enters: the world, a backend, what is mounted of it. Leaves: the siblings that are served in its place, in a few words each. From the shared
cache; it asks no server. Admission refuses such backends, so there are none unless it was passed by. Source: spec/keystone.md 2.4, 4.5; B28.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.core.meta import JsonObject
from moorage.runtime.world import World
from moorage.schema.fielderror import FieldError

from . import siblings
from .aside import BY_KEYSTONE
from .precedence import precedence
from .seen import Mount, Rival
from .types import KIND, KeystoneIdentityBackend

BY_DOMAIN: Final = "backend-by-domain"
"""Index of the backends of a Keystone that want the same domain, by namespace, Keystone and domain in small letters."""


def domain_of(obj: JsonObject) -> Iterator[str]:
    """The value under which BY_DOMAIN finds a backend."""
    spec = obj["spec"]
    yield f"{obj['metadata'].get('namespace', '')}/{spec['keystoneRef']['name']}/{spec['domain']['name'].lower()}"


def rivals_of(world: World, backend: KeystoneIdentityBackend, obj: JsonObject, mount: Mount) -> tuple[Rival, ...]:
    """Siblings that come first. A backend whose files are mounted as declared has none, one on its way out only of its domain."""
    leaving = bool(backend.metadata.deletion_timestamp)
    if mount.current if not leaving else backend.spec.type != "LDAP":
        return ()
    found: list[Rival] = []
    for other in siblings.others(obj, _candidates(world, backend, obj)):
        errors = [item for item in siblings.check(backend, [other]) if isinstance(item, FieldError)]
        if errors and precedence(KIND.parse(other)) < precedence(backend):
            why = "; ".join(f"{error.path} {error.detail}" for error in errors)
            found.append(Rival(other["metadata"]["name"], why))
    return tuple(sorted(found, key=lambda rival: rival.name))


def _candidates(world: World, backend: KeystoneIdentityBackend, obj: JsonObject) -> tuple[JsonObject, ...]:
    """LDAP backends, of which there may be thousands, share nothing but a domain."""
    if backend.spec.type == "LDAP":
        (value,) = domain_of(obj)
        return world.cache.list(KIND.resource, index=BY_DOMAIN, value=value)
    value = f"{backend.metadata.namespace}/{backend.spec.keystone_ref.name}"
    return world.cache.list(KIND.resource, index=BY_KEYSTONE, value=value)
