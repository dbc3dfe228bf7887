"""What one round of a pass asks `apply` to do: a step and its actions, in order.

Enters: nothing. Leaves: frozen values. Manifests may hold Secrets, so no action prints its manifest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from moorage.core.meta import JsonObject, ResourceType

from .keys import Keys
from .seen import Step


@dataclass(frozen=True, slots=True)
class Ensure:
    """Apply a child; no request when it is as wanted."""

    resource: ResourceType
    manifest: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Project:
    """Create an immutable, content-named child unless it exists."""

    resource: ResourceType
    manifest: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Create:
    """Create a child that is never changed afterwards (a Job)."""

    resource: ResourceType
    manifest: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete exactly this live child. Foreground: it stays visible until its pods are gone."""

    resource: ResourceType
    live: JsonObject = field(repr=False)
    propagation: str = "Background"


@dataclass(frozen=True, slots=True)
class Prune:
    """Delete older generations of a bundle, all but the `keep` newest besides `current`.

    Args:
        confidential: data keys that end so hold what must not outlive its use: an older generation with another content there, or with
            such a key that the current one lacks, goes at once.
    """

    resource: ResourceType
    base: str
    current: str
    keep: int
    confidential: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MakeKeys:
    """Create a key repository of two fresh keys."""

    name: str


@dataclass(frozen=True, slots=True)
class StageKeys:
    """Write the keys of the next rotation to `<name>-rotation`."""

    name: str
    most: int
    repository: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class CommitKeys:
    """Make staged keys the repository, guarded by its resourceVersion, then remove the staging Secret."""

    repository: JsonObject = field(repr=False)
    staging: JsonObject = field(repr=False)
    keys: Keys = field(repr=False)


@dataclass(frozen=True, slots=True)
class MakePassphrase:
    """Create the Secret `name` with the passphrase that encrypts sessions of the sidecar."""

    name: str


@dataclass(frozen=True, slots=True)
class MakePair:
    """Create the Secret `name` with a fresh key pair of the SAML service provider."""

    name: str


@dataclass(frozen=True, slots=True)
class SwitchPair:
    """Put the staged key pair in the place of the present one, guarded by its resourceVersion; then the staging Secret goes."""

    present: JsonObject = field(repr=False)
    staged: JsonObject = field(repr=False)


@dataclass(frozen=True, slots=True)
class Tell:
    """Warn a person of what the actions before it changed."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Probe:
    """Ask the Identity API whether it lives, and whether it can use its database, which the answer calls by `database`."""

    url: str
    database: str


Action: TypeAlias = (
    Ensure
    | Project
    | Create
    | Remove
    | Prune
    | MakeKeys
    | StageKeys
    | CommitKeys
    | MakePassphrase
    | MakePair
    | SwitchPair
    | Tell
    | Probe
)


@dataclass(frozen=True, slots=True)
class Plan:
    """One step; `sub` counts in the metrics under the step's name."""

    step: Step
    actions: tuple[Action, ...]
