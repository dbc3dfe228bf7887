"""The snapshot of one pass over an instance.

Enters: what `observe.py` read. Leaves: frozen values that decide and report look at. It prints no key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import TypeAlias

from moorage.core.meta import JsonObject, controlled_by, is_terminating
from moorage.pocketid.rest_version import Version
from moorage.runtime.room import Event

from .plan import Step
from .types import PocketIDInstance


class Trouble(Enum):
    """What kind of failure a look ended with."""

    UNREACHABLE = "Unreachable"
    """No answer, or the server failed: it may pass by itself."""
    REFUSED = "APIClientError"
    """An answer that says no: a person must change something."""
    FORBIDDEN = "NotAdministrator"
    """The key is a valid one, of a user who is no administrator."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """A look that failed. `after`: seconds that the server asks us to wait, 0 when it does not say."""

    trouble: Trouble
    message: str
    after: float = 0.0


Look: TypeAlias = Version | Unknown

Live: TypeAlias = Mapping[tuple[str, str], JsonObject]
"""Wire objects by kind and name."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that the API server, or we ourselves, refused: its step, the reason for the condition, and why."""

    step: Step
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Deployed:
    """What there is of a deployed server.

    Args:
        image: that is wanted; "" when nobody names one.
        live: objects that carry the name of a child, ours and others.
        sources: Secrets that the declaration names, by name; absent ones are left out.
        trouble: what a pod that does not work says; "" when none does.
        done: steps of this pass whose writes have been made; they are not asked for again.
        refusal: a write of this pass that was refused; the pass ends.
        namespace_ends: the namespace is being deleted, nothing new may be made.
        notes: what this pass did and a person should read.
    """

    image: str
    live: Live = field(default_factory=dict, repr=False)
    sources: Mapping[str, JsonObject] = field(default_factory=dict, repr=False)
    trouble: str = ""
    done: frozenset[Step] = frozenset()
    refusal: Refusal | None = None
    namespace_ends: bool = False
    notes: tuple[Event, ...] = ()

    def child(self, kind: str, name: str) -> JsonObject | None:
        """The live object of that kind and name, or None."""
        return self.live.get((kind, name))

    def after(self, step: Step, kind: str, name: str, answer: JsonObject | None, note: Event | None = None) -> Deployed:
        """With the answer of a step's write; None for what was deleted."""
        live = {key: obj for key, obj in self.live.items() if key != (kind, name)}
        if answer is not None:
            live[kind, name] = answer
        notes = (*self.notes, note) if note is not None else self.notes
        return replace(self, live=live, done=self.done | {step}, notes=notes)


@dataclass(frozen=True, slots=True)
class Bound:
    """Objects that belong to an instance on its way out, as `Kind namespace/name`: those that are being deleted, too, and those that are not."""

    leaving: tuple[str, ...] = ()
    staying: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Keys:
    """Secrets of API keys that people bring.

    Args:
        own: that which the instance names; None when it is not there, or the server is deployed.
        shared: another instance names it, too.
        spare: those with our finalizer that no instance names.
        refused: our finalizer may not be put onto it; the instance works without.
    """

    own: JsonObject | None = field(default=None, repr=False)
    shared: bool = False
    spare: tuple[JsonObject, ...] = field(default=(), repr=False)
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One pass.

    Args:
        now: the time, in UTC.
        fault: why there is no API client; "" when there is one.
        look: what the server said; None when it was not asked.
        url: where it was asked.
        resync: seconds until the next look at a server that is well.
        deployed: what there is of a deployed server; None for one that runs already.
        crowd: what is too much for the list that all clients share, and which namespace has the most of it; "" when nothing is.
    """

    instance: PocketIDInstance
    url: str
    fault: str
    look: Look | None
    resync: float
    now: datetime
    deployed: Deployed | None = None
    bound: Bound = Bound()
    keys: Keys = Keys()
    crowd: str = ""

    @property
    def server_is_gone(self) -> bool:
        """Whether the server that was deployed does not run any more, so that nothing can be done at it."""
        if self.deployed is None:
            return False
        live = self.deployed.child(self.instance.spec.deployment_type, self.instance.metadata.name)
        return live is None or is_terminating(live)

    def owns(self, live: JsonObject) -> bool:
        """Whether this instance controls a live object."""
        return controlled_by(live, self.instance.metadata.uid)
