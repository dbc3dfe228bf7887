"""The snapshot of one pass over a client.

Enters: what `observe.py` read, and what `apply.py` was answered. Leaves: frozen values that decide and report look at. It reads nothing
itself; secrets in it are `SecretText`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject, Key
from moorage.core.snapshot import Snapshot
from moorage.pocketid.references import READY
from moorage.pocketid.rest_types import CIMD, Client
from moorage.pocketid.rest_version import Feature
from moorage.pocketid.selection import is_bound_to
from moorage.pocketid.settings import Settings
from moorage.runtime.room import Event

from .lookups import Found, Lookup, Place
from .plans import LeaveInstance, Part, Plan
from .render import History
from .secret_snapshot import Secrets
from .seen_parts import Apis, Declared, Failure, Fault, Groups, Kept, Scim
from .types import PocketIDOIDCClient
from .types_status import Elsewhere

if TYPE_CHECKING:
    from moorage.pocketid.reach import Facts
    from moorage.pocketid.rest import PocketID


@dataclass(frozen=True)
class Seen(Snapshot):
    """One pass.

    Args:
        instance: the selected instance; None when `instance_fault` says why there is none.
        moved: the client was bound to another instance.
        places: where else it has clients: that one, and those of moves that did not come to their end.
        trusted: the instance trusts the namespace with what exists at the server already.
        api_fault: why there is no API client.
        rival: another resource that claims the same client; `held_back`: it is the other's.
        claimed: which other resource has the client of an id, at the selected instance or at the one of a key; for looks only.
        identities: federated identities with their keys read, as the server takes them, or why not.
        another: the recorded client is gone, and somebody made this one under its id.
        created: the client was made in this pass.
        done: plans performed in this pass.
        lacks: features that the server turned out not to have, and when.
        remote, elsewhere: the REST clients, of this instance and of places, for `apply` only.
    """

    derived = ("answers",)

    client: PocketIDOIDCClient
    settings: Settings
    now: datetime
    instance: Facts | None = None
    instance_fault: str = ""
    trusted: bool = False
    api_fault: str = ""
    moved: bool = False
    places: tuple[Place, ...] = ()
    rival: str = ""
    held_back: bool = False
    claimed: Callable[..., str | None] = field(default=lambda _id, _at=None: None, repr=False, compare=False)
    look: Lookup = None
    groups: Groups = Groups()  # noqa: RUF009 - frozen
    identities: tuple[JsonObject, ...] | Fault = ()
    apis: Apis = Apis()  # noqa: RUF009 - frozen
    scim: Scim = Scim()  # noqa: RUF009 - frozen
    declared: Declared | None = None
    kept: Kept = Kept()  # noqa: RUF009 - frozen
    secrets: Secrets | None = None
    history: History = History()  # noqa: RUF009 - frozen
    audiences: Mapping[Key, str] = field(default_factory=dict)
    refused_logos: frozenset[str] = frozenset()
    lacks: Mapping[Feature, datetime] = field(default_factory=dict)
    another: bool = False
    created: bool = False
    refreshing: bool = False
    gone: bool = False
    applied_logos: Mapping[str, str | None] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    pushed_version: str = ""
    last_pushed: str = field(default="", repr=False)
    instance_rotated: datetime | None = None
    done: tuple[Plan, ...] = ()
    failures: Mapping[Part, Failure] = field(default_factory=dict)
    happened: tuple[Event, ...] = ()
    remote: PocketID | None = field(default=None, repr=False, compare=False)
    elsewhere: Mapping[Key, PocketID] = field(default_factory=dict, repr=False, compare=False)

    @property
    def key(self) -> Key:
        """Key of the resource."""
        return self.client.key

    @property
    def found(self) -> Client | None:
        """The client on the server, None when it is not there or was not looked at."""
        return self.look.client if isinstance(self.look, Found) else None

    @property
    def terminating(self) -> bool:
        """Whether deletion was requested."""
        return bool(self.client.metadata.deletion_timestamp)

    @property
    def is_document(self) -> bool:
        """Whether a metadata document defines the client."""
        return self.client.spec.is_document or (self.found is not None and self.found.client_type == CIMD)

    @property
    def known_id(self) -> str | None:
        """The recorded id, as long as it says something about the selected instance."""
        return None if self.moved else self.client.status.client_id

    @property
    def adopted(self) -> bool:
        """Whether the client was found, not made, and is not recorded yet."""
        return self.found is not None and not self.created and not self.is_recorded and not self.held_back

    @property
    def way(self) -> Elsewhere | None:
        """What the status says of this instance while the client is on its way to it."""
        instance, moving = self.instance, self.client.status.moving
        if instance is None or not moving:
            return None
        found = (item for item in moving if is_bound_to(item.instance, instance.key))
        return next((item for item in found if item.instance.url == instance.url), None)

    @property
    def is_doubted(self) -> bool:
        """Whether the recorded id alone proves nothing: it is declared, nobody looked for a while, and the instance takes no namespace's word for clients."""
        recorded = self.way if self.moved else self.client.status
        return (
            not self.trusted
            and self.client.spec.client_id is not None
            and recorded is not None
            and bool(recorded.unproven)
        )

    @property
    def is_recorded(self) -> bool:
        """Whether the status has the id of the client that was found, of this instance."""
        if self.found is None or self.another:
            return False
        return self.found.id in (self.known_id, self.way.client_id if self.way else None)

    @property
    def moving(self) -> bool:
        """Whether a client is at the former instance, or may be, that is to go once there is one here; they may be the same."""
        return self.moved and any(place.home for place in self._going)

    @property
    def to_leave(self) -> tuple[Place, ...]:
        """Where a client is to go, the former home first."""
        if not self.places:
            return ()
        left = {plan for plan in self.done if isinstance(plan, LeaveInstance)}
        if Part.IDENTITY in self.failures and self.done and isinstance(self.done[-1], LeaveInstance):
            left.discard(self.done[-1])
        return tuple(
            place
            for place in self._going
            if (place.id or place.there is None)
            and LeaveInstance(place.key, place.id) not in left
            and not self._has_stayed(place)
        )

    @property
    def stays(self) -> tuple[Place, ...]:
        """Where the client is not deleted, as it is the one of the selected instance."""
        return tuple(place for place in self._going if self._has_stayed(place))

    def is_doubtful(self, place: Place) -> bool:
        """Whether a look must tell first what is there: something that the status does not know, or this very client at another address."""
        if place.there is not None:
            return False
        return not place.id or place.unproven or (self.client.spec.client_id is not None and self.found is not None)

    @property
    def told(self) -> Condition | None:
        """Ready of a former pass over this very declaration; None when there was none."""
        status = self.client.status
        if status.observed_generation != self.client.metadata.generation:
            return None
        return conditions.find(conditions.from_wire(item.to_wire() for item in status.conditions), READY)

    @property
    def left_behind(self) -> bool:
        """Whether the client that was made at the former instance may still be there and is to go."""
        return any(place.home for place in self.to_leave)

    @property
    def _going(self) -> tuple[Place, ...]:
        """Places whose instance is there, and that do not keep what they have."""
        if self.client.spec.deletion_policy == "Retain":
            return ()
        return tuple(place for place in self.places if place.facts is not None and not place.facts.leaves)

    def _has_stayed(self, place: Place) -> bool:
        """Whether the client of both instances is one: they stand for one server. An id that a person chose may be on two; ids of secrets are drawn.

        A server of somebody's own may give any of them: they count where the place that is left trusts the namespace of the new instance.
        """
        found, left, here = self.found, place.facts, self.instance
        if found is None or left is None or here is None or found.id != (place.id or self.client.spec.client_id):
            return False
        if left.url == here.url:
            return True
        if not place.believes:
            return False
        if self.client.spec.client_id is None or left.issuer == here.issuer:
            return True
        there = place.there.client.secrets if isinstance(place.there, Found) else ()
        return not {item.id for item in there}.isdisjoint(item.id for item in found.secrets)

    @property
    def shown_name(self) -> str:
        """The declared name."""
        return self.client.spec.name or self.client.metadata.name

    def applied(self, side: str) -> str | None:
        """The URL of the logo that was applied last."""
        if side in self.applied_logos:
            return self.applied_logos[side]
        status = self.client.status
        return status.logo_url if side == "light" else status.dark_logo_url

    @cached_property
    def answers(self) -> dict[Any, Any]:
        """What rules said of this very snapshot, for `rule.first_answer`."""
        return {}

    def tells(self, *events: Event) -> Seen:
        """The snapshot with what happened."""
        return self.after(happened=(*self.happened, *events))

    def with_client(self, client: Client, *, fresh: bool = True, dirty: bool = False) -> Seen:
        """The snapshot with the client as the server answered; its secrets follow."""
        secrets = self.secrets
        if secrets is not None:
            secrets = secrets.after(held=client.secrets)
        return self.after(look=Found(client, fresh, dirty), secrets=secrets)
