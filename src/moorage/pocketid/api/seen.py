"""The snapshot of one pass over an API, and the plans that change the world.

Enters: what `observe.py` read. Leaves: frozen values that decide and report look at.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from moorage.pocketid.rest_types import Api, Holder, Permission, audience, nfc
from moorage.pocketid.sibling import SharedPlan, Sibling

from .types import PocketIDAPI


@dataclass(frozen=True, slots=True)
class Create:
    """Create the API, or adopt the one that has its audience."""

    name: str
    resource: str
    reason: str = "APIClientError"


@dataclass(frozen=True, slots=True)
class Rename:
    """Give it this name; its audience never changes."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class SetPermissions:
    """Exactly these permissions; grants of those that go, go with them."""

    id: str
    permissions: tuple[Permission, ...]


@dataclass(frozen=True, slots=True)
class SetCimdAccess:
    """Open or close it for clients with a metadata document, with the permissions of these keys."""

    id: str
    enabled: bool
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Revoke:
    """Take back what a client holds on it."""

    id: str
    client_id: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete it at the server, with its permissions and grants."""

    id: str


Plan: TypeAlias = SharedPlan | Create | Rename | SetPermissions | SetCimdAccess | Revoke | Delete


@dataclass(frozen=True)
class Seen(Sibling[PocketIDAPI, Api]):
    """One pass.

    Args:
        barred: clients that hold something on the API, of which no resource of a namespace that it names has one; empty as long as it names none.
    """

    barred: tuple[Holder, ...] = ()

    @cached_property
    def name(self) -> str:
        """The name, as the server keeps it."""
        return nfc(self.resource.spec.name or self.resource.metadata.name)

    @cached_property
    def audience(self) -> str:
        """The audience, as the server keeps it."""
        return audience(self.resource.spec.resource)

    @cached_property
    def permissions(self) -> tuple[Permission, ...]:
        """The declared permissions, in the order of their keys, as they are sent."""
        declared = self.resource.spec.permissions or ()
        made = (Permission(item.key, nfc(item.name), nfc(item.description or "")) for item in declared)
        return tuple(sorted(made, key=lambda item: item.key))

    @cached_property
    def open_keys(self) -> tuple[str, ...]:
        """Keys of the permissions that clients with a metadata document may have."""
        return tuple(sorted(item.key for item in self.resource.spec.permissions or () if item.cimd_access))
