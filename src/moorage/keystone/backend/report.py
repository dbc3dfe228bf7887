"""What a person reads about a backend: conditions, status fields, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure. Transient reasons never turn a True condition into
False: they say that a look failed, not that something was taken away. Source: seed 000, Conditions; spec/keystone.md 4.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject
from moorage.core.outcome import Failed, Outcome, Stalled, Waiting
from moorage.runtime.room import Event, Report

from .decide import CONFIG_RULES, DOMAIN_RULES, Answer, Rule, first_answer, type_is_supported
from .seen import Seen
from .types import CONFIG_PROJECTED, DIRECTORY_REACHABLE, DOMAIN_READY, READY

REQUIRED: Final = (DOMAIN_READY, CONFIG_PROJECTED)
"""What Ready sums up for an LDAP backend."""

REASONS: Final = {
    DOMAIN_READY: (
        "DomainProvisioned", "DomainAdopted", "KeystoneNotFound", "WaitingForKeystoneAPI", "AdminSecretUnavailable",
        "DomainNotFound", "DomainAlreadyExists", "IdentityAPIError", "DefaultDomainRefused", "UnsupportedType",
    ),
    CONFIG_PROJECTED: ("ConfigProjected", "WaitingForProjection", "WaitingForRollout", "UnsupportedType"),
    DIRECTORY_REACHABLE: (
        "DirectoryAnswers", "AddressUnreachable", "TLSFailed", "BindFailed", "BaseDNNotFound", "SearchFailed",
        "ProbePending", "ProbeNotPossible",
    ),
    READY: ("AllReady", "NotAllReady", "Deleting", "DomainDeleteFailed"),
}  # fmt: skip
"""Every reason by condition type, for the reference."""

EVENTS: Final = (
    "DomainCreated", "DomainUpdated", "DomainAdopted", "DomainDisabled", "DomainDeleted", "DomainDeleteFailed",
    "DomainRetained", "WaitingForKeystoneAPI", "AdminSecretUnavailable", "IdentityAPIError", "DomainAlreadyExists",
    "DefaultDomainRefused", "UnsupportedType",
)  # fmt: skip
"""Every event reason, for the reference."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """Conditions, `domainID` and events of one pass."""
    if seen.terminating:
        return _leaving(seen, outcome)
    domain = _domain(seen)
    config = _config(seen)
    found = [domain, config, *_directory(seen)]
    ready = conditions.aggregate(found, REQUIRED)
    return Report((domain, config, ready, *_directory(seen)), _status(seen, domain), _events(seen, outcome, domain))


def _domain(seen: Seen) -> Condition:
    """DomainReady; a stored True outlives a failed look as it stands."""
    answer = first_answer(DOMAIN_RULES, seen)
    if answer is None:
        if seen.adopts:
            return conditions.true(DOMAIN_READY, "DomainAdopted", _adopted(seen))
        return conditions.true(DOMAIN_READY, "DomainProvisioned", f"domain {seen.domain_name!r} exists")
    stored = seen.stored(DOMAIN_READY)
    if isinstance(answer, Waiting | Failed) and answer.keep and stored is not None and stored.is_true:
        return stored
    return _false(DOMAIN_READY, answer)


def _adopted(seen: Seen) -> str:
    asleep = seen.found is not None and not seen.found.enabled
    note = "; it is disabled, and mode Adopt never changes that" if asleep else ""
    return f"domain {seen.domain_name!r} exists{note}"


def _config(seen: Seen) -> Condition:
    rules: Sequence[Rule] = (type_is_supported, *CONFIG_RULES)
    answer = first_answer(rules, seen)
    if answer is None:
        return conditions.true(CONFIG_PROJECTED, "ConfigProjected", "every replica runs this backend's configuration")
    return _false(CONFIG_PROJECTED, answer)


def _false(type_: str, answer: Answer) -> Condition:
    """The condition of an answer; a plan that was not performed in this pass reads as an unfinished look."""
    if isinstance(answer, Waiting | Stalled | Failed):
        return conditions.false(type_, answer.reason, answer.message)
    return conditions.false(type_, "IdentityAPIError", "the pass ended before the domain was settled")


def _directory(seen: Seen) -> tuple[Condition, ...]:
    found = seen.directory
    return (Condition(DIRECTORY_REACHABLE, found.status, found.reason, found.message),) if found else ()


def _status(seen: Seen, domain: Condition) -> JsonObject:
    """`domainID` is recorded once the domain is known to be the one; it is never taken back."""
    if seen.found is None or not domain.is_true or seen.found.id == seen.backend.status.domain_id:
        return {}
    return {"domainID": seen.found.id}


def _events(seen: Seen, outcome: Outcome, domain: Condition) -> tuple[Event, ...]:
    """What happened, and what needs a person's eye: failures, dead ends, and failed looks that no condition shows."""
    events = list(seen.happened)
    if seen.adopts and domain.is_true and seen.found is not None and not seen.backend.status.domain_id:
        events.append(Event("Normal", "DomainAdopted", f"attached to domain {seen.domain_name!r} (id {seen.found.id})"))
    if isinstance(outcome, Stalled | Failed) or (isinstance(outcome, Waiting) and outcome.keep and domain.is_true):
        events.append(Event("Warning", outcome.reason, outcome.message))
    return tuple(events)


def _leaving(seen: Seen, outcome: Outcome) -> Report:
    """While deleting, what was reached stays as it was and Ready says what deletion waits for."""
    events = list(seen.happened)
    kept = tuple(item for item in seen.stored_conditions if item.type != READY)
    if isinstance(outcome, Waiting | Failed):
        ready = conditions.false(READY, outcome.reason, outcome.message)
        if isinstance(outcome, Failed):
            events.append(Event("Warning", outcome.reason, outcome.message))
    else:
        ready = conditions.false(READY, "Deleting", "deletion is under way")
    return Report((*kept, ready), {}, tuple(events))
