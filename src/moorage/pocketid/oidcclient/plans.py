"""The plans of a client: each is one write, or one look that a write needs.

Enters: nothing. Leaves: frozen values that decide makes and apply performs. Each knows the part of the client that it is about, so that a
failure stops that part alone. None of them can be printed with a secret in it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Final, Literal, TypeAlias

from moorage.core.meta import JsonObject, Key
from moorage.core.secret import SecretText
from moorage.pocketid.rest_types import Access

from .secrets import Delete, Discard, Mint, Push

Side = Literal["light", "dark"]


class Part(Enum):
    """A part of the client that goes on by itself: its name, and the reason of Ready when it failed."""

    LOOK = ("look", "GetError")
    IDENTITY = ("identity", "APIClientError")
    REFRESH = ("refresh", "MetadataRefreshError")
    CONFIG = ("settings", "ReconcileError")
    GROUPS = ("groups", "ReconcileError")
    LOGOS = ("logos", "ReconcileError")
    SCIM = ("SCIM", "SCIMReconcileError")
    ACCESS = ("access", "APIAccessReconcileError")
    DECLARED = ("declared secret", "ClientSecretSyncError")
    SECRET = ("secret", "SecretReconcileError")

    @property
    def reason(self) -> str:
        """The reason of Ready."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Look:
    """Read the client again: before a write, because lists are of a moment ago, and after writes, because Ready needs a readback."""

    part: Part = Part.LOOK


@dataclass(frozen=True, slots=True)
class HoldForGroups:
    """Add or take away the finalizer that says that a group lists the client."""

    held: bool
    part: Part = Part.LOOK


@dataclass(frozen=True, slots=True)
class LeaveInstance:
    """Delete a client of the resource at an instance where it is not at home any more, or never came to be."""

    instance: Key
    client_id: str
    part: Part = Part.IDENTITY


@dataclass(frozen=True, slots=True)
class LookThere:
    """Look at an instance for what is there of the resource, and is not known for certain: before it is left, and before a deletion lets go."""

    instance: Key
    part: Part = Part.IDENTITY


@dataclass(frozen=True, slots=True)
class CreateClient:
    """Create it; an id that is taken is adopted instead."""

    body: JsonObject
    part: Part = Part.IDENTITY


@dataclass(frozen=True, slots=True)
class DeleteClient:
    """Delete it with all that hangs on it."""

    id: str
    part: Part = Part.IDENTITY


@dataclass(frozen=True, slots=True)
class RemoveAnnotation:
    """Take away a request of a person; `why` tells one that is not followed."""

    name: str
    why: str = ""
    part: Part = Part.REFRESH


@dataclass(frozen=True, slots=True)
class RefreshMetadata:
    """Have the server fetch the metadata document again."""

    part: Part = Part.REFRESH


@dataclass(frozen=True, slots=True)
class UpdateClient:
    """Replace what a write can say by the server's own object with what is declared in it; `changes` names what differs."""

    body: JsonObject
    changes: tuple[str, ...]
    part: Part = Part.CONFIG


@dataclass(frozen=True, slots=True)
class SetGroups:
    """Set the groups, all of them; the restriction itself is part of the client."""

    ids: tuple[str, ...]
    part: Part = Part.GROUPS


@dataclass(frozen=True, slots=True)
class PushLogo:
    """Have the server download one side's logo."""

    side: Side
    url: str
    part: Part = Part.LOGOS


@dataclass(frozen=True, slots=True)
class DeleteLogo:
    """Delete a logo that we put there."""

    side: Side
    part: Part = Part.LOGOS


@dataclass(frozen=True, slots=True)
class CreateScim:
    """Create the SCIM provider."""

    endpoint: str
    token: SecretText
    part: Part = Part.SCIM


@dataclass(frozen=True, slots=True)
class UpdateScim:
    """Replace endpoint and token."""

    id: str
    endpoint: str
    token: SecretText
    part: Part = Part.SCIM


@dataclass(frozen=True, slots=True)
class DeleteScim:
    """Delete the SCIM provider."""

    id: str
    part: Part = Part.SCIM


@dataclass(frozen=True, slots=True)
class SetGrant:
    """Replace what the client holds on an API."""

    api_id: str
    access: Access
    part: Part = Part.ACCESS


@dataclass(frozen=True, slots=True)
class RemoveGrant:
    """Take back what the client holds on an API."""

    api_id: str
    part: Part = Part.ACCESS


@dataclass(frozen=True, slots=True)
class ChangeSecrets:
    """One step of the secret engine at the server."""

    step: Mint | Push | Discard | Delete
    part: Part = Part.SECRET


@dataclass(frozen=True, slots=True)
class WriteSecret:
    """Write the credentials Secret wholesale."""

    manifest: JsonObject = field(repr=False)
    part: Part = Part.SECRET


@dataclass(frozen=True, slots=True)
class DeleteSecret:
    """Delete a credentials Secret of ours that is not wanted under this name, or at all."""

    name: str
    part: Part = Part.SECRET


@dataclass(frozen=True, slots=True)
class MarkInstance:
    """Move the instance's time of the last scheduled rotation forward."""

    at: datetime
    part: Part = Part.SECRET


Plan: TypeAlias = (
    Look | LookThere | HoldForGroups | LeaveInstance | CreateClient | DeleteClient | RemoveAnnotation | RefreshMetadata | UpdateClient | SetGroups
    | PushLogo | DeleteLogo | CreateScim | UpdateScim | DeleteScim | SetGrant | RemoveGrant | ChangeSecrets | WriteSecret | DeleteSecret
    | MarkInstance
)  # fmt: skip

NEEDS_LOOK: Final = (UpdateClient, SetGroups, PushLogo, DeleteLogo, ChangeSecrets)
"""Plans that are made from the client as it is now, never from a list of a moment ago."""
