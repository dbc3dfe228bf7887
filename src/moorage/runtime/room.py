"""What a kind declares to the runtime: its doors, what wakes it, what it says.

Enters: nothing. Leaves: frozen declarations that `walk` and `operator` read. It performs nothing and is light to import.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject, Key, ResourceType, controller_of
from moorage.core.outcome import Outcome

if TYPE_CHECKING:
    from moorage.schema.kind import Kind

    from .world import World

Seen = TypeVar("Seen")
Plan = TypeVar("Plan")


class Caches(Protocol):
    """The shared read side: what the reflectors hold. Objects are shared and must not be changed."""

    writing: set[tuple[ResourceType, Key]]
    """Objects that passes are writing just now."""

    def get(self, rt: ResourceType, key: Key) -> JsonObject | None:
        """The object as last seen, or None."""
        ...

    def list(
        self, rt: ResourceType, namespace: str | None = None, *, index: str = "", value: str = ""
    ) -> tuple[JsonObject, ...]:
        """All objects, of one namespace or of one index value; None means all namespaces."""
        ...


@dataclass(frozen=True, slots=True)
class Event:
    """Something a person reads in `kubectl describe` of the room's own object."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Released:
    """Decide's answer when deletion work is over: the walk removes our finalizer. `events` are told on the way out."""

    events: tuple[Event, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What is said about an object after a pass.

    Args:
        conditions: all conditions that the object shall have; types left out are removed.
        status: other status fields by wire name; a value None removes the field, a field left out stays.
        events: what happened; one that the pass before told already is not told again.
    """

    conditions: tuple[Condition, ...] = ()
    status: JsonObject = field(default_factory=dict)
    events: tuple[Event, ...] = ()


Keys = Callable[[JsonObject, Caches], Iterable[Key]]
"""Which of our keys an object wakes."""

Relevant = Callable[[JsonObject | None, JsonObject | None], bool]
"""Whether a change (old, new) matters; None is an absent object."""


def any_change(_old: JsonObject | None, _new: JsonObject | None) -> bool:
    """Every event matters."""
    return True


def declared_change(old: JsonObject | None, new: JsonObject | None) -> bool:
    """What people declare changed: generation, labels, annotations, or deletion began.

    Status writes and finalizers do not wake. Source: spec/keystone.md 4.6.
    """
    if old is None or new is None:
        return True
    before, after = old["metadata"], new["metadata"]
    fields = ("uid", "generation", "labels", "annotations", "deletionTimestamp")
    return any(before.get(name) != after.get(name) for name in fields)


@dataclass(frozen=True, slots=True)
class Index:
    """A shared index: `values` of an object of `resource` under which `cache.list(index=name)` finds it.

    `declared`: they follow from the spec alone, so that they are asked for again only when the generation changes.
    """

    resource: ResourceType
    name: str
    values: Callable[[JsonObject], Iterable[str]]
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Watch:
    """A type that is cached for the room, and which keys its objects wake."""

    resource: ResourceType
    keys: Keys
    relevant: Relevant = any_change


def nobody(_obj: JsonObject, _caches: Caches) -> Iterable[Key]:
    """For types that are read from the cache but wake nobody."""
    return ()


def owned(kind: Kind[Any]) -> Keys:
    """Wake the controlling owner of that kind."""
    return owned_by(kind.resource)


def owned_by(owner: ResourceType) -> Keys:
    """Wake the controlling owner of that type."""

    def keys(obj: JsonObject, _caches: Caches) -> Iterable[Key]:
        found = controller_of(obj)
        if found is None or found.kind != owner.kind or found.api_version.partition("/")[0] != owner.group:
            return ()
        return (found.key if owner.namespaced else Key("", found.key.name),)

    return keys


def by_index(resource: ResourceType, index: str, value: Callable[[JsonObject], str]) -> Keys:
    """Wake the objects of `resource` that stand in `index` under `value(obj)`; "" wakes nobody."""

    def keys(obj: JsonObject, caches: Caches) -> Iterable[Key]:
        wanted = value(obj)
        if not wanted:
            return ()
        found = caches.list(resource, index=index, value=wanted)
        return [Key(item["metadata"].get("namespace", ""), item["metadata"]["name"]) for item in found]

    return keys


@dataclass(frozen=True)
class Room(Generic[Seen, Plan]):
    """One controller: the doors of a kind.

    Args:
        name: controller name in metrics and logs, such as `keystoneidentitybackend`.
        finalizer: ours; the walk adds it before anything else and removes it when `decide` answers Released.
            None: the room needs no deletion work.
        observe: reads only; None when the object is gone, of which it then forgets what it remembers (series of metrics included).
        decide: pure; the next plan, an outcome, or Released.
        apply: performs one plan; returns the snapshot with the answers.
        report: pure; conditions, status and events for an outcome.
        watches: besides the room's own kind.
        indices: that the room's watches and observe use.
        rounds: plans of one pass at most.
    """

    name: str
    kind: Kind[Any]
    finalizer: str | None
    observe: Callable[[World, Key], Awaitable[Seen | None]]
    decide: Callable[[Seen], Plan | Outcome | Released]
    apply: Callable[[World, Seen, Plan], Awaitable[Seen]]
    report: Callable[[Seen, Outcome], Report]
    watches: tuple[Watch, ...] = ()
    indices: tuple[Index, ...] = ()
    rounds: int = 40
