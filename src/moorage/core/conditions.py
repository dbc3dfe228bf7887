"""Conditions: what a person reads first. Merging keeps `lastTransitionTime` while the status stays.

Source: Kubernetes API conventions, "Typical status properties"; metav1.Condition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

Status = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition as a room wants it, or as it was stored.

    `observed_generation` 0 and `last_transition_time` "" mean: to be filled in by `merge`.
    """

    type: str
    status: Status
    reason: str
    message: str = ""
    observed_generation: int = 0
    last_transition_time: str = ""

    @property
    def is_true(self) -> bool:
        return self.status == "True"

    def to_wire(self) -> dict[str, Any]:
        wire: dict[str, Any] = {
            "type": self.type,
            "status": self.status,
            "reason": self.reason,
            "message": self.message,
            "lastTransitionTime": self.last_transition_time,
        }
        if self.observed_generation:
            wire["observedGeneration"] = self.observed_generation
        return wire


def true(type_: str, reason: str, message: str = "") -> Condition:
    """A condition that holds."""
    return Condition(type_, "True", reason, message)


def false(type_: str, reason: str, message: str = "") -> Condition:
    """A condition that does not hold."""
    return Condition(type_, "False", reason, message)


def from_wire(stored: Iterable[Mapping[str, Any]] | None) -> tuple[Condition, ...]:
    """The conditions of a stored status, in their order."""
    return tuple(
        Condition(
            type=item["type"],
            status=item["status"],
            reason=item.get("reason", ""),
            message=item.get("message", ""),
            observed_generation=item.get("observedGeneration", 0),
            last_transition_time=item.get("lastTransitionTime") or "",
        )
        for item in stored or ()
    )


def find(conditions: Iterable[Condition], type_: str) -> Condition | None:
    """The condition of that type, or None."""
    for item in conditions:  # a pass asks some twenty times: a generator would cost more than the search
        if item.type == type_:
            return item
    return None


def merge(
    stored: Sequence[Condition], wanted: Sequence[Condition], *, generation: int, now: str
) -> tuple[Condition, ...]:
    """The conditions to store: stored order first, new ones appended; types that nobody wants are dropped.

    Args:
        generation: `metadata.generation` that the pass looked at.
        now: RFC 3339 UTC time with whole seconds, used where a status flips.
    """
    by_type = {item.type: item for item in wanted}
    ordered = [item.type for item in stored if item.type in by_type]
    ordered += [item.type for item in wanted if item.type not in ordered]
    before = {item.type: item for item in stored}
    merged = []
    for type_ in ordered:
        want, old = by_type[type_], before.get(type_)
        same = old is not None and old.status == want.status and bool(old.last_transition_time)
        since = old.last_transition_time if same and old is not None else now
        seen = want.observed_generation or generation
        merged.append(Condition(type_, want.status, want.reason, want.message, seen, since))
    return tuple(merged)


def aggregate(conditions: Sequence[Condition], required: Sequence[str]) -> Condition:
    """`Ready` from the required types: AllReady when each is present and True, else NotAllReady naming the first cause.

    Source: seed 000, Conditions; spec/keystone.md 1.2.
    """
    for type_ in required:
        item = find(conditions, type_)
        if item is None:
            return false("Ready", "NotAllReady", f"{type_} is not known yet")
        if not item.is_true:
            cause = f"{type_}: {item.reason}"
            return false("Ready", "NotAllReady", f"{cause}: {item.message}" if item.message else cause)
    return true("Ready", "AllReady", "all conditions are True")
