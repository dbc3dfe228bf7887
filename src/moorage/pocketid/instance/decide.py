"""The policy of an instance, read from top to bottom: each rule answers with an outcome, or None for "go on".

Enters: a snapshot. Leaves: what the pass came to. Pure. An instance with `external` is used and never changed, so there is no plan.
Source: spec/pocketid.md 2.1; seed 004.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn, TypeAlias

from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting

from .seen import Seen, Trouble, Unknown

REFUSED_POLL: Final = 60.0
"""Seconds until another look after an answer that only a person can change; a changed Secret wakes us at once."""
LONGEST_WAIT: Final = 300.0
Plan: TypeAlias = NoReturn
Answer: TypeAlias = Outcome | None


def decide(seen: Seen) -> Outcome:
    """What the pass came to."""
    return next((answer for rule in RULES if (answer := rule(seen)) is not None), Done(after=seen.resync))


def server_runs_already(seen: Seen) -> Answer:
    """Only servers that run already are attached."""
    if seen.instance.spec.external is not None:
        return None
    return Stalled("DeploymentUnavailable", "this operator attaches servers that run already: set spec.external")


def api_key_is_there(seen: Seen) -> Answer:
    """A watch on Secrets wakes us when it appears."""
    return Waiting("APIClientError", seen.fault, after=REFUSED_POLL) if seen.fault else None


def server_answers(seen: Seen) -> Answer:
    """A broken wire is tried again soon, a refusal within a minute."""
    match seen.look:
        case Unknown(Trouble.UNREACHABLE, message, 0.0):
            return Failed("Unreachable", message)
        case Unknown(Trouble.UNREACHABLE, message, after):
            return Waiting("Unreachable", message, after=min(after, LONGEST_WAIT))
        case Unknown(_, message, _):
            return Waiting("APIClientError", message, after=REFUSED_POLL)
    return None


def version_is_known(seen: Seen) -> Answer:
    """One bad instance never harms the others: it is told on the instance, and looked at again at the resync."""
    look = seen.look
    if look is None or isinstance(look, Unknown) or look.is_supported:
        return None
    message = f"Pocket-ID {look.text} is not supported: versions from 2.14.0 and before 3.0.0 are"
    return Waiting("UnsupportedVersion", message, after=seen.resync)


RULES: Final[tuple[Callable[[Seen], Answer], ...]] = (
    server_runs_already, api_key_is_there, server_answers, version_is_known,
)  # fmt: skip
