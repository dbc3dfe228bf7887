"""Admission rules that OIDC and SAML backends share: names, protocol, remote id, what may stand in the sidecar's configuration.

Enters: paths and values. Leaves: complaints and warnings. Pure. Source: seed 000, webhook rules; spec/keystone.md 2.4; decisions, Keystone 13
and Admission 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from moorage.core.addresses import internal
from moorage.core.urls import url_fault, without_user
from moorage.schema.fielderror import FieldError, invalid, required

from .federation import NOBODY, provider_key
from .finding import Finding, control_characters

REMOTE_ID_LIMIT: Final = 64
"""Characters of a remote id that Keystone 30 takes (keystone.federation.schema); a later one may take more."""
STOCK_PROTOCOLS: Final = frozenset({"openid", "mapped", "saml2", "x509"})
OWN_METHODS: Final = frozenset(
    {"application_credential", "ec2credential", "external", "kerberos", "oauth1", "password", "token", "totp"}
)
"""Methods of Keystone 30 that ask for a secret of its own, or for nothing that the sidecar conveys: no claims can come in through them."""
OWNED_SECTIONS: Final = frozenset(
    [
        "default",
        "token",
        "fernet_tokens",
        "fernet_receipts",
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
OTHER_SECTIONS: Final = frozenset(
    [
        "api", "assignment", "catalog", "cors", "domain_config", "endpoint_filter", "endpoint_policy", "healthcheck", "identity_mapping",
        "jwt_tokens", "ldap", "oauth2", "oslo_concurrency", "policy", "profiler", "receipt", "resource", "revoke", "role", "saml",
        "security_compliance", "shadow_users", "signing", "tokenless_auth", "trust", "unified_limit", "wsgi",
    ]
)  # fmt: skip
"""Further sections of keystone.conf 30 that have a meaning of their own."""
_IDP_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def fits_idp_name(name: str) -> bool:
    """Whether a resource name can serve as identityProviderName."""
    return bool(_IDP_NAME.fullmatch(name))


def embedded(path: str, value: str | None) -> Iterator[FieldError]:
    """A value that stands in the proxy configuration: one line, no double quote, no `${`."""
    yield from control_characters(path, value)
    if value is not None and '"' in value:
        yield invalid(path, value, "must not contain a double quote")
    if value is not None and "${" in value:
        yield invalid(path, value, "must not contain ${: Apache would expand it")


def check_protocol(path: str, protocol: str, *, allowed: str = "") -> Iterator[Finding]:
    """A protocolID becomes a section of keystone.conf and the name of an authentication method (decisions, Keystone 13)."""
    plain, usable = protocol.lower(), f"use one of {', '.join(sorted(STOCK_PROTOCOLS))}"
    if plain in OWNED_SECTIONS - {allowed}:
        yield invalid(path, protocol, "collides with a keystone.conf section that the operator owns")
    elif plain in OWN_METHODS:
        yield f"{path}: {protocol!r} is a method by which Keystone itself authenticates, it takes no claims: nobody can log in; {usable}"
    elif plain in OTHER_SECTIONS:
        yield f"{path}: {protocol!r} is a section of keystone.conf with another meaning, and no method: nobody can log in; {usable}"
    elif protocol not in STOCK_PROTOCOLS:
        yield f"{path}: stock Keystone knows the methods {', '.join(sorted(STOCK_PROTOCOLS))}; {protocol!r} needs a plugin"


def check_remote_id(path: str, value: str) -> Iterator[str]:
    """An issuer or entityID becomes the remote id of the identity provider; whether it fits is Keystone's to say, so this is a warning."""
    if len(value) > REMOTE_ID_LIMIT:
        limit = f"stock Keystone 30 refuses remote ids of more than {REMOTE_ID_LIMIT}"
        yield f"{path}: has {len(value)} characters, and {limit}: the backend will say RefusedByKeystone"


def check_provider_name(path: str, resource: str, declared: str | None) -> Iterator[FieldError]:
    """The resource's name is the default; one that cannot serve must be replaced by hand."""
    if provider_key(declared or resource) == NOBODY:
        detail = "is kept for the sidecar's health check, which asks for a provider that there never is"
        yield invalid(f"{path}.identityProviderName", declared or resource, detail)
    if not declared and not fits_idp_name(resource):
        detail = f"the resource name {resource!r} cannot serve as identity provider name: set identityProviderName"
        yield required(f"{path}.identityProviderName", detail)


def check_url(path: str, url: str | None) -> Iterator[FieldError]:
    """A URL to which the operator, the sidecar or a browser can be sent; a password in it is not repeated."""
    if url is not None and (why := url_fault(url)):
        yield invalid(path, without_user(url), why)


def check_fetched(path: str, url: str | None) -> Iterator[str]:
    """What the operator's guard will say of the host of a URL that it fetches, as far as the URL tells."""
    if (found := _internal(url)) is None:
        return
    host, kind, what = found
    if kind == "special":
        allowed = "and the operator never fetches from one"
    else:
        network = "a loopback network" if kind == "loopback" else "a network"
        allowed = f"and the operator fetches from one only if {_FLAG} names {network} that holds it"
    yield f"{path}: {host} is {what}, {allowed}"


_FLAG: Final = "--federation-metadata-allow-cidrs"


_INSIDE: Final = {
    "loopback": "for the sidecar that is its own pod",
    "special": "in a cloud the metadata service may answer there, with the machine's credentials",
    "private": "make sure that the provider answers there, and nothing else of the inner network",
}


def check_called(path: str, urls: Mapping[str, str | None]) -> Iterator[str]:
    """The sidecar's own calls pass no guard, so a person should know where they go. One sentence for each host.

    Args:
        urls: by the field below `path`.
    """
    hosts: dict[tuple[str, str, str], list[str]] = {}
    for field, url in urls.items():
        if found := _internal(url):
            hosts.setdefault(found, []).append(field)
    for (host, kind, what), fields in hosts.items():
        told = f"{host} is {what}, and no guard stands before the sidecar, which calls it at logins: {_INSIDE[kind]}"
        yield f"{path}: {', '.join(fields)}: {told}"


def _internal(url: str | None) -> tuple[str, str, str] | None:
    """Host, kind and words of an internal one."""
    try:
        host = urlsplit(url or "").hostname or ""
    except ValueError:
        return None
    found = internal(host)
    return (host, *found) if found else None
