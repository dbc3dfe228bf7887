"""One login tried on paper: what a declared backend makes of somebody's claims.

Enters: a backend's declaration, claims as a person has them. Leaves: the engine's answer, the claims as they arrive, and notes. Pure.
Contract: spec/cli.md, `moorage mapping test`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from moorage.core.meta import JsonObject

from .mapping_claims import MELLON, OIDC, environ, environ_key
from .mapping_engine import Failure, Mapped, login
from .mapping_match import Search, found
from .mapping_rules import keystone_rules
from .types import Spec


@dataclass(frozen=True, slots=True)
class Trial:
    """The outcome of one login on paper. `domain` is where the user is when the rules do not say."""

    mapped: Mapped
    claims: Mapping[str, str]
    notes: tuple[str, ...] = ()
    domain: str = ""


def try_rules(rules: Sequence[JsonObject], claims: Mapping[str, Any], search: Search = found) -> Trial:
    """Bare rules in Keystone's own form; claims are taken for those of an OIDC provider."""
    arrived = environ(claims, OIDC)
    return Trial(login(rules, arrived.values, search), arrived.values, arrived.lost)


def try_backend(spec: Spec, claims: Mapping[str, Any], search: Search = found) -> Trial:
    """A federated backend: its provider's id is known, and only what it conveys arrives."""
    arrived = environ(claims, OIDC if spec.oidc else MELLON)
    values, notes = dict(arrived.values), [*arrived.lost]
    notes += _conveyed(spec, values)
    attribute, identity = _identity(spec)
    if attribute not in values:
        values[attribute] = identity
        notes.append(f"{attribute} was not given: taken to be {identity}")
    mapped = login(keystone_rules(spec.mappings), values, search)
    if values[attribute] != identity:
        sentence = (
            f"{attribute} is {values[attribute]!r}, the backend's provider is {identity!r}; the remote id must be equal"
        )
        mapped = replace(mapped, failure=Failure("OtherProvider", 403, sentence))
    return Trial(mapped, values, tuple(notes), spec.domain.name)


def _identity(spec: Spec) -> tuple[str, str]:
    if spec.oidc:
        return spec.oidc.remote_id_attribute, spec.oidc.issuer
    if spec.saml:
        return spec.saml.remote_id_attribute, spec.saml.idp_entity_id
    raise ValueError("a backend of type LDAP has no mapping")


def _conveyed(spec: Spec, values: dict[str, str]) -> Iterator[str]:
    """SAML: attributes that are not forwarded are taken out, forwarded ones that the assertion lacks arrive empty."""
    if not spec.saml:
        return
    forwarded = {environ_key(name, MELLON) for name in spec.saml.forward_attributes or ()}
    known = forwarded | {f"{MELLON}IDP", f"{MELLON}NAME_ID", spec.saml.remote_id_attribute}
    for key in [key for key in values if key not in known]:
        del values[key]
        yield f"{key} does not arrive: it is not among spec.saml.forwardAttributes"
    for key in sorted(forwarded - values.keys()):
        values[key] = ""
        yield f"{key} was not given: it arrives empty, and an empty value matches"
