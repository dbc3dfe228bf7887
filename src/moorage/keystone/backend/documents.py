"""The metadata document of a backend's provider: declared, from a Secret, or fetched and kept fresh in the background.

Enters: a backend and the data of its Secrets. Leaves: a Document, or the Fault that says why there is none yet; None for LDAP. `look`
never waits: what has to be fetched is fetched beside the passes, and both rooms are woken when that changes something, and again when
the next fetch is due. It writes nothing. Both rooms of a process share one memory, so they see the same bytes.

A failed fetch, or an answer that is refused, keeps the last good document and marks it stale; after a restart the bytes that the pods
have mounted stand in until the first answer. Metadata whose validUntil has passed is not used any more. What the provider's validUntil
was is known to the process that fetched it: it is no part of the mounted bytes, which would otherwise change with every download.
Source: spec/keystone.md 4.8; decisions, Keystone 16; cases B13, B30, B41.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

from moorage.core.meta import Key
from moorage.net.guard import unusable
from moorage.runtime.world import World

from . import metadata_oidc, metadata_saml
from .directory import PROBE_AT
from .document_memory import Source, memory_of
from .materials import Data, Document, Fault
from .oidc import metadata_url
from .types import KeystoneIdentityBackend
from .types_federation import Oidc, Saml
from .types_secret import SecretRef

METADATA_KEY: Final = "idp-metadata.xml"
"""Data key of spec.saml.idpMetadata.secretRef."""
CA_KEY: Final = "ca.crt"
"""Data key of every caBundleSecretRef."""


def look(
    world: World, backend: KeystoneIdentityBackend, secrets: Mapping[str, Data | None], last_good: bytes | None
) -> Document | Fault | None:
    """What is known of the provider now.

    The annotation `moorage.internal/probe-at` with another value fetches at once.

    Args:
        secrets: data of the Secrets that the backend names, by name; None: it does not exist.
        last_good: the document that the mounted federation Secret holds for this backend, None when it holds none.
    """
    found = source_of(backend, secrets, world.now())
    if not isinstance(found, Source):
        forget(world, backend.key)
        return found
    found = replace(found, asked=(backend.metadata.annotations or {}).get(PROBE_AT, ""))
    keystone = Key(backend.metadata.namespace, backend.spec.keystone_ref.name)
    return memory_of(world.http).look(world, (backend.key, keystone), found, last_good)


def forget(world: World, key: Key) -> None:
    """The backend is gone: nothing of it is fetched any more."""
    memory_of(world.http).forget(key)


def source_of(
    backend: KeystoneIdentityBackend, secrets: Mapping[str, Data | None], now: datetime
) -> Source | Document | Fault | None:
    """The document when it is declared, else where it is fetched; None for LDAP."""
    if backend.spec.oidc is not None:
        return _oidc(backend.spec.oidc, secrets)
    return _saml(backend.spec.saml, secrets, now) if backend.spec.saml is not None else None


def _oidc(oidc: Oidc, secrets: Mapping[str, Data | None]) -> Source | Document | Fault:
    if oidc.endpoints is not None:
        return metadata_oidc.declared(oidc.issuer, oidc.endpoints)
    roots = _roots(oidc.ca_bundle_secret_ref, secrets)
    if isinstance(roots, Fault):
        return roots
    url = oidc.provider_metadata_url or metadata_url(oidc.issuer)
    if why := unusable(url):
        field = "providerMetadataURL" if oidc.provider_metadata_url else "issuer"
        return Fault("MetadataRefused", f"spec.oidc.{field}: {why}")

    def read(content: bytes, _: datetime) -> Document | Fault:
        return metadata_oidc.parse(content, oidc.issuer, secure=url.startswith("https:"))

    return Source(url, f"OIDC {oidc.issuer}", read, metadata_oidc.is_same, roots)


def _saml(saml: Saml, secrets: Mapping[str, Data | None], now: datetime) -> Source | Document | Fault:
    source, entity = saml.idp_metadata, saml.idp_entity_id
    if source.inline:
        return _named("spec.saml.idpMetadata.inline", metadata_saml.parse(source.inline, entity, now=now))
    if source.secret_ref is not None:
        return _from_secret(source.secret_ref.name, secrets, entity, now)
    if not source.url:
        return Fault("MetadataUnavailable", "spec.saml.idpMetadata names no source")
    plain = (
        "" if source.url.startswith("https://") else "must use https://: the document carries the signing certificate"
    )
    if why := plain or unusable(source.url):
        return Fault("MetadataRefused", f"spec.saml.idpMetadata.url: {why}")
    roots = _roots(source.ca_bundle_secret_ref, secrets)
    if isinstance(roots, Fault):
        return roots
    url = source.url

    def read(content: bytes, at: datetime) -> Document | Fault:
        return _named(f"the metadata of {url}", metadata_saml.parse(content, entity, now=at))

    return Source(url, f"SAML {entity}", read, bytes.__eq__, roots)


def _from_secret(name: str, secrets: Mapping[str, Data | None], entity: str, now: datetime) -> Document | Fault:
    data = secrets.get(name)
    if data is None:
        return Fault("MetadataUnavailable", f"metadata Secret {name} does not exist")
    if not data.get(METADATA_KEY):
        return Fault("MetadataUnavailable", f"key {METADATA_KEY} of metadata Secret {name} is missing or empty")
    where = f"key {METADATA_KEY} of metadata Secret {name}"
    return _named(where, metadata_saml.parse(data[METADATA_KEY], entity, now=now))


def _named(where: str, found: Document | Fault) -> Document | Fault:
    return Fault(found.reason, f"{where}: {found.message}") if isinstance(found, Fault) else found


def _roots(ref: SecretRef | None, secrets: Mapping[str, Data | None]) -> bytes | Fault | None:
    if ref is None:
        return None
    data = secrets.get(ref.name)
    if data is None:
        return Fault("CABundleUnavailable", f"CA Secret {ref.name} does not exist")
    return data.get(CA_KEY) or Fault("CABundleUnavailable", f"key {CA_KEY} of CA Secret {ref.name} is missing or empty")
