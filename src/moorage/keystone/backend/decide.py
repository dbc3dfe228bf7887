"""The policy of a backend, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: the next plan, or what the pass came to. Pure. Each condition has a list of rules; the condition is what its
list answers, so status and behaviour cannot differ. DomainReady is here; the others are in the `decide_*` files beside.
Source: seed 000, Conditions and Deletion Semantics; spec/keystone.md 4.1 to 4.4; decisions, Keystone 1 to 5.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.runtime.room import Released

from .decide_config import CONFIG_RULES
from .decide_deletion import deletion_rules
from .decide_federation import OBJECT_RULES, lost_providers_are_closed
from .decide_mappings import MAPPING_RULES
from .owned import owned_providers
from .rule import OBJECT_POLL, POLL, Answer, Rule, first_answer
from .seen import DEFAULT_DOMAIN_ID, CreateDomain, DomainPlan, Lookup, Plan, Seen, UpdateDomain, domain_id_of
from .seen_federation import CloseProvider

PROBE_POLL: Final = 60.0
HEALTHY_POLL: Final = 120.0
"""A directory that dies is seen within two minutes; a steady pass costs one read of Keystone."""
PENDING_POLL: Final = 10.0


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan, or what the pass came to."""
    if seen.terminating:
        return first_answer(deletion_rules(seen), seen) or Done()
    if seen.wanted_objects is None:
        return first_answer(DOMAIN_RULES, seen) or first_answer(CONFIG_RULES, seen) or _settled(seen)
    return first_answer(CLOSING_RULES, seen) or first_answer(DOMAIN_RULES, seen) or _federated(seen)


def _federated(seen: Seen) -> Plan | Outcome | Released:
    """The next plan of either list; when there is none, what holds up most."""
    answers = [first_answer(rules, seen) for rules in (OBJECT_RULES, MAPPING_RULES, CONFIG_RULES)]
    plan = next((answer for answer in answers if answer is not None and not isinstance(answer, Outcome)), None)
    if plan is not None and seen.failure is None:
        return plan
    return _summed([answer for answer in answers if isinstance(answer, Outcome)])


def _summed(outcomes: Iterable[Outcome]) -> Outcome:
    """One outcome for several conditions: a failure first, else the first, looked at again as soon as any of them asks for."""
    found = list(outcomes)
    if not found:
        return Done()
    failed = next((item for item in found if isinstance(item, Failed)), None)
    if failed is not None:
        return failed
    times = [item.after for item in found if isinstance(item, Waiting) and item.after is not None]
    first = found[0]
    if not times or not isinstance(first, Waiting | Stalled):
        return first
    return Waiting(first.reason, first.message, after=min(times), keep=isinstance(first, Waiting) and first.keep)


def _settled(seen: Seen) -> Done:
    """All is well; the directory is asked again sooner than the resync, one that does not answer sooner still."""
    if seen.directory is None:
        return Done()
    if seen.directory.status == "True":
        return Done(after=HEALTHY_POLL)
    return Done(after=PENDING_POLL if seen.directory.reason == "ProbePending" else PROBE_POLL)


# --- DomainReady


def keystone_exists(seen: Seen) -> Answer:
    """The Keystone watch wakes us when it appears."""
    if seen.keystone is not None:
        return None
    return Waiting(
        "KeystoneNotFound", f"Keystone {seen.backend.spec.keystone_ref.name} does not exist in this namespace"
    )


def keystone_stays(seen: Seen) -> Answer:
    """Nothing is attached to a Keystone on its way out."""
    if seen.keystone is None or not seen.keystone.terminating:
        return None
    return Waiting("WaitingForKeystoneAPI", f"Keystone {seen.keystone.name} is being deleted", keep=True)


def keystone_answers(seen: Seen) -> Answer:
    """The Keystone watch wakes us when its API is up."""
    if seen.keystone is None or seen.keystone.api_ready:
        return None
    why = f": {seen.keystone.api_message}" if seen.keystone.api_message else ""
    return Waiting("WaitingForKeystoneAPI", f"the API of Keystone {seen.keystone.name} is not up{why}", keep=True)


def admin_password_is_there(seen: Seen) -> Answer:
    """Without it Keystone cannot be asked anything."""
    return Waiting("AdminSecretUnavailable", seen.admin_fault, after=POLL, keep=True) if seen.admin_fault else None


def last_step_worked(seen: Seen) -> Answer:
    """A refused or unanswered write ends the pass; the queue tries again."""
    failed = seen.failure
    if failed is None or not isinstance(failed.plan, DomainPlan):
        return None
    return Failed("IdentityAPIError", failed.message, keep=True)


def lookup_worked(seen: Seen) -> Answer:
    """A failed look is not a fact, and neither is none."""
    if isinstance(seen.lookup, Lookup):
        return None
    return Failed("IdentityAPIError", seen.lookup.message if seen.lookup else "Keystone was not asked", keep=True)


def adopted_domain_exists(seen: Seen) -> Answer:
    """Adopt never creates, and never takes the domain of the service users under another name."""
    if not seen.adopts:
        return None
    if seen.found is None:
        message = f"no domain {seen.domain_name!r} exists; create it, or use mode Manage in a new backend"
        return Waiting("DomainNotFound", message, after=OBJECT_POLL)
    if seen.found.id == DEFAULT_DOMAIN_ID:
        return Stalled(
            "DefaultDomainRefused", "the domain with id default hosts the service users; choose another domain"
        )
    return None


def domain_is_ours(seen: Seen) -> Answer:
    """Create the domain, or prove that it is ours; a foreign one of that name is never seized."""
    if seen.adopts or not isinstance(seen.lookup, Lookup):
        return None
    foreign = seen.lookup.named
    if foreign is not None and (seen.found is None or foreign.id != seen.found.id):
        message = f"domain {seen.domain_name!r} (id {foreign.id}) was not created by this backend; attach to it with mode Adopt"
        return Stalled("DomainAlreadyExists", message)
    if seen.found is None:
        wanted = seen.backend.spec.domain
        return CreateDomain(wanted.name, domain_id_of(seen.backend.metadata.uid), wanted.description)
    return None


def domain_is_current(seen: Seen) -> Answer:
    """Repair name, description and the enabled flag of our own domain; a description that is not declared is left alone."""
    found = seen.found
    if seen.adopts or found is None:
        return None
    wanted = seen.backend.spec.domain
    changes: dict[str, str | bool] = {}
    if found.name != wanted.name:
        changes["name"] = wanted.name
    if wanted.description is not None and found.description != wanted.description:
        changes["description"] = wanted.description
    if not found.enabled:
        changes["enabled"] = True
    return UpdateDomain(found.id, changes) if changes else None


DOMAIN_RULES: Final[tuple[Rule, ...]] = (
    keystone_exists, keystone_stays, keystone_answers, admin_password_is_there, last_step_worked,
    lookup_worked, adopted_domain_exists, domain_is_ours, domain_is_current,
)  # fmt: skip


# --- closing


def lost_domain_closes(seen: Seen) -> Answer:
    """A domain that is gone, or is somebody else's, takes the identity provider with it before the status says so."""
    if seen.failure is not None:
        return None
    answer = first_answer(DOMAIN_RULES, seen)
    if not (isinstance(answer, Stalled) or (isinstance(answer, Waiting) and not answer.keep)):
        return None
    opened = [item for item in owned_providers(seen) if item.enabled]
    return CloseProvider(opened[0].id, answer.message) if opened else None


CLOSING_RULES: Final[tuple[Rule, ...]] = (lost_domain_closes, lost_providers_are_closed)
