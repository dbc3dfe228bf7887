"""The snapshot of one pass over an instance.

Enters: what `observe.py` read. Leaves: frozen values that decide and report look at. It prints no key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TypeAlias

from moorage.core.meta import JsonObject, controlled_by
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
class Seen:
    """One pass.

    Args:
        fault: why there is no API client; "" when there is one.
        look: what the server said; None when it was not asked.
        url: where it was asked.
        resync: seconds until the next look at a server that is well.
        deployed: what there is of a deployed server; None for one that runs already.
    """

    instance: PocketIDInstance
    url: str
    fault: str
    look: Look | None
    resync: float
    deployed: Deployed | None = None

    def owns(self, live: JsonObject) -> bool:
        """Whether this instance controls a live object."""
        return controlled_by(live, self.instance.metadata.uid)
