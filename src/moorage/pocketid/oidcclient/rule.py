"""What the rules of a client have in common: their answers, how they are asked, what a failed part comes to.

Enters: rules and a snapshot. Leaves: the first answer. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, cast

from moorage.core.outcome import Failed, Outcome, Waiting
from moorage.runtime.room import Released

from .plans import Part, Plan
from .seen import Seen
from .seen_parts import Fault

Answer: TypeAlias = Plan | Outcome | Released | None
"""The next plan, what a part came to, or None for "go on"."""
Rule: TypeAlias = Callable[[Seen], Answer]

BLOCKED_POLL: Final = 5.0
"""Seconds until another look at what only another resource can release."""


def first_answer(rules: Sequence[Rule], seen: Seen) -> Answer:
    """What the first rule says that says anything. A snapshot is asked once: what is decided is reported."""
    known = seen.answers
    key = tuple(rules)
    if key in known:
        return cast(Answer, known[key])
    answer = known[key] = _asked(key, seen)
    return answer


def _asked(rules: Sequence[Rule], seen: Seen) -> Answer:
    for rule in rules:
        if (answer := rule(seen)) is not None:
            return answer
    return None


def worked(part: Part) -> Rule:
    """The rule that a failed write ends its part for this pass."""

    def last_write_worked(seen: Seen) -> Answer:
        failure = seen.failures.get(part) if seen.failures else None
        if failure is None:
            return None
        if failure.after is None:
            return Failed(part.reason, failure.message)
        return Waiting(part.reason, failure.message, after=failure.after)

    return last_write_worked


def told(fault: Fault, seen: Seen) -> Waiting:
    """A declaration that cannot be used now: nothing wakes us for sure, so it is looked at again at the resync."""
    return Waiting(fault.reason, fault.message, after=seen.settings.resync)
