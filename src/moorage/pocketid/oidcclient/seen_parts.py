"""What a snapshot of a client holds of one matter each: groups, API access, SCIM, Secrets, and what of them failed.

Enters: what `observe.py` read. Leaves: frozen values; secrets in them are `SecretText`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText
from moorage.pocketid.rest_types import Access, Grant, ScimProvider

from .lookups import Unknown


@dataclass(frozen=True, slots=True)
class Fault:
    """Something declared that cannot be used now. `reason`: of Ready."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Groups:
    """Groups that may use the client, resolved at the server.

    Args:
        ids: sorted, without duplicates.
        faults: references of the client itself that lead nowhere now.
        pending: groups that list the client and are not on the server yet.
        lists_us: there is a PocketIDUserGroup that lists the client and stays.
        vanished: those that listed it are gone, and nobody has said since who may use it.
    """

    ids: tuple[str, ...] = ()
    faults: tuple[Fault, ...] = ()
    pending: tuple[str, ...] = ()
    lists_us: tuple[str, ...] = ()
    vanished: bool = False

    @property
    def restricted(self) -> bool | None:
        """Whether only they may use it; None when that cannot be told, and then nothing is changed."""
        if self.faults:
            return None
        if self.ids:
            return True
        return None if self.pending or self.vanished else False


@dataclass(frozen=True, slots=True)
class ApiNeed:
    """One entry of `apiAccess`, resolved. `audience` and `scopes` go into the Secret."""

    name: str
    api_id: str
    audience: str
    access: Access
    scopes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Apis:
    """What is declared and what is granted.

    `barred`: ids of APIs that are declared and do not admit the client. `grants` None: not asked. `narrowed`: by API, what the server made less of
    before: (sent, granted).
    """

    needs: tuple[ApiNeed, ...] = ()
    faults: tuple[Fault, ...] = ()
    barred: frozenset[str] = frozenset()
    grants: tuple[Grant, ...] | Unknown | None = None
    narrowed: Mapping[str, tuple[Access, Access]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Scim:
    """The SCIM provider. `asked`: the server was asked for it, and answered. `token` is what is declared; `fault`: why it cannot be used."""

    asked: bool = False
    provider: ScimProvider | None = None
    token: SecretText = SecretText("")  # noqa: RUF009 - immutable
    fault: str = ""
    look: Unknown | None = None


@dataclass(frozen=True, slots=True)
class Declared:
    """The declared secret: its value and revision, or why it cannot be used."""

    value: SecretText | None
    version: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class Kept:
    """Secrets of Kubernetes that matter: the one that is wanted, and the one of before a rename. `foreign`: the wanted name is somebody else's."""

    live: JsonObject | None = field(default=None, repr=False)
    former: JsonObject | None = field(default=None, repr=False)
    foreign: str = ""


@dataclass(frozen=True, slots=True)
class Failure:
    """A plan that was refused or not answered. `after`: seconds until it makes sense again, None for the queue's back-off."""

    message: str
    after: float | None = None
