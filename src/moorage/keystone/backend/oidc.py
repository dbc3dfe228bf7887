"""Variant OIDC: its admission rules that need no fetch. This version declares and checks it, it does not attach it.

Enters: a declared provider. Leaves: complaints. Source: seed 000, OIDC-specific webhook rules; spec/keystone.md 2.4;
decisions, Keystone 13 and Admission 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from moorage.schema.fielderror import FieldError, forbidden, invalid, required

from .finding import Finding, control_characters, fixed_keys
from .types import KeystoneIdentityBackend
from .types_federation import Oidc, OidcEndpoints

URL_LIMIT: Final = 512
STOCK_PROTOCOLS: Final = frozenset({"openid", "mapped", "saml2", "x509"})
OWNED_SECTIONS: Final = frozenset(
    [
        "default",
        "token",
        "fernet_tokens",
        "credential",
        "cache",
        "memcache",
        "paste_deploy",
        "oslo_middleware",
        "oslo_policy",
        "identity",
        "database",
        "auth",
        "federation",
        "openid",
    ]
)
"""Sections of keystone.conf that the operator owns; a protocolID names a section and must not be one of them."""
_IDP_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_EMBEDDED: Final = ("issuer", "provider_metadata_url", "client_id", "protocol_id", "identity_provider_name",
                    "remote_id_attribute", "response_type")  # fmt: skip


def metadata_url(issuer: str) -> str:
    """The discovery document that belongs to an issuer."""
    return f"{issuer.rstrip('/')}/.well-known/openid-configuration"


def fits_idp_name(name: str) -> bool:
    """Whether a resource name can serve as identityProviderName."""
    return bool(_IDP_NAME.fullmatch(name))


def check(backend: KeystoneIdentityBackend, *, creating: bool) -> Iterator[Finding]:
    """All complaints about spec.oidc."""
    oidc = backend.spec.oidc
    if oidc is None:
        return
    yield from _check_text(oidc)
    yield from fixed_keys("spec.oidc.clientSecretRef", oidc.client_secret_ref, "clientSecret")
    yield from _check_discovery(oidc, creating=creating)
    yield from check_provider_name("spec.oidc", backend.metadata.name, oidc.identity_provider_name)
    yield from check_protocol("spec.oidc.protocolID", oidc.protocol_id, allowed="openid")
    if not oidc.remote_id_attribute.startswith("HTTP_"):
        yield "spec.oidc.remoteIDAttribute: without the prefix HTTP_ it cannot cross the sidecar hop"


def embedded(path: str, value: str | None) -> Iterator[FieldError]:
    """A value that stands in the proxy configuration: one line, no double quote, no `${`."""
    yield from control_characters(path, value)
    if value is not None and '"' in value:
        yield invalid(path, value, "must not contain a double quote")
    if value is not None and "${" in value:
        yield invalid(path, value, "must not contain ${: Apache would expand it")


def check_protocol(path: str, protocol: str, *, allowed: str = "") -> Iterator[Finding]:
    """A protocolID becomes a section of keystone.conf and the name of an authentication method."""
    if protocol.lower() in OWNED_SECTIONS - {allowed}:
        yield invalid(path, protocol, "collides with a keystone.conf section that the operator owns")
    elif protocol not in STOCK_PROTOCOLS:
        yield f"{path}: stock Keystone knows the methods {', '.join(sorted(STOCK_PROTOCOLS))}; {protocol!r} needs a plugin"


def check_provider_name(path: str, resource: str, declared: str | None) -> Iterator[FieldError]:
    """The resource's name is the default; one that cannot serve must be replaced by hand."""
    if not declared and not fits_idp_name(resource):
        detail = f"the resource name {resource!r} cannot serve as identity provider name: set identityProviderName"
        yield required(f"{path}.identityProviderName", detail)


def _check_text(oidc: Oidc) -> Iterator[FieldError]:
    for name in _EMBEDDED:
        yield from embedded(f"spec.oidc.{_alias(oidc, name)}", getattr(oidc, name))
    for index, scope in enumerate(oidc.scopes):
        yield from embedded(f"spec.oidc.scopes[{index}]", scope)
    for name in OidcEndpoints.model_fields if oidc.endpoints else ():
        yield from embedded(f"spec.oidc.endpoints.{_alias(oidc.endpoints, name)}", getattr(oidc.endpoints, name))


def _alias(model: Oidc | OidcEndpoints | None, name: str) -> str:
    return type(model).model_fields[name].alias or name if model else name


def _check_discovery(oidc: Oidc, *, creating: bool) -> Iterator[FieldError]:
    if oidc.provider_metadata_url and oidc.endpoints:
        yield forbidden("spec.oidc.endpoints", "providerMetadataURL and endpoints are mutually exclusive")
    too_long = len(metadata_url(oidc.issuer)) > URL_LIMIT
    if creating and too_long and not oidc.provider_metadata_url and not oidc.endpoints:
        detail = (
            f"the URL derived from issuer has more than {URL_LIMIT} characters: set providerMetadataURL or endpoints"
        )
        yield required("spec.oidc.providerMetadataURL", detail)
    introspects = oidc.oauth2_introspection is not None and oidc.oauth2_introspection.enabled
    if introspects and oidc.endpoints:
        yield from _check_introspection(oidc.endpoints.introspection_endpoint)


def _check_introspection(endpoint: str | None) -> Iterator[FieldError]:
    path = "spec.oidc.endpoints.introspectionEndpoint"
    if not endpoint:
        yield required(path, "introspectionEndpoint is required when oauth2Introspection is enabled with endpoints")
    elif not endpoint.startswith("https://"):
        yield invalid(path, endpoint, "introspectionEndpoint must use https://")
