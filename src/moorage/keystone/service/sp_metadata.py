"""The SAML service provider's metadata: what an identity provider is told about this Keystone.

Enters: the public address, names, certificates. Leaves: XML, the same bytes for the same input. Source: spec/keystone.md 3.6; SAML 2.0
metadata 2.4; decisions, Keystone 12, 21; case B43; ADR 0013.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from xml.sax.saxutils import escape

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from moorage.keystone.backend.federation import mellon_path

_MD: Final = "urn:oasis:names:tc:SAML:2.0:metadata"
_DS: Final = "http://www.w3.org/2000/09/xmldsig#"
_PROTOCOL: Final = "urn:oasis:names:tc:SAML:2.0:protocol"
_BINDINGS: Final = "urn:oasis:names:tc:SAML:2.0:bindings"
_NAME_ID: Final = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
"""Without a format mellon asks for transient names, and a person is somebody else at each login (decision 21)."""


@dataclass(frozen=True, slots=True)
class SpMetadata:
    """The service provider's entityID and its document."""

    entity_id: str
    document: bytes


def sp_metadata(base: str, provider: str, protocol: str, certificates: tuple[bytes, ...]) -> SpMetadata:
    """The descriptor of this service provider.

    Args:
        base: public URL without `/v3`.
        certificates: PEM; the first is in use. The others are those of a rollover: they sign later, and nothing is encrypted for them yet.

    Raises:
        ValueError: what stands for a certificate is none.
    """
    endpoints = base + mellon_path(provider, protocol)
    entity_id = f"{endpoints}/metadata"
    return SpMetadata(entity_id, "".join(f"{line}\n" for line in _lines(endpoints, entity_id, certificates)).encode())


def _lines(endpoints: str, entity_id: str, certificates: tuple[bytes, ...]) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<md:EntityDescriptor xmlns:md="{_MD}" xmlns:ds="{_DS}" entityID="{_attribute(entity_id)}">'
    signing = 'AuthnRequestsSigned="false" WantAssertionsSigned="true"'
    yield f'  <md:SPSSODescriptor {signing} protocolSupportEnumeration="{_PROTOCOL}">'
    for certificate in certificates:
        yield _key("signing", certificate)
    yield _key("encryption", certificates[0])
    # By POST first: mellon cannot verify the signature of an answer that comes by Redirect, and shows an error page after the logout.
    for binding in ("HTTP-POST", "HTTP-Redirect"):
        yield f'    <md:SingleLogoutService Binding="{_BINDINGS}:{binding}" Location="{_attribute(endpoints)}/logout"/>'
    yield f"    <md:NameIDFormat>{_NAME_ID}</md:NameIDFormat>"
    where = f'Binding="{_BINDINGS}:HTTP-POST" Location="{_attribute(endpoints)}/postResponse"'
    yield f'    <md:AssertionConsumerService index="0" isDefault="true" {where}/>'
    yield "  </md:SPSSODescriptor>"
    yield "</md:EntityDescriptor>"


def _key(use: str, certificate: bytes) -> str:
    der = x509.load_pem_x509_certificates(certificate)[0].public_bytes(Encoding.DER)
    content = f"<ds:X509Data><ds:X509Certificate>{base64.b64encode(der).decode()}</ds:X509Certificate></ds:X509Data>"
    return f'    <md:KeyDescriptor use="{use}"><ds:KeyInfo>{content}</ds:KeyInfo></md:KeyDescriptor>'


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
