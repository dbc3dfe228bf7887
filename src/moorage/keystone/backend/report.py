"""What a person reads about a backend: conditions, status fields, events.

Enters: a snapshot and what the pass came to. Leaves: a Report. Pure. Transient reasons never turn a True condition into
False: they say that a look failed, not that something was taken away. Source: seed 000, Conditions; spec/keystone.md 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from moorage.core import conditions
from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject
from moorage.core.outcome import Failed, Outcome, Stalled, Waiting
from moorage.runtime.room import Event, Report

from .applied import applied_after, released_groups
from .aside import moment
from .decide import DOMAIN_RULES
from .decide_config import CONFIG_RULES, nobody_comes_first
from .decide_deletion import is_closed
from .decide_federation import OBJECT_RULES
from .decide_mappings import MAPPING_RULES
from .owned import foreign
from .render import Fault
from .rule import Answer, Rule, first_answer
from .seen import Seen
from .types import (
    CONFIG_PROJECTED,
    DIRECTORY_REACHABLE,
    DOMAIN_READY,
    FEDERATION_OBJECTS_READY,
    MAPPINGS_READY,
    READY,
)

_CONSEQUENCES: Final = frozenset(
    {
        "DomainNotReady",
        "WaitingForConfigProjection",
        "WaitingForMappings",
        "ApplyingMappings",
        "IdentityProviderDisabled",
    }
)
"""Reasons that point at another condition: Ready names that one first."""

REASONS: Final = {
    DOMAIN_READY: (
        "DomainProvisioned", "DomainAdopted", "KeystoneNotFound", "WaitingForKeystoneAPI", "AdminSecretUnavailable",
        "DomainNotFound", "DomainAlreadyExists", "IdentityAPIError", "DefaultDomainRefused",
    ),
    FEDERATION_OBJECTS_READY: (
        "FederationObjectsProvisioned", "NoMappingRules", "IdentityAPIError", "WaitingForConfigProjection", "WaitingForMappings",
        "ForeignFederationObject", "RemoteIDTaken", "DomainNotReady", "IdentityProviderDisabled",
        "AdminSecretUnavailable", "RefusedByKeystone",
    ),
    MAPPINGS_READY: (
        "MappingsApplied", "NoMappingRules", "RoleOrProjectNotFound", "IdentityAPIError", "ApplyingMappings", "ForeignFederationObject",
        "DomainNotReady", "RefusedByKeystone",
    ),
    CONFIG_PROJECTED: ("ConfigProjected", "WaitingForProjection", "WaitingForRollout"),
    DIRECTORY_REACHABLE: (
        "DirectoryAnswers", "AddressUnreachable", "TLSFailed", "BindFailed", "BaseDNNotFound", "SearchFailed",
        "ProbePending", "ProbeNotPossible",
    ),
    READY: ("AllReady", "NotAllReady", "Deleting", "DomainDeleteFailed", "FederationTeardownFailed"),
}  # fmt: skip
"""Every reason by condition type, for the reference."""

EVENTS: Final = (
    "DomainCreated", "DomainUpdated", "DomainAdopted", "DomainDisabled", "DomainDeleted", "DomainDeleteFailed",
    "DomainRetained", "WaitingForKeystoneAPI", "AdminSecretUnavailable", "IdentityAPIError", "DomainAlreadyExists",
    "DefaultDomainRefused", "IdentityProviderCreated", "IdentityProviderUpdated", "IdentityProviderEnabled", "IdentityProviderDisabled",
    "MappingCreated", "MappingUpdated", "ProtocolCreated", "ProtocolUpdated", "FederationGroupCreated", "FederationGroupReleased",
    "RolesGranted", "RoleRevoked", "FederationObjectsDeleted", "FederationTeardownFailed", "NoMappingRules", "RoleOrProjectNotFound",
    "ForeignFederationObject", "RemoteIDTaken", "MappingCaution", "RefusedByKeystone", "TooManySteps", "IdentityBackendSkipped",
    "MappingRetained",
)  # fmt: skip
"""Every event reason, for the reference."""
_TELLING: Final = frozenset(
    {
        "NoMappingRules",
        "RoleOrProjectNotFound",
        "ForeignFederationObject",
        "RemoteIDTaken",
        "RefusedByKeystone",
        "IdentityAPIError",
    }
)
"""Reasons of federated conditions that need a person's eye."""


def report(seen: Seen, outcome: Outcome) -> Report:
    """Conditions, status fields and events of one pass."""
    if seen.terminating:
        return _leaving(seen, outcome)
    domain = _domain(seen)
    config = _config(seen)
    federated = _federated(seen, domain)
    required = (domain, *federated, config)
    ready = conditions.aggregate(required, _causes_first(required))
    found = (*required, ready, *_directory(seen))
    return Report(found, {**_status(seen, domain), **_aside(seen), **_applied(seen)}, _events(seen, outcome, found))


def _causes_first(found: Sequence[Condition]) -> Sequence[str]:
    """Types of the conditions, those that merely follow from another one last."""
    return [item.type for item in sorted(found, key=lambda item: item.reason in _CONSEQUENCES)]


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
    answer = first_answer(CONFIG_RULES, seen)
    if answer is None:
        return conditions.true(
            CONFIG_PROJECTED, "ConfigProjected", f"every replica runs this backend's configuration{_stale(seen)}"
        )
    return _false(CONFIG_PROJECTED, answer)


def _stale(seen: Seen) -> str:
    """That the provider does not answer: nothing is taken away for it, and people should know before they cannot log in."""
    document = seen.aside.document
    return f", with the last good metadata of its provider: {document.why}" if document and document.stale else ""


# --- FederationObjectsReady, MappingsReady


def _federated(seen: Seen, domain: Condition) -> tuple[Condition, ...]:
    """Of a federated backend only. While its domain is not known to be ready, a stored condition stands unless that is a fact."""
    if seen.wanted_objects is None:
        return ()
    answer = first_answer(DOMAIN_RULES, seen)
    if answer is not None or seen.objects is None:
        return tuple(_unasked(seen, type_, domain, answer) for type_ in (FEDERATION_OBJECTS_READY, MAPPINGS_READY))
    objects = _judged(
        seen, FEDERATION_OBJECTS_READY, OBJECT_RULES, ("FederationObjectsProvisioned", _objects_say(seen))
    )
    return objects, _cautioned(
        seen, _judged(seen, MAPPINGS_READY, MAPPING_RULES, ("MappingsApplied", _mappings_say(seen)))
    )


def _unasked(seen: Seen, type_: str, domain: Condition, answer: Answer) -> Condition:
    stored = seen.stored(type_)
    transient = answer is None or (isinstance(answer, Waiting | Failed) and answer.keep)
    if transient and stored is not None:
        return stored
    return conditions.false(type_, "DomainNotReady", f"{DOMAIN_READY}: {domain.reason}")


def _judged(seen: Seen, type_: str, rules: Sequence[Rule], good: tuple[str, str]) -> Condition:
    answer = first_answer(rules, seen)
    if answer is None:
        return conditions.true(type_, *good)
    stored = seen.stored(type_)
    if isinstance(answer, Waiting | Failed) and answer.keep and stored is not None and stored.is_true:
        return stored
    return _false(type_, answer)


def _cautioned(seen: Seen, mappings: Condition) -> Condition:
    """What about the rules will not work, although Keystone took them (case B36)."""
    if not seen.aside.cautions or not mappings.is_true:
        return mappings
    said = "; ".join(seen.aside.cautions[:3])
    return replace(mappings, message=f"{mappings.message}. Caution: {said}")


def _objects_say(seen: Seen) -> str:
    wanted = seen.wanted_objects
    return f"people log in through identity provider {wanted.provider}, protocol {wanted.protocol}" if wanted else ""


def _mappings_say(seen: Seen) -> str:
    wanted = seen.wanted_objects
    if wanted is None:
        return ""
    return f"{len(wanted.rules)} rules, {len(wanted.groups)} groups, {len(wanted.shares)} role assignments are applied"


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


def _aside(seen: Seen) -> JsonObject:
    """What is shown of metadata and certificate; a field without a value goes."""
    if seen.wanted_objects is None:
        return {}
    document, aside = seen.aside.document, seen.aside
    shown: JsonObject = {}
    if document is not None and document.fetched is not None:
        shown["fetchedAt"] = moment(document.fetched)
    if document is not None and document.valid_until is not None:
        shown["validUntil"] = moment(document.valid_until)
    if document is not None and document.stale:
        shown["stale"] = True
    return {
        "metadata": shown or None,
        "serviceProvider": {"certificateNotAfter": aside.sp_ends} if aside.sp_ends else None,
        "samlSPMetadataSecretName": aside.sp_metadata or None,
    }


def _applied(seen: Seen) -> JsonObject:
    """Names and ids of what is, or is about to be, in Keystone because of us; unknown while Keystone was not asked."""
    if seen.wanted_objects is None or seen.objects is None:
        return {}
    settled = first_answer(DOMAIN_RULES, seen) is None
    making = settled and bool(seen.wanted_objects.rules) and not foreign(seen) and not seen.objects.taken_by
    record = applied_after(seen, making=making)
    kept = record.model_dump(by_alias=True, exclude_none=True)
    return {"applied": kept if any(kept.values()) else None}


# --- events


def _events(seen: Seen, outcome: Outcome, found: Sequence[Condition]) -> tuple[Event, ...]:
    """What happened, and what needs a person's eye: failures, dead ends, and failed looks that no condition shows."""
    events = list(seen.happened)
    domain = found[0]
    if seen.adopts and domain.is_true and seen.found is not None and not seen.backend.status.domain_id:
        events.append(Event("Normal", "DomainAdopted", f"attached to domain {seen.domain_name!r} (id {seen.found.id})"))
    events += [Event("Normal", "FederationGroupReleased", _released(name)) for name in released_groups(seen)]
    warnings = _warnings(seen, outcome, found)
    return (*events, *(Event("Warning", reason, message) for reason, message in dict.fromkeys(warnings)))


def _released(name: str) -> str:
    return f"group {name!r} is declared no more; it stays in Keystone, without role assignments of this backend"


def _warnings(seen: Seen, outcome: Outcome, found: Sequence[Condition]) -> Iterator[tuple[str, str]]:
    if isinstance(outcome, Stalled | Failed) or (isinstance(outcome, Waiting) and _is_hidden(outcome, found[0])):
        yield outcome.reason, outcome.message
    if why := _skipped(seen):
        yield "IdentityBackendSkipped", why
    if seen.wanted_objects is None:
        return
    federated = (FEDERATION_OBJECTS_READY, MAPPINGS_READY)
    yield from ((item.reason, item.message) for item in found if item.type in federated and item.reason in _TELLING)
    yield from (("MappingCaution", caution) for caution in seen.aside.cautions)


def _skipped(seen: Seen) -> str:
    """Why nothing of this backend is projected, when that needs a person; "" otherwise."""
    if isinstance(seen.wanted, Fault):
        return "" if seen.wanted.pending else seen.wanted.message
    answer = nobody_comes_first(seen)
    return answer.message if isinstance(answer, Waiting) else ""


def _is_hidden(outcome: Waiting, domain: Condition) -> bool:
    """A failed look that a stored True outlives; a pass that ends to be taken up at once is no failure."""
    return outcome.keep and domain.is_true and outcome.after != 0.0


def _leaving(seen: Seen, outcome: Outcome) -> Report:
    """While deleting, what was reached stays as it was and Ready says what deletion waits for."""
    events = list(seen.happened)
    kept = tuple(item for item in _closing(seen) if item.type != READY)
    if isinstance(outcome, Waiting | Failed):
        ready = conditions.false(READY, outcome.reason, outcome.message)
        if isinstance(outcome, Failed):
            events.append(Event("Warning", outcome.reason, outcome.message))
    else:
        ready = conditions.false(READY, "Deleting", "deletion is under way")
    return Report((*kept, ready), _applied(seen), tuple(events))


def _closing(seen: Seen) -> Sequence[Condition]:
    """That the identity provider is closed is told at once: the Keystone's controller waits for it before it changes the pods."""
    if seen.wanted_objects is None or not is_closed(seen):
        return seen.stored_conditions
    closed = conditions.false(FEDERATION_OBJECTS_READY, "IdentityProviderDisabled", "nobody can log in any more")
    if seen.admin_fault:
        why = f"{seen.admin_fault}, so the identity provider cannot be disabled"
        closed = conditions.false(FEDERATION_OBJECTS_READY, "AdminSecretUnavailable", why)
    others = [item for item in seen.stored_conditions if item.type != FEDERATION_OBJECTS_READY]
    return [*others, closed]
