"""What several backends of one Keystone may not share.

Enters: a backend and the other objects of its namespace. Leaves: complaints, on the object that comes later. Terminating
siblings do not count. Source: seed 000, webhook rules; spec/keystone.md 2.4 "siblings"; decisions, Admission 1 and 2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from moorage.core.meta import JsonObject
from moorage.schema.fielderror import duplicate, invalid

from .federation import provider_key
from .finding import Finding
from .types import KeystoneIdentityBackend, Spec

_CANNOT: Final = "groups of a directory cannot take ephemeral users: set user.type to local"
_SHOWN: Final = 3
_SCHEME: Final = re.compile(r"^https?://")


class Sibling(NamedTuple):
    """What the rules need of another backend."""

    name: str
    type: str
    domain: str
    provider: str
    remote_id: str
    remote_id_attribute: str
    introspects: bool
    session_type: str
    state_input_headers: str
    bundle: str
    """The Secret with authorities of its own, or none."""


def others(obj: JsonObject, candidates: Sequence[JsonObject]) -> list[JsonObject]:
    """The backends of the same Keystone that are neither this one nor on their way out."""
    keystone, name = obj["spec"]["keystoneRef"]["name"], obj["metadata"].get("name")
    return [
        other
        for other in candidates
        if other["spec"]["keystoneRef"]["name"] == keystone
        and (meta := other["metadata"])["name"] != name
        and not meta.get("deletionTimestamp")
    ]


def meets(obj: JsonObject) -> Iterator[str]:
    """What two backends share when a rule may speak of both: Keystone and domain, one's own or one that mapping rules put ephemeral users
    into; or that both of a Keystone are federated."""
    spec = obj["spec"]
    keystone = spec["keystoneRef"]["name"]
    yield f"{keystone}/{spec['domain']['name'].lower()}"
    yield from (f"{keystone}/{domain}" for domain in _mapped(spec.get("mappings") or ()))
    if spec["type"] != "LDAP":
        yield keystone


def check(backend: KeystoneIdentityBackend, found: Iterable[JsonObject]) -> Iterator[Finding]:
    """All collisions of one backend with its siblings."""
    mine = _facts(backend.metadata.name, backend.spec)
    wanted, is_ldap = mine.domain.lower(), mine.type == "LDAP"
    ldap_domains: dict[str, str] = {}
    federated: list[Sibling] = []
    for other in found:
        spec = other["spec"]
        domain: str = spec["domain"]["name"].lower()
        if domain == wanted:
            owner = other["metadata"]["name"]
            detail = f"domain name collides with backend {owner} of the same Keystone (letter case does not count)"
            yield duplicate("spec.domain.name", mine.domain, detail)
        if is_ldap:
            if wanted in _mapped(spec.get("mappings") or ()):
                yield f"spec.domain.name: backend {other['metadata']['name']} maps ephemeral users onto groups of this domain; {_CANNOT}"
            continue
        if spec["type"] == "LDAP":
            ldap_domains[domain] = other["metadata"]["name"]
        else:
            federated.append(theirs := _facts_of(other))
            yield from _federation(mine, theirs)
    yield from _pooled(mine, federated)
    yield from _groups_in_directories(backend.spec, ldap_domains)


def _federation(mine: Sibling, theirs: Sibling) -> Iterator[Finding]:
    block = f"spec.{mine.type.lower()}"
    if provider_key(mine.provider) == provider_key(theirs.provider):
        case = "" if mine.provider == theirs.provider else " (letter case does not count)"
        detail = f"identity provider name collides with backend {theirs.name}{case}"
        yield duplicate(f"{block}.identityProviderName", mine.provider, detail)
    if _comparable(mine.remote_id) == _comparable(theirs.remote_id):
        field = "issuer" if mine.type == "OIDC" else "idpEntityID"
        detail = f"is the remote id of backend {theirs.name} already (scheme and trailing slash do not count)"
        yield duplicate(f"{block}.{field}", mine.remote_id, detail)
    if mine.type == theirs.type == "SAML":
        yield invalid("spec.type", "SAML", f"at most one SAML backend per Keystone: {theirs.name} is attached already")
    if mine.type == theirs.type == "OIDC":
        yield from _oidc(mine, theirs)


def _oidc(mine: Sibling, theirs: Sibling) -> Iterator[Finding]:
    if mine.remote_id_attribute != theirs.remote_id_attribute:
        detail = f"remoteIDAttribute must be uniform: backend {theirs.name} has {theirs.remote_id_attribute}"
        yield invalid("spec.oidc.remoteIDAttribute", mine.remote_id_attribute, detail)
    if mine.introspects and theirs.introspects:
        detail = f"at most one OIDC backend per Keystone may enable introspection: {theirs.name} has it already"
        yield invalid("spec.oidc.oauth2Introspection.enabled", True, detail)
    for field, own, other in (
        ("sessionType", mine.session_type, theirs.session_type),
        ("stateInputHeaders", mine.state_input_headers, theirs.state_input_headers),
    ):
        if own != other:
            yield f"spec.oidc.{field}: one value serves all OIDC backends of a Keystone; backend {theirs.name} has {other}"


def _pooled(mine: Sibling, federated: Iterable[Sibling]) -> Iterator[str]:
    """The modules of the sidecar have one list of authorities, whoever brought them."""
    others = [theirs for theirs in federated if mine.type == theirs.type == "OIDC" and theirs.bundle != mine.bundle]
    what = [f"this one's for {_named(others)}"] if mine.bundle and others else []
    if bringing := [theirs for theirs in others if theirs.bundle]:
        what.append(f"that of {_named(bringing)} for this one")
    if what:
        yield f"spec.oidc.caBundleSecretRef: the sidecar trusts each CA bundle for every OIDC backend of the Keystone, {' and '.join(what)} too"


def _named(siblings: Sequence[Sibling]) -> str:
    """Some of them by name: a warning is read at a terminal."""
    more = len(siblings) - _SHOWN
    shown = ", ".join(each.name for each in siblings[:_SHOWN])
    return f"backend{'s' if len(siblings) > 1 else ''} {shown}{f' and {more} more' if more > 0 else ''}"


def _comparable(remote_id: str) -> str:
    return _SCHEME.sub("", remote_id).rstrip("/")


def _groups_in_directories(spec: Spec, directories: dict[str, str]) -> Iterator[str]:
    """Ephemeral users cannot become members of groups that live in a directory (case B36)."""
    for rule_index, rule in enumerate(spec.mappings or ()):
        for index, local in enumerate(rule.local):
            domain = local.group.domain if local.group else local.domain
            owner = directories.get((domain.name or "").lower()) if domain else None
            if owner and not (local.user and local.user.type == "local"):
                yield f"spec.mappings[{rule_index}].local[{index}]: a group of LDAP backend {owner}; {_CANNOT}"


def _mapped(rules: Sequence[JsonObject]) -> Iterator[str]:
    """The domains, in small letters, into whose groups declared mapping rules put ephemeral users."""
    for local in chain.from_iterable(rule["local"] for rule in rules):
        named = (local["group"].get("domain") if local.get("group") else local.get("domain")) or {}
        if named.get("name") and (local.get("user") or {}).get("type") != "local":
            yield named["name"].lower()


def _facts(name: str, spec: Spec) -> Sibling:
    oidc, block = spec.oidc, spec.oidc or spec.saml
    return Sibling(
        name=name,
        type=spec.type,
        domain=spec.domain.name,
        provider=(block.identity_provider_name or name) if block else "",
        remote_id=block.remote_id if block else "",
        remote_id_attribute=oidc.remote_id_attribute if oidc else "",
        introspects=oidc is not None and oidc.introspects,
        session_type=oidc.session_type if oidc else "",
        state_input_headers=oidc.state_input_headers if oidc else "",
        bundle=oidc.ca_bundle_secret_ref.name if oidc and oidc.ca_bundle_secret_ref else "",
    )


def _facts_of(obj: JsonObject) -> Sibling:
    spec, name = obj["spec"], obj["metadata"]["name"]
    oidc: dict[str, Any] = spec.get("oidc") or {}
    block: dict[str, Any] = oidc or spec.get("saml") or {}
    return Sibling(
        name=name,
        type=spec["type"],
        domain=spec["domain"]["name"],
        provider=block.get("identityProviderName") or name,
        remote_id=block.get("issuer") or block.get("idpEntityID") or "",
        remote_id_attribute=oidc.get("remoteIDAttribute", "HTTP_OIDC_ISS"),
        introspects=bool((oidc.get("oauth2Introspection") or {}).get("enabled")),
        session_type=oidc.get("sessionType", "client-cookie"),
        state_input_headers=oidc.get("stateInputHeaders", "none"),
        bundle=(oidc.get("caBundleSecretRef") or {}).get("name", ""),
    )
