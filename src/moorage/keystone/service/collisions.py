"""Backends of one Keystone that cannot stand beside each other.

Enters: the backends that name a Keystone. Leaves: for each that is left out the reason. Admission refuses them; this holds for what bypassed
it. No claim is ever served twice, so it is never unclear whose it is. Who is served stays: a newcomer that lays claim to the same waits, is
told, and harms nobody; where nobody is served yet, the older one comes first (backend/precedence.py).
Source: spec/keystone.md 4.5, 7 (C8, C9); seed 000, webhook rules; decisions, Admission 1; cases B13, B28.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from moorage.keystone.backend.federation import federated, issuer_basename, provider_key, provider_name
from moorage.keystone.backend.precedence import NEW, precedence, standing

from .seen import Attached

Claim: TypeAlias = tuple[str, str, str]
"""What only one may have: its kind, as it is compared, as people call it."""


def ranked(backends: Iterable[Attached]) -> list[Attached]:
    """Who comes first, first."""
    return sorted(backends, key=lambda item: precedence(item.backend))


def collisions(backends: Sequence[Attached]) -> Mapping[str, str]:
    """Why each backend that collides is left out, by its name; the first reason counts. Who comes first stands first in `backends`.

    Who is left out holds nothing itself. A terminating LDAP backend holds its domain while its file may be there; of other terminating ones
    nothing is projected under a name that a replacement could have (C8).
    """
    holders: dict[tuple[str, str], Attached] = {}
    settled: dict[str, tuple[str, Attached]] = {}
    found: dict[str, str] = {}
    for item in backends:
        claims = tuple(_claims(item))
        if why := _taken(claims, holders) or _unlike(item, settled):
            if not item.terminating:
                found[item.name] = why
            continue
        for kind, key, _ in claims:
            holders[kind, key] = item
        for name, value in _settings(item):
            settled.setdefault(name, (value, item))
    return found


def _taken(claims: Iterable[Claim], holders: Mapping[tuple[str, str], Attached]) -> str:
    for kind, key, what in claims:
        if holder := holders.get((kind, key)):
            return f"{what} is claimed by backend {holder.name} too, which {_merit(holder)}: change or delete one of the two"
    return ""


def _merit(first: Attached) -> str:
    if first.terminating:
        return "is being deleted"
    return "comes first" if standing(first.backend) == NEW else "is served already"


def _claims(item: Attached) -> Iterator[Claim]:
    spec, domain = item.backend.spec, item.domain.lower()
    if spec.type == "LDAP":
        yield "file", domain, f'domain "{item.domain}"'
    if item.terminating:
        return
    yield "domain", domain, f'domain "{item.domain}"'
    block = federated(item.backend)
    if block is None:
        return
    provider = provider_name(item.backend)
    yield "provider", provider_key(provider), f'identity provider name "{provider}"'
    yield "remote id", block.remote_id, "its remote id (issuer or entityID)"
    if spec.oidc is None:
        yield "SAML", "", "the one place of a SAML backend"
        return
    documents = "the name of its metadata documents (its issuer without scheme and slash)"
    yield "documents", issuer_basename(spec.oidc.issuer), documents
    if spec.oidc.introspects:
        yield "introspection", "", "oauth2Introspection"


def _settings(item: Attached) -> Iterator[tuple[str, str]]:
    """Fields that the one sidecar has once for all OIDC backends."""
    oidc = item.backend.spec.oidc
    if oidc is not None and not item.terminating:
        yield "remoteIDAttribute", oidc.remote_id_attribute
        yield "sessionType", oidc.session_type
        yield "stateInputHeaders", oidc.state_input_headers


def _unlike(item: Attached, settled: Mapping[str, tuple[str, Attached]]) -> str:
    for name, value in _settings(item):
        counts, first = settled.get(name, (value, item))
        if value != counts:
            why = f"{name} is one for all OIDC backends of a Keystone, and {first.name}, which {_merit(first)}, has {counts}"
            return f"{why}: give this one the same"
    return ""
