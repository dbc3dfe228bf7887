"""The snapshot of one pass over a group, and the plans that change the world.

Enters: what `observe.py` read. Leaves: frozen values that decide and report look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from moorage.pocketid.rest_types import Claim, Group, nfc
from moorage.pocketid.sibling import SharedPlan, Sibling

from .types import PocketIDUserGroup


@dataclass(frozen=True, slots=True)
class Create:
    """Create the group, or adopt the one that has its name."""

    name: str
    friendly_name: str
    reason: str = "APIClientError"


@dataclass(frozen=True, slots=True)
class Rename:
    """Give it these names."""

    id: str
    name: str
    friendly_name: str


@dataclass(frozen=True, slots=True)
class SetClaims:
    """Exactly these claims."""

    id: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class SetMembers:
    """Exactly these members: those of others, and ours."""

    id: str
    users: frozenset[str]


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete it at the server."""

    id: str


Plan: TypeAlias = SharedPlan | Create | Rename | SetClaims | SetMembers | Delete


@dataclass(frozen=True)
class Seen(Sibling[PocketIDUserGroup, Group]):
    """One pass.

    Args:
        members: ids at the server of the declared users.
        missing: declared users that are not there, a phrase each; while there are any, nobody is taken out.
        clients: client IDs that the group lists, of those that have one.
        no_clients: PocketIDOIDCClients that the group lists and that do not exist.
        barred: those that it lists and may not let anybody into.
    """

    members: frozenset[str] = frozenset()
    missing: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    no_clients: tuple[str, ...] = ()
    barred: tuple[str, ...] = ()

    @cached_property
    def name(self) -> str:
        """The name, as the server keeps it."""
        return nfc(self.resource.spec.name or self.resource.metadata.name)

    @cached_property
    def friendly_name(self) -> str:
        """The name that people see, as the server keeps it."""
        return nfc(self.resource.spec.friendly_name or self.name)

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The claims, in the order of their keys."""
        declared = self.resource.spec.custom_claims or ()
        return tuple(sorted((Claim(item.key, item.value) for item in declared), key=lambda item: item.key))

    @property
    def ours(self) -> frozenset[str]:
        """Members that this resource added, as the status has them."""
        return frozenset(self.resource.status.managed_user_ids or ())
