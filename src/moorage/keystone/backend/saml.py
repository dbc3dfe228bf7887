"""Variant SAML: its admission rules that need no fetch, and the directives of mod_auth_mellon that protect its paths.

Enters: a declared identity provider, its metadata, the data of its Secrets. Leaves: complaints, or files and its part of the sidecar. It
must not resolve entities or follow references of an inline document. Source: seed 000, SAML-specific webhook rules; spec/keystone.md 2.4,
3.6; decisions, Keystone 10, 16, 21, 22 and Admission 2; cases B38, B40, B41.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from moorage.render import apache
from moorage.schema.fielderror import FieldError, duplicate, invalid, required

from . import federation, metadata_saml
from .federated_checks import (
    check_fetched,
    check_protocol,
    check_provider_name,
    check_remote_id,
    check_url,
    embedded,
)
from .federation import FOLDER, Part
from .finding import Finding, fixed_keys
from .materials import Document, Fault, Materials
from .types import KeystoneIdentityBackend
from .types_federation import Saml, SamlIdpMetadata
from .variant import Rendered, Skip, Variant, checked, document, public

if TYPE_CHECKING:
    from moorage.keystone.key_pair import Pair

_REMOTE_ID: Final = re.compile(r"HTTP_[A-Za-z0-9_]+")
_OWN_HEADERS: Final = frozenset({"IDP", "NAME_ID"})
_ATTRIBUTE: Final = re.compile(r"[A-Za-z0-9_]+")


def check(backend: KeystoneIdentityBackend) -> Iterator[Finding]:
    """All complaints about spec.saml."""
    saml = backend.spec.saml
    if saml is None:
        return
    if not saml.idp_entity_id:
        yield required("spec.saml.idpEntityID")
    yield from check_remote_id("spec.saml.idpEntityID", saml.idp_entity_id)
    yield from _check_text(saml)
    yield from check_protocol("spec.saml.protocolID", saml.protocol_id)
    yield from check_provider_name("spec.saml", backend.metadata.name, saml.identity_provider_name)
    yield from _check_attributes(saml.forward_attributes or ())
    yield from _check_metadata(saml.idp_metadata, saml.idp_entity_id)
    if saml.sp:
        yield from fixed_keys("spec.saml.sp.certificateSecretRef", saml.sp.certificate_secret_ref, "tls.crt", "tls.key")


def _check_text(saml: Saml) -> Iterator[FieldError]:
    yield from embedded("spec.saml.idpEntityID", saml.idp_entity_id)
    yield from embedded("spec.saml.protocolID", saml.protocol_id)
    yield from embedded("spec.saml.identityProviderName", saml.identity_provider_name)
    yield from embedded("spec.saml.idpMetadata.url", saml.idp_metadata.url)
    if not _REMOTE_ID.fullmatch(saml.remote_id_attribute):
        detail = "must match ^HTTP_[A-Za-z0-9_]+$: it crosses the sidecar hop as a request header"
        yield invalid("spec.saml.remoteIDAttribute", saml.remote_id_attribute, detail)


def _check_attributes(names: tuple[str, ...]) -> Iterator[FieldError]:
    """Attributes become request headers, whose names have no letter case (case B38)."""
    headers = [name.upper() for name in names]
    for index, name in enumerate(names):
        path = f"spec.saml.forwardAttributes[{index}]"
        if not _ATTRIBUTE.fullmatch(name):
            detail = (
                "must match ^[A-Za-z0-9_]+$: it becomes a request header; rename the attribute at the identity provider"
            )
            yield invalid(path, name, detail)
        if name in names[:index]:
            yield duplicate(path, name)
        elif headers[index] in headers[:index]:
            yield duplicate(path, name, "is the same request header as another attribute: letter case does not count")
        elif headers[index] in _OWN_HEADERS:
            yield duplicate(path, name, "is conveyed already, as the identity provider's id or the NameID")


def _check_metadata(source: SamlIdpMetadata, entity_id: str) -> Iterator[Finding]:
    path = "spec.saml.idpMetadata"
    if sum(map(bool, (source.inline, source.secret_ref, source.url))) != 1:
        yield invalid(path, _given(source), "exactly one of inline, secretRef, or url must be set")
    if source.url and not source.url.startswith("https://"):
        yield invalid(f"{path}.url", source.url, "must use https://: the document carries the signing certificate")
    else:
        yield from check_url(f"{path}.url", source.url)
    yield from check_fetched(f"{path}.url", source.url)
    yield from fixed_keys(f"{path}.secretRef", source.secret_ref, "idp-metadata.xml")
    yield from fixed_keys(f"{path}.caBundleSecretRef", source.ca_bundle_secret_ref, "ca.crt")
    if source.ca_bundle_secret_ref and not source.url:
        yield f"{path}.caBundleSecretRef: has no effect without url, because nothing else is fetched"
    if source.inline and isinstance(found := metadata_saml.parse(source.inline, entity_id, now=None), Fault):
        yield invalid(f"{path}.inline", "<document>", found.message)


def _given(source: SamlIdpMetadata) -> str:
    given = {"inline": source.inline, "secretRef": source.secret_ref, "url": source.url}
    return ", ".join(name for name, value in given.items() if value) or "none"


# --- rendering

HERE: Final = "SAML_HERE"
"""Defined on the command line of the sidecar that answers SAML; the others hand its paths on (ADR 0012)."""


def secrets(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """The Secret of the metadata, those of CA bundle and key pair."""
    saml = backend.spec.saml
    if saml is None:
        return ()
    named = (saml.idp_metadata.secret_ref, saml.idp_metadata.ca_bundle_secret_ref)
    return tuple(dict.fromkeys([*(ref.name for ref in named if ref), pair_secret(backend)]))


def pair_secret(backend: KeystoneIdentityBackend) -> str:
    """Name of the Secret with the service provider's key pair: the declared one, else the one that is generated."""
    saml = backend.spec.saml
    own = saml.sp.certificate_secret_ref if saml and saml.sp else None
    return own.name if own else f"{backend.spec.keystone_ref.name}{federation.PAIR_SUFFIX}"


def pair_of(backend: KeystoneIdentityBackend, materials: Materials) -> Pair | Fault:
    """The service provider's key pair, or why there is none."""
    from moorage.keystone.key_pair import read_pair  # brings cryptography, which `lint` does without

    name = pair_secret(backend)
    data = materials.secrets.get(name)
    made = not (backend.spec.saml and backend.spec.saml.sp and backend.spec.saml.sp.certificate_secret_ref)
    if data is None:
        return Fault("KeyPairUnavailable", f"key pair Secret {name} does not exist", pending=made)
    found = read_pair(data)
    if not isinstance(found, str):
        return found
    anew = "delete the Secret to have a new pair made, then register the new SP metadata at the identity provider"
    fix = anew if made else "put a PEM certificate and its RSA key there"
    return Fault("KeyPairUnavailable", f"key pair Secret {name}: {found}; {fix}")


def render(backend: KeystoneIdentityBackend, materials: Materials) -> Rendered:
    """The identity provider's metadata and the directives of this backend."""
    saml = backend.spec.saml
    if saml is None:
        raise Skip("UnsupportedType", "spec.saml is missing")
    checked(backend, (*_check_text(saml), *_check_attributes(saml.forward_attributes or ())))
    public(backend, materials)
    found = document(materials)
    _check_entity(saml, found)
    pair = pair_of(backend, materials)
    if isinstance(pair, Fault):
        raise Skip(pair.reason, pair.message, pending=pair.pending)
    key = federation.data_key(backend, "idp-metadata.xml")
    part = Part(
        type="SAML",
        provider=federation.provider_name(backend),
        protocol=saml.protocol_id,
        remote_id=saml.idp_entity_id,
        remote_id_attribute=saml.remote_id_attribute,
        fragment="\n".join(_answered(backend, saml, key)),
        alone="\n".join(_either(backend, saml, federation.global_websso_path(saml.protocol_id))),
        documents={key: key},
        pair=pair,
    )
    return Rendered({key: found.content}, part, {key: "spec.saml.idpMetadata"})


VARIANT: Final = Variant(
    secrets,
    render,
    volume=federation.MELLON_VOLUME,
    sign=lambda backend: federation.data_key(backend, "idp-metadata.xml"),
    document="idp-metadata.xml",
)


def _check_entity(saml: Saml, found: Document) -> None:
    """The document's entityID, once more: nothing else ties it to this backend."""
    if metadata_saml.identity_fault(found.content, saml.idp_entity_id):
        raise Skip("MetadataMismatch", "the metadata is not one EntityDescriptor of spec.saml.idpEntityID")


def _answered(backend: KeystoneIdentityBackend, saml: Saml, key: str) -> apache.Lines:
    provider, protocol = federation.provider_name(backend), saml.protocol_id
    endpoints = federation.mellon_path(provider, protocol)
    module = apache.section("Location", "/v3", _module(key, endpoints))
    own = apache.section("Location", endpoints, (apache.directive("ProxyPass", "!"),))
    return (
        *apache.section("IfDefine", HERE, (*module, *own)),
        *_either(backend, saml, federation.websso_path(provider, protocol)),
        *_either(backend, saml, federation.auth_path(provider, protocol)),
    )


def _module(key: str, endpoints: str) -> apache.Lines:
    """What mod_auth_mellon is told; without MellonIdP nobody logs in, without MellonSecureCookie no browser does (decision 21).

    It is switched on at the protected paths only: elsewhere it would take everybody with a session for its own, and mod_auth_openidc, not
    asked any more, would show such a person an error in place of its login.
    """
    folder = f"{FOLDER}/mellon"
    return (
        apache.directive("MellonMergeEnvVars", "On", ";"),
        apache.directive("MellonSPPrivateKeyFile", f"{folder}/sp-key.pem"),
        apache.directive("MellonSPCertFile", f"{folder}/sp-cert.pem"),
        apache.directive("MellonSPMetadataFile", f"{folder}/sp-metadata.xml"),
        apache.directive("MellonIdPMetadataFile", f"{folder}/{key}"),
        apache.directive("MellonEndpointPath", endpoints),
        apache.directive("MellonSubjectConfirmationDataAddressCheck", "Off"),
        apache.directive("MellonIdP", "IDP"),
        apache.directive("MellonSecureCookie", "On"),
        apache.directive("MellonRedirectDomains", "[self]"),
    )


def _either(backend: KeystoneIdentityBackend, saml: Saml, path: str) -> apache.Lines:
    """A protected path: answered here, or handed on to the one sidecar that knows the sessions."""
    there = f"http://{backend.spec.keystone_ref.name}-saml.{backend.metadata.namespace}.svc.cluster.local:5050{path}"
    handed = (apache.directive("Require", "all", "granted"), apache.directive("ProxyPass", there, "disablereuse=on"))
    return (
        *apache.section("IfDefine", HERE, apache.section("Location", path, _protected(saml))),
        *apache.section("IfDefine", f"!{HERE}", apache.section("Location", path, handed)),
    )


def _protected(saml: Saml) -> apache.Lines:
    """Login, then the claims as request headers; nothing of a client is left in them."""
    claims = {federation.header_of(saml.remote_id_attribute) or "": "MELLON_IDP", "MELLON-NAME-ID": "MELLON_NAME_ID"}
    claims |= {f"MELLON-{name.upper().replace('_', '-')}": f"MELLON_{name}" for name in saml.forward_attributes or ()}
    return (
        apache.directive("AuthType", "Mellon"),
        apache.directive("MellonEnable", "auth"),
        apache.directive("Require", "valid-user"),
        *(line for header in sorted(claims) for line in _claim(header, claims[header])),
    )


def _claim(header: str, variable: str) -> apache.Lines:
    """mod_headers writes a value as it is: with a line break in it, a provider would write headers of its own. Such a claim is left out."""
    plain = f"expr=!(reqenv('{variable}') =~ /[[:cntrl:]]/)"
    return (
        apache.directive("RequestHeader", "unset", header),
        apache.directive("RequestHeader", "set", header, f"expr=%{{reqenv:{variable}}}", plain),
    )
