"""What a look for the client came to, and the places where it may be beside its home.

Enters: what the server answered. Leaves: frozen values that are parts of the snapshot. A failed look is not a fact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from moorage.core.meta import Key
from moorage.pocketid.references import BoundInstance
from moorage.pocketid.rest_types import Client

if TYPE_CHECKING:
    from moorage.pocketid.reach import Facts


@dataclass(frozen=True, slots=True)
class Unknown:
    """A look that failed; it is not a fact. `after`: seconds to wait, None for the queue's own back-off."""

    message: str
    after: float | None = None


@dataclass(frozen=True, slots=True)
class Absent:
    """The server has no such client. `lost`: it had, and somebody else deleted it."""

    lost: bool = False


@dataclass(frozen=True, slots=True)
class Ambiguous:
    """Several clients have the name; none is taken."""

    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """The client on the server. `fresh`: read in this pass, not from the shared list; `dirty`: written since it was read."""

    client: Client
    fresh: bool = False
    dirty: bool = False


Lookup: TypeAlias = Found | Absent | Ambiguous | Unknown | None
"""None: the server was not asked."""


@dataclass(frozen=True, slots=True)
class Place:
    """An instance where the resource has a client and is not to have one.

    Args:
        where: as the status names it.
        id: of the client; "" when it may not have been made.
        facts: of the instance; None when it is gone, or is another server by now.
        home: whether the resource is bound to it still.
        trusted: it trusts the namespace with what exists there.
        believed: the selected instance trusts its namespace, so what was seen there says something of what is here.
        believes: it trusts the namespace of the selected instance, so what that one says of its server counts for what is left here.
        unproven: nobody looked at it for a while, so a declared id tells not enough.
        there: what a look of this pass found there.
    """

    where: BoundInstance
    id: str
    facts: Facts | None
    home: bool = False
    trusted: bool = False
    believed: bool = False
    believes: bool = False
    unproven: bool = False
    there: Lookup = None

    def looked_at(self, there: Lookup) -> Place:
        """With what a look found."""
        return replace(self, there=there, id=there.client.id if isinstance(there, Found) else "")

    @property
    def key(self) -> Key:
        """Namespace and name of the instance."""
        return Key(self.where.namespace, self.where.name)
