"""The policy of a client, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: the next plan, or what the pass came to. Pure. First the client itself; then its parts, each by itself, so that a
SCIM service that is down never delays a secret; the first part that failed is told. Source: spec/pocketid.md 3.2; design.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.runtime.room import Released

from .decide_client import CLIENT_RULES, metadata_is_refreshed, other_instances_are_left, read_back
from .decide_config import CONFIG_RULES, GROUP_RULES
from .decide_deletion import DELETION_RULES, orphaned
from .decide_features import ACCESS_RULES, SCIM_RULES
from .decide_logos import LOGO_RULES
from .decide_secret import SECRET_RULES
from .lookups import Found
from .plans import NEEDS_LOOK, LeaveInstance, Look, LookThere, Part, Plan
from .rotation import Deferred, NotDue
from .rule import Answer, Rule, first_answer, worked
from .secret_steps import next_retirement
from .seen import Seen

SOONEST: Final = 1.0
"""Fewest seconds until a planned look: clocks differ a little."""
REFRESH_RULES: Final[tuple[Rule, ...]] = (metadata_is_refreshed, worked(Part.REFRESH))
LOOK_RULES: Final[tuple[Rule, ...]] = (worked(Part.LOOK),)
PARTS: Final[tuple[tuple[Rule, ...], ...]] = (
    REFRESH_RULES, GROUP_RULES, CONFIG_RULES, LOGO_RULES, SCIM_RULES, ACCESS_RULES, SECRET_RULES, LOOK_RULES,
)  # fmt: skip
"""The parts of a client in the order in which they are done and told."""
PROMISED: Final = (GROUP_RULES, CONFIG_RULES, SECRET_RULES, LOOK_RULES)
"""What must be right before the client goes at a former instance: who may log in, how, and the stored secret; not what hangs on it."""
_PLACES: Final = {
    Part.GROUPS: 1, Part.CONFIG: 2, Part.LOGOS: 3, Part.SCIM: 4, Part.ACCESS: 5, Part.SECRET: 6, Part.DECLARED: 6,
}  # fmt: skip
"""Where among them the rules about a part stand."""


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan, or what the pass came to."""
    if seen.terminating:
        gone = first_answer(DELETION_RULES, seen) or Released(seen.happened)
        return Released((*gone.events, *orphaned(seen))) if isinstance(gone, Released) else gone
    answer = first_answer(CLIENT_RULES, seen)
    if answer is not None:
        return answer
    begun = _begun(seen)
    if (plan := _next_plan(PARTS[begun:], seen)) is not None:
        return plan
    if Part.LOOK not in seen.failures and (look := read_back(seen)) is not None:
        return look
    if (plan := _next_plan(PARTS[:begun], seen)) is not None:
        return plan
    answers = [first_answer(rules, seen) for rules in PARTS]
    promised = any(first_answer(rules, seen) for rules in PROMISED)
    left = None if promised else other_instances_are_left(seen)
    return left if isinstance(left, LeaveInstance | LookThere) else _summed(answers, seen)


def _begun(seen: Seen) -> int:
    """Where to go on: a part that was begun is brought to its end before those in front of it are asked again, which is after the readback."""
    return _PLACES.get(seen.done[-1].part, 0) if seen.done else 0


def _next_plan(parts: Sequence[Sequence[Rule]], seen: Seen) -> Plan | Outcome | None:
    """The first plan of these parts, or the look that it needs."""
    for rules in parts:
        answer = first_answer(rules, seen)
        if answer is not None and not isinstance(answer, Outcome | Released):
            return _with_fresh_eyes(answer, seen)
    return None


def _with_fresh_eyes(plan: Plan, seen: Seen) -> Plan | Outcome:
    """A write of the client is made from the client as it is now: it is read first, unless this pass did."""
    if not isinstance(plan, NEEDS_LOOK) or (isinstance(seen.look, Found) and seen.look.fresh):
        return plan
    failed = first_answer(LOOK_RULES, seen)
    return failed if isinstance(failed, Outcome) else Look()


def first_fault(seen: Seen) -> Answer:
    """The first part that is not as declared, for the condition."""
    answer = first_answer(CLIENT_RULES, seen)
    return answer if answer is not None else next(_faults(seen), None)


def _faults(seen: Seen) -> Iterator[Answer]:
    return (answer for rules in PARTS if (answer := first_answer(rules, seen)) is not None)


def _summed(answers: list[Answer], seen: Seen) -> Outcome:
    """One outcome for all parts: a failure first, since the queue backs off by itself, else the first, at the soonest time."""
    found = [item for item in answers if isinstance(item, Done | Waiting | Stalled | Failed)]
    if not found:
        return Done(after=_next_look(seen))
    failed = next((item for item in found if isinstance(item, Failed)), None)
    if failed is not None:
        return failed
    first = found[0]
    times = [item.after for item in found if isinstance(item, Waiting) and item.after is not None]
    if not isinstance(first, Waiting):
        return first
    return Waiting(first.reason, first.message, after=min([*times, _next_look(seen)]))


def _next_look(seen: Seen) -> float:
    """Seconds: the resync, or sooner when a secret retires or a rotation comes."""
    secrets, resync = seen.secrets, seen.settings.resync
    if secrets is None:
        return resync
    times: list[float] = []
    if (retires := next_retirement(secrets)) is not None:
        times.append((retires - secrets.server_now).total_seconds())
    match secrets.rotation:
        case NotDue(datetime() as at) | Deferred(_, datetime() as at, _):
            times.append((at - seen.now).total_seconds())
    return max(SOONEST, min([resync, *times]))
