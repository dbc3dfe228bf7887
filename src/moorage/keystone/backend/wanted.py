"""What a federated backend declares, as names in Keystone; and what its status says that it put there.

Enters: a declared backend. Leaves: frozen names, rules and grants. Pure; it knows no id that Keystone chose.
Source: seed 000, OIDCBackendSpec, SAMLBackendSpec, FederationGroupSpec; spec/keystone.md 4.2; decisions, Keystone 3 and 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from moorage.core.meta import JsonObject

from .federation import federated, provider_name
from .mapping_rules import keystone_rules
from .types import ADOPT, Applied, AppliedGroup, AppliedProvider, KeystoneIdentityBackend
from .types_federation import FederationGroup

NAME_LIMIT: Final = 64
"""Characters of an id that Keystone's tables hold."""


@dataclass(frozen=True, slots=True)
class Project:
    """A project by names."""

    domain: str
    name: str

    def __str__(self) -> str:
        return f"project {self.name!r} of domain {self.domain!r}"


@dataclass(frozen=True, slots=True)
class Share:
    """A declared role assignment of a group by names; on the backend's own domain without a project."""

    group: str
    role: str
    project: Project | None = None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The federation objects of one backend.

    Args:
        attribute: WSGI key of the asserted remote id.
        shares: declared role assignments, each once.
    """

    provider: str
    mapping: str
    protocol: str
    remote_id: str
    attribute: str
    rules: tuple[JsonObject, ...] = ()
    groups: tuple[FederationGroup, ...] = ()
    shares: tuple[Share, ...] = field(default=(), repr=False)


def wanted_of(backend: KeystoneIdentityBackend) -> Wanted | None:
    """What a backend of type OIDC or SAML wants; None for other types."""
    block, provider = federated(backend), provider_name(backend)
    if block is None or backend.spec.type not in ("OIDC", "SAML"):
        return None
    groups = backend.spec.groups or ()
    return Wanted(
        provider=provider,
        mapping=mapping_of(provider),
        protocol=block.protocol_id,
        remote_id=block.remote_id,
        attribute=block.remote_id_attribute,
        rules=tuple(keystone_rules(backend.spec.mappings)),
        groups=groups,
        shares=tuple(dict.fromkeys(share for group in groups for share in _shares(group, backend.spec.domain.name))),
    )


def _shares(group: FederationGroup, domain: str) -> list[Share]:
    return [
        Share(
            group.name,
            item.role,
            Project(item.project.domain_name or domain, item.project.name) if item.project else None,
        )
        for item in group.role_assignments or ()
    ]


def mapping_of(provider: str) -> str:
    """Id of the mapping beside an identity provider; cut to what Keystone's tables hold."""
    name = f"{provider}-mapping"
    if len(name) <= NAME_LIMIT:
        return name
    return f"{provider[:46]}-{sha256(provider.encode()).hexdigest()[:8]}-mapping"


def same_rules(one: Iterable[JsonObject], other: Iterable[JsonObject]) -> bool:
    """Whether two lists of rules mean the same to Keystone, entry by entry: what says nothing does not count."""
    return bool(_normal(list(one)) == _normal(list(other)))


def _normal(value: Any) -> Any:
    """Without members that are null, false, or empty; order is kept, text stays as it is."""
    if isinstance(value, Mapping):
        found = {key: _normal(item) for key, item in value.items()}
        return {key: item for key, item in found.items() if item or isinstance(item, str)}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_normal(item) for item in value]
    return value


# --- ownership


def marker(backend: KeystoneIdentityBackend) -> str:
    """What the description of our identity provider says; its uid proves ownership without any status."""
    meta = backend.metadata
    return f"KeystoneIdentityBackend {meta.namespace}/{meta.name} (uid {meta.uid}), kept by Moorage"


def placeholder(backend: KeystoneIdentityBackend, provider: str) -> str:
    """A remote id that nobody asserts, for an identity provider that must not have the real one yet, or any more."""
    return f"moorage:none:{sha256(f'{backend.metadata.uid}/{provider}'.encode()).hexdigest()[:32]}"


def adopts_objects(backend: KeystoneIdentityBackend) -> bool:
    """Whether a person let this backend take over objects that it did not create."""
    return (backend.metadata.annotations or {}).get(ADOPT) == "true"


def applied_of(backend: KeystoneIdentityBackend) -> Applied:
    """What the status says that this backend put into Keystone."""
    return backend.status.applied or Applied()


def recorded_provider(backend: KeystoneIdentityBackend, name: str) -> AppliedProvider | None:
    """The record of an identity provider."""
    return next((item for item in applied_of(backend).identity_providers if item.name == name), None)


def recorded_group(backend: KeystoneIdentityBackend, name: str) -> AppliedGroup | None:
    """The record of a group."""
    return next((item for item in applied_of(backend).groups if item.name == name), None)
