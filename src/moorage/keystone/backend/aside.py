"""Reads what is shown of a federated backend and decides nothing: metadata, our certificate, cautions about rules.

Enters: the world, a backend, its materials. Leaves: an Aside. From the shared cache; it asks no server and keeps no secret.
Source: seed 000, Status; spec/keystone.md 7 (C5); case B36.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from cryptography import x509

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import SECRETS
from moorage.runtime.world import World

from . import siblings
from .federation import METADATA_SUFFIX
from .materials import Document, Materials
from .saml import pair_secret
from .seen import Aside, Seen
from .types import KIND, KeystoneIdentityBackend

BY_KEYSTONE: Final = "backend-by-keystone"
"""Index of the backends of a Keystone, by namespace and name."""


def aside_of(world: World, seen: Seen, obj: JsonObject, materials: Materials) -> Aside:
    """What a person may want to know besides the conditions; nothing of a backend that has no federation objects."""
    backend = seen.backend
    if seen.wanted_objects is None:
        return Aside()
    return Aside(
        document=materials.document if isinstance(materials.document, Document) else None,
        sp_metadata=_sp_metadata(world, backend),
        sp_ends=_end_of(backend, materials),
        cautions=() if seen.terminating else _cautions(world, backend, obj),
    )


def _sp_metadata(world: World, backend: KeystoneIdentityBackend) -> str:
    """Known as soon as it exists, so that it can be registered before anything else works."""
    if backend.spec.type != "SAML":
        return ""
    name = f"{backend.spec.keystone_ref.name}{METADATA_SUFFIX}"
    return name if world.cache.get(SECRETS, Key(backend.metadata.namespace, name)) else ""


def _end_of(backend: KeystoneIdentityBackend, materials: Materials) -> str:
    """When our certificate ends, whether or not anything is projected yet; "" when there is none that can be read."""
    if backend.spec.saml is None:
        return ""
    data = materials.secrets.get(pair_secret(backend)) or {}
    try:
        end = x509.load_pem_x509_certificates(data.get("tls.crt", b""))[0].not_valid_after_utc
    except (ValueError, IndexError):
        return ""
    return moment(end)


def _cautions(world: World, backend: KeystoneIdentityBackend, obj: JsonObject) -> tuple[str, ...]:
    """What admission warned of about the rules, and what siblings that came later brought about."""
    value = f"{backend.metadata.namespace}/{backend.spec.keystone_ref.name}"
    attached = world.cache.list(KIND.resource, index=BY_KEYSTONE, value=value)
    found = siblings.check(backend, siblings.others(obj, attached))
    return tuple(item for item in found if isinstance(item, str) and item.startswith("spec.mappings"))


def moment(time: datetime) -> str:
    """RFC 3339, UTC, whole seconds."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
