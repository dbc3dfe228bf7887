"""What one pass saw of a federated backend in Keystone, and the plans that change it.

Enters: what `observe_federation.py` read, and what `apply_federation.py` was answered. Leaves: frozen values that decide and report look at. It
reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from moorage.core.meta import JsonObject

from .wanted import Share

if TYPE_CHECKING:
    from moorage.keystone.identity_access import Grant
    from moorage.keystone.identity_federation import IdentityProvider, Protocol


@dataclass(frozen=True)
class Objects:
    """Federation objects as Keystone has them: those that are wanted, and those that the status names.

    Args:
        providers: by id; one that does not exist is absent.
        protocols: by identity provider; of existing ones only.
        mappings: rules by id; one that does not exist is absent.
        groups: ids by name, of the backend's domain.
        grants: role assignments of groups that exist on what is declared; None: not asked for.
        resolved: declared shares as ids; those of a group that does not exist yet have the group "".
        missing: roles, projects and domains that do not exist, a few words each.
        revoked: recorded grants that are known to be gone.
        taken_by: the identity provider that holds our remote id; "" when nobody does.
        users: of mappings that are about to be rewritten or deleted, who else's protocol refers to them, in words.
    """

    providers: Mapping[str, IdentityProvider] = field(default_factory=dict)
    protocols: Mapping[str, tuple[Protocol, ...]] = field(default_factory=dict)
    mappings: Mapping[str, Sequence[JsonObject]] = field(default_factory=dict, repr=False)
    groups: Mapping[str, str] = field(default_factory=dict)
    grants: frozenset[Grant] = frozenset()
    resolved: Mapping[Share, Grant] = field(default_factory=dict, repr=False)
    missing: tuple[str, ...] = ()
    revoked: frozenset[Grant] = frozenset()
    taken_by: str = ""
    users: Mapping[str, str] = field(default_factory=dict)

    def after(self, **changes: Any) -> Objects:
        """These objects with an answer in them."""
        return replace(self, **changes)

    def with_provider(self, provider: IdentityProvider) -> Objects:
        """An identity provider was created or changed."""
        protocols = {provider.id: (), **self.protocols}
        return self.after(providers={**self.providers, provider.id: provider}, protocols=protocols, taken_by="")

    def without_provider(self, id: str) -> Objects:
        """An identity provider is gone, and its protocols with it."""
        return self.after(providers=_without(self.providers, id), protocols=_without(self.protocols, id))

    def with_protocol(self, provider: str, protocol: Protocol) -> Objects:
        """A protocol was created or changed."""
        others = [item for item in self.protocols.get(provider, ()) if item.id != protocol.id]
        return self.after(protocols={**self.protocols, provider: (*others, protocol)})

    def without_protocol(self, provider: str, id: str) -> Objects:
        """A protocol is gone."""
        left = tuple(item for item in self.protocols.get(provider, ()) if item.id != id)
        return self.after(protocols={**self.protocols, provider: left})

    def with_mapping(self, id: str, rules: Sequence[JsonObject]) -> Objects:
        """A mapping was created or changed."""
        return self.after(mappings={**self.mappings, id: rules})

    def without_mapping(self, id: str) -> Objects:
        """A mapping is gone."""
        return self.after(mappings=_without(self.mappings, id))

    def with_groups(self, made: Mapping[str, str]) -> Objects:
        """Groups exist now; the shares that waited for them know their id."""
        resolved = {
            share: replace(grant, group=made[share.group]) if share.group in made else grant
            for share, grant in self.resolved.items()
        }
        return self.after(groups={**self.groups, **made}, resolved=resolved)

    def protocol(self, provider: str, id: str) -> Protocol | None:
        """A protocol of an identity provider."""
        return next((item for item in self.protocols.get(provider, ()) if item.id == id), None)


def _without(items: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: item for key, item in items.items() if key != name}


# --- plans


@dataclass(frozen=True, slots=True)
class CreateProvider:
    """Create an identity provider, closed."""

    provider: IdentityProvider


@dataclass(frozen=True, slots=True)
class UpdateProvider:
    """Change an identity provider in place; `changes` holds what differs only. `what` is for the event."""

    id: str
    changes: Mapping[str, Any]
    what: str = ""


@dataclass(frozen=True, slots=True)
class CloseProvider:
    """Disable an identity provider: nobody logs in through it from now on. `why` is for the event."""

    id: str
    why: str
    remote_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenProvider:
    """Enable an identity provider, the last step of attaching."""

    id: str


@dataclass(frozen=True, slots=True)
class DeleteProvider:
    """Delete a closed identity provider, last of its objects."""

    id: str


@dataclass(frozen=True, slots=True)
class CreateMapping:
    """Create the mapping."""

    id: str
    rules: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class UpdateMapping:
    """Replace the rules in place."""

    id: str
    rules: Sequence[JsonObject]


@dataclass(frozen=True, slots=True)
class DeleteMapping:
    """Delete a mapping that nothing uses any more."""

    id: str


@dataclass(frozen=True, slots=True)
class LeaveMapping:
    """Let go of a mapping that a protocol of somebody else refers to; `user` says whose. Nothing is written."""

    id: str
    user: str


@dataclass(frozen=True, slots=True)
class CreateProtocol:
    """Create a protocol."""

    provider: str
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class UpdateProtocol:
    """Change a protocol in place."""

    provider: str
    protocol: Protocol


@dataclass(frozen=True, slots=True)
class DeleteProtocol:
    """Delete a protocol: of a provider on its way out, or one that was renamed."""

    provider: str
    id: str


@dataclass(frozen=True, slots=True)
class CreateGroups:
    """Create groups in the backend's domain: names with their descriptions."""

    domain: str
    groups: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class GrantRoles:
    """Grant what is declared and missing."""

    grants: tuple[Grant, ...]


@dataclass(frozen=True, slots=True)
class RevokeRoles:
    """Take back what was granted by us and is declared no more; names are for the event."""

    grants: tuple[tuple[Grant, str], ...]


MappingPlan: TypeAlias = CreateMapping | UpdateMapping | CreateGroups | GrantRoles | RevokeRoles
"""Plans whose failure is told by MappingsReady; of the others FederationObjectsReady tells."""
ObjectPlan: TypeAlias = (
    CreateProvider
    | UpdateProvider
    | CloseProvider
    | OpenProvider
    | DeleteProvider
    | DeleteMapping
    | LeaveMapping
    | CreateProtocol
    | UpdateProtocol
    | DeleteProtocol
    | MappingPlan
)


def ids(grants: Iterable[Grant]) -> frozenset[Grant]:
    """Grants that name a group; others wait for theirs."""
    return frozenset(item for item in grants if item.group)
