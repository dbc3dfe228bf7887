"""Federated backends in short form, what their projection is made from, and a key pair that is the same on each run.

Enters: short forms of a given.yaml. Leaves: backends as the API server stores them, and Materials. No server, no clock, no network.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any, Final

from moorage.core.meta import JsonObject
from moorage.keystone.backend import metadata_oidc, metadata_saml
from moorage.keystone.backend.materials import Document, Fault
from moorage.keystone.backend.types import KeystoneIdentityBackend
from moorage.keystone.key_pair import CERTIFICATE, KEY

_PAIR: Final = Path(__file__).with_name("pair")
CRT: Final = (_PAIR / "tls.crt").read_text()
PRIVATE: Final = (_PAIR / "tls.key").read_text()
ENTITY: Final = "https://idp.acme.test/saml"
FEDERATION: Final[JsonObject] = {"proxyImage": {"repository": "moorage/keystone-federation-proxy", "tag": "2.4"}}
BROUGHT: Final[list[dict[str, Any]]] = [{"name": "client", "data": {"clientSecret": "s3cret-client"}}]
MADE: Final[list[dict[str, Any]]] = [
    {"name": "keystone-oidc-crypto-passphrase", "data": {"passphrase": "s3cret-passphrase"}},
    {"name": "keystone-saml-sp", "data": {CERTIFICATE: CRT, KEY: PRIVATE}},
]


def idp_metadata(entity: str = ENTITY) -> str:
    """One EntityDescriptor with a signing certificate."""
    lines = [line for line in (_PAIR / "idp.crt").read_text().splitlines() if "-----" not in line]
    base64.b64decode("".join(lines), validate=True)
    return (
        f'<md:EntityDescriptor xmlns:md="urn:oasis:names:tc:SAML:2.0:metadata" entityID="{entity}">'
        '<md:IDPSSODescriptor protocolSupportEnumeration="urn:oasis:names:tc:SAML:2.0:protocol">'
        '<md:KeyDescriptor use="signing"><ds:KeyInfo xmlns:ds="http://www.w3.org/2000/09/xmldsig#"><ds:X509Data><ds:X509Certificate>'
        f"{''.join(lines)}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></md:KeyDescriptor>"
        '<md:SingleSignOnService Binding="urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect" Location="https://idp.acme.test/sso"/>'
        "</md:IDPSSODescriptor></md:EntityDescriptor>"
    )


def spec(short: dict[str, Any]) -> JsonObject:
    """The part of the spec that a type adds: {type, issuer, client, entity, pair, protocol, provider}."""
    name = short["name"]
    more: JsonObject = {}
    if short.get("protocol"):
        more["protocolID"] = short["protocol"]
    if short.get("provider"):
        more["identityProviderName"] = short["provider"]
    if short["type"] == "OIDC":
        return {
            "mappings": _rules("HTTP_OIDC_ISS"),
            "oidc": _oidc(short.get("issuer", f"https://idp.acme.test/{name}"), short) | more,
        }
    saml: JsonObject = {
        "idpEntityID": short.get("entity", ENTITY),
        "idpMetadata": {"inline": idp_metadata(short.get("entity", ENTITY))},
    }
    if short.get("pair"):
        saml["sp"] = {"certificateSecretRef": {"name": short["pair"]}}
    return {"mappings": _rules("HTTP_MELLON_IDP"), "saml": saml | more}


def _oidc(issuer: str, short: dict[str, Any]) -> JsonObject:
    return {
        "issuer": issuer,
        "clientID": "keystone",
        "clientSecretRef": {"name": short.get("client", "client")},
        "endpoints": {
            "authorizationEndpoint": f"{issuer}/auth",
            "tokenEndpoint": f"{issuer}/token",
            "jwksURI": f"{issuer}/keys",
        },
    }


def _rules(claim: str) -> list[JsonObject]:
    return [{"remote": [{"type": claim}], "local": [{"user": {"name": "{0}"}}]}]


def document(backend: KeystoneIdentityBackend) -> Document | Fault | None:
    """What documents.py makes of a declared document."""
    oidc, saml = backend.spec.oidc, backend.spec.saml
    if oidc is not None and oidc.endpoints is not None:
        return metadata_oidc.declared(oidc.issuer, oidc.endpoints)
    if saml is not None and saml.idp_metadata.inline is not None:
        return metadata_saml.parse(saml.idp_metadata.inline, saml.idp_entity_id, now=None)
    return None
