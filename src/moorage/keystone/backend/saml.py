"""Variant SAML: its admission rules that need no fetch. This version declares and checks it, it does not attach it.

Enters: a declared identity provider. Leaves: complaints. It must not resolve entities or follow references of an inline
document. Source: seed 000, SAML-specific webhook rules; spec/keystone.md 2.4; decisions, Keystone 16 and Admission 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.parsers import expat

from moorage.schema.fielderror import FieldError, duplicate, invalid, required

from .finding import Finding, fixed_keys
from .oidc import check_protocol, check_provider_name, embedded
from .types import KeystoneIdentityBackend
from .types_federation import Saml, SamlIdpMetadata

_DESCRIPTOR: Final = "urn:oasis:names:tc:SAML:2.0:metadata EntityDescriptor"
_REMOTE_ID: Final = re.compile(r"HTTP_[A-Za-z0-9_]+")
_ATTRIBUTE: Final = re.compile(r"[A-Za-z0-9_]+")


def check(backend: KeystoneIdentityBackend) -> Iterator[Finding]:
    """All complaints about spec.saml."""
    saml = backend.spec.saml
    if saml is None:
        return
    if not saml.idp_entity_id:
        yield required("spec.saml.idpEntityID")
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
    for index, name in enumerate(names):
        path = f"spec.saml.forwardAttributes[{index}]"
        if not _ATTRIBUTE.fullmatch(name):
            yield invalid(path, name, "must match ^[A-Za-z0-9_]+$")
        if name in names[:index]:
            yield duplicate(path, name)


def _check_metadata(source: SamlIdpMetadata, entity_id: str) -> Iterator[FieldError]:
    path = "spec.saml.idpMetadata"
    if sum(map(bool, (source.inline, source.secret_ref, source.url))) != 1:
        yield invalid(path, _given(source), "exactly one of inline, secretRef, or url must be set")
    if source.url and not source.url.startswith("https://"):
        yield invalid(f"{path}.url", source.url, "must use https://: the document carries the signing certificate")
    yield from fixed_keys(f"{path}.secretRef", source.secret_ref, "idp-metadata.xml")
    if source.inline and (why := descriptor_fault(source.inline, entity_id)):
        yield invalid(f"{path}.inline", "<document>", why)


def _given(source: SamlIdpMetadata) -> str:
    given = {"inline": source.inline, "secretRef": source.secret_ref, "url": source.url}
    return ", ".join(name for name, value in given.items() if value) or "none"


class _Refused(Exception):
    """Ends the parse with a sentence."""


def descriptor_fault(document: str, entity_id: str) -> str:
    """Why a document is not the EntityDescriptor of `entity_id`; "" when it is.

    A DOCTYPE ends the parse at once, so no entity is ever declared or expanded.
    """
    roots: list[tuple[str, str]] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if not roots:
            roots.append((name, attributes.get("entityID", "")))

    def doctype(*_: object) -> None:
        raise _Refused("a document type declaration is refused")

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(document, True)
    except _Refused as refused:
        return str(refused)
    except (expat.ExpatError, ValueError) as error:
        return f"is not well-formed XML: {error}"
    return _root_fault(*roots[0], entity_id)


def _root_fault(name: str, found: str, entity_id: str) -> str:
    if name != _DESCRIPTOR:
        return "must be one EntityDescriptor of SAML 2.0 metadata; aggregates are refused"
    return "" if found == entity_id else f"its entityID {found!r} is not idpEntityID {entity_id!r}"
