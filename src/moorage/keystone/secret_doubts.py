"""What of the Secrets that stand beside a backend in files will not do: for `moorage lint`.

Enters: admitted backends, the Secrets of the same files. Leaves: sentences, never a value. A Secret that is not among the files is nobody's
fault: people keep them elsewhere. It says only what no server could make good: a bundle of authorities that holds no certificate, or metadata
that are none, such as the placeholder of an example. Contract: spec/cli.md, `moorage lint`.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Final

from moorage.core.meta import JsonObject, Key, key_of

from .backend.authorities import UnusableBundle, certificates
from .backend.types import KIND, KeystoneIdentityBackend

_KEY: Final = "ca.crt"
_DOCUMENT: Final = "idp-metadata.xml"


def doubts(admitted: Iterable[JsonObject], others: Iterable[JsonObject]) -> Iterator[tuple[Key, str]]:
    """The backend that names it, and what is wrong with a Secret."""
    secrets = {_key(obj): obj for obj in others if obj["kind"] == "Secret"}
    for obj in admitted:
        if obj["kind"] == KIND.kind:
            backend = KIND.parse(obj)
            yield from ((_key(obj), why) for why in chain(_bundles(backend, secrets), _metadata(backend, secrets)))


def _bundles(backend: KeystoneIdentityBackend, secrets: Mapping[Key, JsonObject]) -> Iterator[str]:
    spec = backend.spec
    refs = {
        "spec.ldap.tls.caBundleSecretRef": spec.ldap.tls.ca_bundle_secret_ref if spec.ldap and spec.ldap.tls else None,
        "spec.oidc.caBundleSecretRef": spec.oidc.ca_bundle_secret_ref if spec.oidc else None,
        "spec.saml.idpMetadata.caBundleSecretRef": spec.saml.idp_metadata.ca_bundle_secret_ref if spec.saml else None,
    }
    for path, ref in refs.items():
        content = _content(secrets.get(Key(backend.metadata.namespace, ref.name)), _KEY) if ref else None
        if ref is None or content is None:
            continue
        try:
            certificates(content)
        except UnusableBundle as unusable:
            yield f"{path}: key {_KEY} of Secret {ref.name} {unusable}"


def _metadata(backend: KeystoneIdentityBackend, secrets: Mapping[Key, JsonObject]) -> Iterator[str]:
    """The identity provider's document, as the controller will read it."""
    saml = backend.spec.saml
    ref = saml.idp_metadata.secret_ref if saml else None
    content = _content(secrets.get(Key(backend.metadata.namespace, ref.name)), _DOCUMENT) if ref else None
    if saml is None or ref is None or content is None:
        return
    from .backend import metadata_saml  # brings an XML parser, which other backends do without
    from .backend.materials import Fault

    found = metadata_saml.parse(content, saml.idp_entity_id, now=None)
    if isinstance(found, Fault):
        yield f"spec.saml.idpMetadata.secretRef: key {_DOCUMENT} of Secret {ref.name}: {found.message}"


def _content(secret: JsonObject | None, key: str) -> bytes | None:
    """What a server would hold under the key, b"" without it; None: nothing is known."""
    if secret is None:
        return None
    plain = (secret.get("stringData") or {}).get(key)
    if plain is not None:
        return str(plain).encode()
    try:
        return base64.b64decode((secret.get("data") or {}).get(key) or "", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _key(obj: JsonObject) -> Key:
    key = key_of(obj)
    return Key(key.namespace or "default", key.name)
