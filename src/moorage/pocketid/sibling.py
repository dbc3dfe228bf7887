"""What groups, APIs and users have in common: the snapshot of a pass, the shared plans, and the rules that stand around a kind's own.

Enters: what a kind's `observe.py` read. Leaves: the first plan of a list of rules, or what the pass came to, and the condition that says
so. Pure. A write that failed holds up no other write, unless the server is not to be asked at all just now.
Source: spec/pocketid.md 2.2 to 2.4, 3.3, 3.13 to 3.15; contracts of issue 5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Self, TypeAlias, TypeVar

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import Key
from moorage.core.outcome import Done, Failed, Outcome, Waiting
from moorage.runtime.room import Event, Released, Report

from .references import LEAVE, READY, BoundInstance

if TYPE_CHECKING:
    from .rest import PocketID

REFUSED_POLL: Final = 300.0
"""Seconds until a write that was refused is tried again; a changed object is looked at at once."""
BLOCKED_POLL: Final = 5.0
"""Seconds until another look at what only another resource can release."""
NEVER_EQUAL: Final = "Pocket-ID took the write and answers with other values"
BLOCKED: Final = "DeletionBlocked"
SHARED_REASONS: Final = (
    "Reconciled", BLOCKED, "InstanceSelectionError", "InstanceNotReady", "APIClientNotReady", "APIClientError", "GetError",
    "Conflict", "ReconcileError", "Deleting", "TooManySteps",
)  # fmt: skip
SHARED_EVENTS: Final = (
    "InstanceSelectionError", "InstanceNotReady", "APIClientNotReady", "APIClientError", "GetError", "Conflict", "ReconcileError",
    "TooManySteps", "LeftBehind", "DeletedElsewhere", "InstanceMoved",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Bond:
    """The instance of an object, for one pass.

    Args:
        instance: the selected one, or, of a terminating object, the one that it is bound to; None: `fault` says why there is none.
        ready: whether it can be used; `why` says what holds it up.
        client: speaks to its server; None: `why` says why not.
        left: the instance that the object was bound to before.
        issuer: what people open in a browser, without a trailing slash.
        leaves: the instance leaves what belongs to it at the server, whatever is deleted.
        trusts: objects of this namespace may make administrators, and take over who and what exists.
    """

    instance: BoundInstance | None = None
    fault: str = ""
    ready: bool = False
    why: str = ""
    client: PocketID | None = field(default=None, repr=False, compare=False)
    left: BoundInstance | None = None
    issuer: str = ""
    leaves: bool = False
    trusts: bool = False


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that Pocket-ID refused or did not answer.

    Args:
        after: seconds until it makes sense again, None for the queue's own back-off.
        stops: the server is not to be asked anything more in this pass.
        refused_by_directory: LDAP manages the object.
    """

    message: str
    after: float | None = None
    stops: bool = False
    refused_by_directory: bool = False


@dataclass(frozen=True, slots=True)
class Record:
    """Write fields of the status now, before the server is touched: what we are about to do must outlive us. `why` is for people."""

    fields: tuple[tuple[str, Any], ...]
    why: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Put the finalizer that tells of referring clients onto the object, or take it off."""

    finalizer: str
    on: bool


SharedPlan: TypeAlias = Record | Mark
R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True)
class Sibling(Generic[R, S]):
    """One pass over a resource of type R whose counterpart at the server is an S.

    Args:
        known: id at the server, as the status remembers it; None after a move to another instance.
        found: the counterpart; None: there is none, or it was not asked for (`look` then says why).
        fresh: `found` was read in this pass, not taken from the shared list.
        lost: the status knows an id that the server does not.
        look: why the server could not be asked.
        referring: PocketIDOIDCClients that name the resource and stay.
        rival: another resource that has the counterpart already.
        failed: plans that were refused or not answered in this pass.
        tried: plans performed in this pass.
    """

    resource: R
    bond: Bond
    resync: float
    known: str | None = None
    found: S | None = None
    fresh: bool = False
    lost: bool = False
    gone: bool = False
    look: Trouble | None = None
    referring: tuple[str, ...] = ()
    rival: str = ""
    failed: tuple[tuple[Any, Trouble], ...] = ()
    tried: tuple[Any, ...] = ()
    happened: tuple[Event, ...] = ()

    def with_found(self, found: S, *events: Event) -> Self:
        """The snapshot with the counterpart as the server answered."""
        return replace(self, found=found, fresh=True, lost=False, happened=(*self.happened, *events))


Answer: TypeAlias = Any
"""A plan of the kind, an Outcome, Released, or None for "go on"."""
Rule: TypeAlias = Callable[[Any], Answer]


def first_answer(rules: Sequence[Rule], seen: Sibling[Any, Any]) -> Any:
    """The first plan that was not tried; else the first trouble; else Done until the resync.

    A plan that is wanted again although it was performed would be wanted for ever: it is told instead.
    """
    held_up: Outcome | None = None
    for rule in rules:
        answer = rule(seen)
        if answer is None:
            continue
        if isinstance(answer, Released | Outcome):
            return held_up or answer
        trouble = next((item for plan, item in seen.failed if plan == answer), None)
        if trouble is None and answer in seen.tried:
            trouble = Trouble(NEVER_EQUAL, after=seen.resync)
        if trouble is None:
            return answer
        held_up = held_up or outcome_of(reason_of(answer), trouble)
        if trouble.stops:
            return held_up
    return held_up or Done(after=seen.resync)


def reason_of(plan: Any) -> str:
    """A counterpart that cannot be made is told apart from one that cannot be changed."""
    return str(getattr(plan, "reason", "ReconcileError"))


def outcome_of(reason: str, trouble: Trouble, *, keep: bool = False) -> Failed | Waiting:
    """What a trouble comes to: the queue's back-off, or a wait."""
    if trouble.after is None:
        return Failed(reason, trouble.message, keep=keep)
    return Waiting(reason, trouble.message, after=trouble.after, keep=keep)


# --- rules before a kind's own


def instance_is_selected(seen: Sibling[Any, Any]) -> Answer:
    """Exactly one instance; a watch wakes us when that changes."""
    return None if seen.bond.instance else Waiting("InstanceSelectionError", seen.bond.fault, after=seen.resync)


def instance_is_ready(seen: Sibling[Any, Any]) -> Answer:
    """A server that cannot be used now says nothing about the object."""
    bond = seen.bond
    if bond.ready or bond.instance is None:
        return None
    message = f"PocketIDInstance {bond.instance.namespace}/{bond.instance.name} is not ready: {bond.why}"
    return Waiting("InstanceNotReady", message, after=seen.resync, keep=True)


def server_can_be_asked(seen: Sibling[Any, Any]) -> Answer:
    """Address and key are there."""
    return None if seen.bond.client else Waiting("APIClientNotReady", seen.bond.why, after=seen.resync, keep=True)


def look_worked(seen: Sibling[Any, Any]) -> Answer:
    """A failed look is no fact."""
    return outcome_of("GetError", seen.look, keep=True) if seen.look else None


def nobody_else_has_it(seen: Sibling[Any, Any]) -> Answer:
    """Two resources never write one counterpart; the one that has it keeps it."""
    return Waiting("Conflict", seen.rival, after=REFUSED_POLL) if seen.rival else None


BEFORE: Final[tuple[Rule, ...]] = (
    instance_is_selected, instance_is_ready, server_can_be_asked, look_worked, nobody_else_has_it,
)  # fmt: skip


def within_limits(limits: Callable[[Any], Iterable[str]]) -> Rule:
    """The rule that nothing is sent which only the server refuses; its limit is named (decisions, Admission 4)."""

    def it_fits(seen: Sibling[Any, Any]) -> Answer:
        found = "; ".join(limits(seen.resource))
        return Waiting("ReconcileError", found, after=REFUSED_POLL) if found else None

    return it_fits


def bound_first(*forget: str) -> Rule:
    """The rule that the instance is written down before anything is made there; after a move these status fields are of the old one."""

    def it_is_bound(seen: Sibling[Any, Any]) -> Answer:
        wanted, stored = seen.bond.instance, seen.resource.status.instance
        if wanted is None or (stored is not None and stored.to_wire() == wanted.to_wire()):
            return None
        moved = tuple((name, None) for name in forget) if seen.bond.left else ()
        return Record((("instance", wanted.to_wire()), *moved), "bound to its instance")

    return it_is_bound


def marked(finalizer: str) -> Rule:
    """The rule that the finalizer stands exactly while a client refers to the object."""

    def it_is_marked(seen: Sibling[Any, Any]) -> Answer:
        meta, on = seen.resource.metadata, bool(seen.referring)
        if (finalizer in meta.finalizers) == on or (on and meta.deletion_timestamp):
            return None
        return Mark(finalizer, on)

    return it_is_marked


# --- rules of deletion


def no_client_refers(seen: Sibling[Any, Any]) -> Answer:
    """The object stays whole until the last client lets go."""
    if not seen.referring:
        return None
    message = f"deletion waits until these PocketIDOIDCClients name it no more: {', '.join(seen.referring)}"
    return Waiting(BLOCKED, message, after=BLOCKED_POLL, keep=True)


def may_be_unfinished(seen: Sibling[Any, Any]) -> bool:
    """Whether a counterpart may be there although the status has no id: the instance is written down before anything is made."""
    bound = seen.resource.status.instance is not None and seen.bond.instance is not None
    return bound and seen.known is None and not (seen.bond.leaves or seen.gone or _is_retained(seen))


def what_was_begun_is_known(seen: Sibling[Any, Any]) -> Answer:
    """Before a deletion lets go the server is asked once."""
    if not may_be_unfinished(seen):
        return None
    return instance_is_ready(seen) or server_can_be_asked(seen) or look_worked(seen)


def nothing_is_left_there(seen: Sibling[Any, Any]) -> Answer:
    """No counterpart was made, or its instance is gone, or it is gone itself."""
    return Released(seen.happened) if seen.known is None or seen.bond.instance is None or seen.gone else None


def retained(seen: Sibling[Any, Any]) -> Answer:
    """The counterpart stays by policy."""
    if not _is_retained(seen):
        return None
    return Released((Event("Normal", "Retained", f"{seen.known} stays in Pocket-ID, as deletionPolicy says"),))


def _is_retained(seen: Sibling[Any, Any]) -> bool:
    return bool(seen.resource.spec.deletion_policy == "Retain")


def instance_leaves_it(seen: Sibling[Any, Any]) -> Answer:
    """The counterpart stays with all that hangs on it, as the instance says."""
    if not seen.bond.leaves:
        return None
    return Released((Event("Normal", "Retained", f"{seen.known} stays in Pocket-ID, as {LEAVE} of its instance says"),))


# --- what a person reads


def ready_of(seen: Sibling[Any, Any], outcome: Outcome) -> Condition:
    """The one condition."""
    if isinstance(outcome, Done):
        return conditions.true(READY, "Reconciled", "Pocket-ID holds what is declared")
    if outcome.reason == BLOCKED:
        return conditions.true(READY, BLOCKED, outcome.message)
    stored = conditions.find(stored_conditions(seen.resource), READY)
    same = seen.resource.status.observed_generation == seen.resource.metadata.generation
    if isinstance(outcome, Waiting | Failed) and outcome.keep and same and stored is not None and stored.is_true:
        return conditions.true(READY, stored.reason, stored.message)
    return conditions.false(READY, outcome.reason, outcome.message)


def stored_conditions(resource: Any) -> tuple[Condition, ...]:
    """Conditions as the status holds them."""
    return conditions.from_wire([item.to_wire() for item in resource.status.conditions])


def said(seen: Sibling[Any, Any], outcome: Outcome, status: Mapping[str, Any]) -> Report:
    """The report of a pass with a kind's own status fields."""
    events = list(seen.happened)
    if not isinstance(outcome, Done):
        kind: Literal["Normal", "Warning"] = "Normal" if outcome.reason == BLOCKED else "Warning"
        events.append(Event(kind, outcome.reason, outcome.message))
    return Report((ready_of(seen, outcome),), dict(status), tuple(events))


def key_in(ref: Any, namespace: str) -> Key:
    """The key that a reference names from within a namespace."""
    return Key(ref.namespace or namespace, ref.name)


def moment(time: datetime | None) -> str | None:
    """A time for a status: RFC 3339 in UTC, whole seconds, as the server gives it back later."""
    return None if time is None else time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
