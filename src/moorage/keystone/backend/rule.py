"""What the rules of a backend have in common: their answers, how they are asked, how long a look may wait.

Enters: rules and a snapshot. Leaves: the first answer. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from moorage.core.outcome import Failed, Outcome, Stalled
from moorage.runtime.room import Released

from .seen import Failure, Plan, Seen

Answer: TypeAlias = Plan | Outcome | Released | None
"""The next plan, what a condition came to, or None for "go on"."""
Rule: TypeAlias = Callable[[Seen], Answer]

POLL: Final = 15.0
"""Seconds until another look where no watch wakes us reliably."""
OBJECT_POLL: Final = 30.0
"""Seconds until another look at what only Keystone knows: domains, roles, projects, objects of others."""


def first_answer(rules: Sequence[Rule], seen: Seen) -> Answer:
    """What the first rule says that says anything."""
    for rule in rules:
        if (answer := rule(seen)) is not None:
            return answer
    return None


def failed(failure: Failure) -> Failed | Stalled:
    """What a write of a federation object came to: a broken wire is no fact, a refusal of the content is one."""
    if failure.refused:
        return Stalled("RefusedByKeystone", failure.message)
    return Failed("IdentityAPIError", failure.message, keep=True)
