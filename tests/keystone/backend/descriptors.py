"""Metadata of identity providers for tests: an EntityDescriptor with chosen parts, and a discovery document.

Enters: what shall differ. Leaves: bytes. The certificates are made once; nobody has their keys.
"""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

ENTITY = "https://idp.example.org/saml"
ISSUER = "https://idp.example.org/realms/a"
NOT_AFTER = datetime(2046, 1, 1, tzinfo=UTC)
MD, DS = "urn:oasis:names:tc:SAML:2.0:metadata", "http://www.w3.org/2000/09/xmldsig#"
PROTOCOL = "urn:oasis:names:tc:SAML:2.0:protocol"
REDIRECT = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect"


@cache
def certificate(number: int = 1, end: datetime = NOT_AFTER) -> str:
    """Base64 of the DER of a self-signed certificate."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"signing {number}")])
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(number).not_valid_before(end - timedelta(days=3650)).not_valid_after(end)
    return base64.b64encode(builder.sign(key, hashes.SHA256()).public_bytes(Encoding.DER)).decode()


def key_descriptor(text: str, use: str = 'use="signing"') -> str:
    """A KeyDescriptor with this X509Certificate."""
    info = f'<ds:KeyInfo xmlns:ds="{DS}"><ds:X509Data><ds:X509Certificate>{text}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>'
    return f"<md:KeyDescriptor {use}>{info}</md:KeyDescriptor>"


def sign_on(location: str = "https://idp.example.org/sso", binding: str = REDIRECT) -> str:
    """A SingleSignOnService."""
    return f'<md:SingleSignOnService Binding="{binding}" Location="{location}"/>'


def provider(*parts: str, protocol: str = PROTOCOL, more: str = "") -> str:
    """An IDPSSODescriptor; without parts, one that is accepted."""
    inner = "".join(parts or (key_descriptor(certificate()), sign_on()))
    return f'<md:IDPSSODescriptor protocolSupportEnumeration="{protocol}" {more}>{inner}</md:IDPSSODescriptor>'


def descriptor(inner: str | None = None, *, entity: str = ENTITY, more: str = "") -> str:
    """An EntityDescriptor; `more` are further attributes."""
    body = provider() if inner is None else inner
    return f'<md:EntityDescriptor xmlns:md="{MD}" entityID="{entity}" {more}>{body}</md:EntityDescriptor>'


def discovery(issuer: str = ISSUER, **members: Any) -> dict[str, Any]:
    """A discovery document; a member None is left out."""
    base = "https://idp.example.org:8443/realms/a"
    made = {
        "issuer": issuer,
        "authorization_endpoint": f"{base}/auth",
        "token_endpoint": f"{base}/token",
        "jwks_uri": "https://keys.example.org/certs",
        "introspection_endpoint": f"{base}/introspect",
        "response_types_supported": ["code", "none"],
    } | members
    return {name: value for name, value in made.items() if value is not None}


def discovered(issuer: str = ISSUER, **members: Any) -> bytes:
    """The same as a provider sends it."""
    return json.dumps(discovery(issuer, **members)).encode()
