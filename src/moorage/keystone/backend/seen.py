"""The snapshot of one pass over a backend, and the plans that change the world.

Enters: what `observe.py` read, and what `apply.py` was answered. Leaves: frozen values that decide and report look at. It
reads nothing itself and holds no password.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.snapshot import Snapshot
from moorage.runtime.room import Event

from .materials import Document
from .render import VARIANTS, Projection
from .seen_federation import ObjectPlan, Objects
from .types import FINALIZER, KeystoneIdentityBackend
from .wanted import Wanted, wanted_of

if TYPE_CHECKING:
    from moorage.keystone.identity import Domain, Identity

DEFAULT_DOMAIN_ID: Final = "default"


@dataclass(frozen=True, slots=True)
class KeystoneFacts:
    """What a backend needs to know of its Keystone. `sidecar`: it declares an image for the sidecar."""

    name: str
    terminating: bool
    api_ready: bool
    api_message: str
    admin_user: str
    admin_secret: str
    sidecar: bool = True


@dataclass(frozen=True, slots=True)
class Lookup:
    """Domains found in Keystone: by the ids that prove ownership, and by the wanted name."""

    own: Domain | None
    named: Domain | None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A look that failed; it is not a fact about the domain."""

    message: str


@dataclass(frozen=True, slots=True)
class Mount:
    """What the Keystone Deployment runs.

    Args:
        exists: there is a Deployment.
        carries: its template mounts a file of this backend, or mounts something that cannot be read now.
        current: what it mounts is exactly what is wanted.
        rolled_out: every replica runs the template and is ready, and none an older one; of a federated backend, in every Deployment of the sidecar.
        replaced: the same, whether they are ready or not.
    """

    exists: bool
    carries: bool
    current: bool
    rolled_out: bool
    replaced: bool = False


@dataclass(frozen=True, slots=True)
class Rival:
    """A sibling that comes first to what this backend lays claim to as well; `why` names the fields."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class Directory:
    """What the last probe of the directory found, as a condition says it. Status Unknown: no probe was possible yet."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class CreateDomain:
    """Create the domain with an id that proves whose it is."""

    name: str
    id: str
    description: str | None


@dataclass(frozen=True, slots=True)
class UpdateDomain:
    """Repair drift of our own domain; `changes` holds drifted attributes only."""

    id: str
    changes: Mapping[str, str | bool]


@dataclass(frozen=True, slots=True)
class DisableDomain:
    """First half of deletion: Keystone refuses to delete an enabled domain."""

    id: str


@dataclass(frozen=True, slots=True)
class DeleteDomain:
    """Second half of deletion."""

    id: str


DomainPlan: TypeAlias = CreateDomain | UpdateDomain | DisableDomain | DeleteDomain
Plan: TypeAlias = DomainPlan | ObjectPlan


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that Keystone refused or did not answer. `refused`: what it was sent can never be taken, so a person must change it."""

    plan: Plan
    message: str
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Aside:
    """What is shown of a federated backend and decides nothing.

    Args:
        document: the provider's metadata, when there is any.
        sp_metadata: name of the Secret with our SAML metadata; "" while there is none.
        sp_ends: end of our SAML certificate, RFC 3339; "" when it cannot be told.
        cautions: what about the mapping rules will not work, a sentence each.
    """

    document: Document | None = None
    sp_metadata: str = ""
    sp_ends: str = ""
    cautions: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen(Snapshot):
    """One pass. The backend stays the same in it, and so does what was made of it.

    Args:
        admin_fault: why the admin password cannot be read; "" when it can.
        lookup: None when Keystone was not asked.
        objects: federation objects; None when Keystone was not asked, or the backend has none.
        wanted: what should be projected, or why nothing can be.
        rivals: siblings that are served in this backend's place; none while it is served itself.
        leaving: seconds since deletion was asked for; 0 while it was not.
        happened: events of this pass, in order.
        identity: the logged-in client, for `apply` only.
    """

    backend: KeystoneIdentityBackend
    keystone: KeystoneFacts | None
    wanted: Projection
    mount: Mount
    admin_fault: str = ""
    lookup: Lookup | Unknown | None = None
    objects: Objects | None = None
    aside: Aside = Aside()
    directory: Directory | None = None
    rivals: tuple[Rival, ...] = ()
    leaving: float = 0.0
    happened: tuple[Event, ...] = ()
    failure: Failure | None = None
    identity: Identity | None = field(default=None, repr=False, compare=False)

    @property
    def name(self) -> str:
        """Name of the backend."""
        return self.backend.metadata.name

    @property
    def domain_name(self) -> str:
        """The wanted domain name."""
        return self.backend.spec.domain.name

    @property
    def adopts(self) -> bool:
        """Whether the domain belongs to somebody else and is only used."""
        return self.backend.spec.domain.mode == "Adopt"

    @property
    def deletes_domain(self) -> bool:
        """Whether deleting this backend deletes its domain."""
        return not self.adopts and self.backend.spec.domain.deletion_policy == "Delete"

    @property
    def terminating(self) -> bool:
        """Whether deletion was requested."""
        return bool(self.backend.metadata.deletion_timestamp)

    @property
    def holds_finalizer(self) -> bool:
        """Whether our finalizer still holds the object."""
        return FINALIZER in self.backend.metadata.finalizers

    @cached_property
    def wanted_objects(self) -> Wanted | None:
        """The federation objects that are declared; None for a backend that has none by its type."""
        return wanted_of(self.backend)

    @property
    def file(self) -> str:
        """A file by whose presence people see that the backend is projected."""
        return VARIANTS[self.backend.spec.type].sign(self.backend)

    @property
    def domain_id(self) -> str:
        """Id of the domain, as far as it is known; "" before an adopted one was found."""
        if self.found is not None:
            return self.found.id
        return "" if self.adopts else domain_id_of(self.backend.metadata.uid)

    @property
    def found(self) -> Domain | None:
        """The domain that this backend provides, as Keystone has it; None when it has none or was not asked."""
        if not isinstance(self.lookup, Lookup):
            return None
        return self.lookup.named if self.adopts else self.lookup.own

    def stored(self, type_: str) -> Condition | None:
        """A condition as it stands in the status."""
        return conditions.find(self.stored_conditions, type_)

    @cached_property
    def stored_conditions(self) -> tuple[Condition, ...]:
        """The conditions of the status."""
        return tuple(
            Condition(
                item.type,
                item.status,
                item.reason,
                item.message,
                item.observed_generation or 0,
                item.last_transition_time,
            )
            for item in self.backend.status.conditions
        )

    def tells(self, *events: Event) -> tuple[Event, ...]:
        """What happened so far, and these."""
        return (*self.happened, *events)


def domain_id_of(uid: str) -> str:
    """The id of the domain that a backend creates: its uid without dashes (decisions, Keystone 5)."""
    return uid.replace("-", "").lower()


def own_ids(backend: KeystoneIdentityBackend) -> tuple[str, ...]:
    """Domain ids that prove ownership in Manage mode: the recorded one, and the one made from our uid."""
    ids = (backend.status.domain_id or "", domain_id_of(backend.metadata.uid))
    return tuple(dict.fromkeys(item for item in ids if item))
