"""What one round of a pass over a deployed instance asks `apply` to do.

Enters: nothing. Leaves: frozen values. Manifests may hold Secrets, so no plan prints its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

Step = Literal["EncryptionKey", "APIKey", "Settings", "Volume", "Service", "Workload", "Route"]
"""Parts of a deployed server, in the order in which they are made."""


@dataclass(frozen=True, slots=True)
class MakeEncryptionKey:
    """Create the Secret that holds the encryption key, never over one that exists.

    Args:
        key: the key that a person gave; None: a fresh one.
    """

    key: SecretText | None = None


@dataclass(frozen=True, slots=True)
class MakeApiKey:
    """Put a fresh API key into its Secret.

    Args:
        live: our Secret that holds no usable key; None when there is none.
    """

    live: JsonObject | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Ensure:
    """Apply a child; no request that writes when it is as wanted."""

    step: Step
    manifest: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete exactly this live child of ours."""

    step: Step
    live: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class HoldKey:
    """Put our finalizer onto the Secret that a person brings, or take it off.

    Args:
        secret: as it lives.
    """

    secret: JsonObject = field(repr=False)
    held: bool


Plan: TypeAlias = MakeEncryptionKey | MakeApiKey | Ensure | Remove | HoldKey
