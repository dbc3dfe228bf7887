"""The policy of a backend, read from top to bottom: each rule answers with a plan, an outcome, or None for "go on".

Enters: a snapshot. Leaves: the next plan, or what the pass came to. Pure. DomainReady and ConfigProjected each have a list
of rules; the condition is what its list answers, so status and behaviour cannot differ.
Source: seed 000, Conditions and Deletion Semantics; spec/keystone.md 4.1 to 4.4; decisions, Keystone 5.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.runtime.room import Event, Released

from .ldap import conf_key
from .render import UNSUPPORTED, Fault
from .seen import (
    DEFAULT_DOMAIN_ID,
    CreateDomain,
    DeleteDomain,
    DisableDomain,
    Lookup,
    Plan,
    Seen,
    UpdateDomain,
    domain_id_of,
)

Answer: TypeAlias = Plan | Outcome | Released | None
Rule: TypeAlias = Callable[[Seen], Answer]

POLL: Final = 15.0
"""Seconds until another look where no watch wakes us reliably."""
DOMAIN_POLL: Final = 30.0
PROBE_POLL: Final = 60.0
HEALTHY_POLL: Final = 120.0
"""A directory that dies is seen within two minutes; a steady pass costs one read of Keystone."""
PENDING_POLL: Final = 10.0


def decide(seen: Seen) -> Plan | Outcome | Released:
    """The next plan, or what the pass came to."""
    if seen.terminating:
        return first_answer(DELETION_RULES, seen) or Done()
    return first_answer(DOMAIN_RULES, seen) or first_answer(CONFIG_RULES, seen) or _settled(seen)


def first_answer(rules: Sequence[Rule], seen: Seen) -> Answer:
    """What the first rule says that says anything."""
    return next((answer for rule in rules if (answer := rule(seen)) is not None), None)


def _settled(seen: Seen) -> Done:
    """All is well; the directory is asked again sooner than the resync, one that does not answer sooner still."""
    if seen.directory is None:
        return Done()
    if seen.directory.status == "True":
        return Done(after=HEALTHY_POLL)
    return Done(after=PENDING_POLL if seen.directory.reason == "ProbePending" else PROBE_POLL)


# --- DomainReady


def type_is_supported(seen: Seen) -> Answer:
    """This version attaches LDAP; federated backends are told so and left alone."""
    return None if seen.backend.spec.type == "LDAP" else Stalled("UnsupportedType", UNSUPPORTED)


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
    return Failed("IdentityAPIError", seen.failure.message, keep=True) if seen.failure else None


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
        return Waiting("DomainNotFound", message, after=DOMAIN_POLL)
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
    type_is_supported, keystone_exists, keystone_stays, keystone_answers, admin_password_is_there, last_step_worked,
    lookup_worked, adopted_domain_exists, domain_is_ours, domain_is_current,
)  # fmt: skip


# --- ConfigProjected


def configuration_renders(seen: Seen) -> Answer:
    """A backend that cannot be rendered is skipped; the Secret watches wake us."""
    return Waiting("WaitingForProjection", seen.wanted.message) if isinstance(seen.wanted, Fault) else None


def configuration_is_mounted(seen: Seen) -> Answer:
    """The pod template mounts these very contents; an older version of them does not count."""
    if seen.mount.current:
        return None
    file = conf_key(seen.domain_name)
    message = f"the Keystone Deployment mounts an older {file}" if seen.mount.carries else f"{file} is not mounted yet"
    return Waiting("WaitingForProjection", message, after=POLL)


def every_replica_runs_it(seen: Seen) -> Answer:
    """A pending rollout counts as not projected, also for a backend that was Ready."""
    if seen.mount.rolled_out:
        return None
    return Waiting("WaitingForRollout", "replicas of the previous template still serve", after=POLL)


CONFIG_RULES: Final[tuple[Rule, ...]] = (configuration_renders, configuration_is_mounted, every_replica_runs_it)


# --- deletion


def nothing_of_ours(seen: Seen) -> Answer:
    """Another controller holds the object, or this version never attached it."""
    return Released() if not seen.holds_finalizer or seen.backend.spec.type != "LDAP" else None


def keystone_is_gone(seen: Seen) -> Answer:
    """Stack teardown: never hold the backend hostage (case B80)."""
    if seen.keystone is not None and not seen.keystone.terminating:
        return None
    state = "does not exist" if seen.keystone is None else "is being deleted"
    return _kept(seen, f"Keystone {seen.backend.spec.keystone_ref.name} {state}")


def configuration_is_gone(seen: Seen) -> Answer:
    """Keystone must never run with a file that points at a dead domain. Without a recorded domain none was projected."""
    file = conf_key(seen.domain_name)
    if seen.mount.carries:
        return _leaving(f"waiting until the Keystone Deployment no longer mounts {file}")
    if seen.mount.exists and not seen.mount.rolled_out and seen.backend.status.domain_id:
        return _leaving(f"waiting until every replica runs without {file}")
    return None


def domain_is_retained(seen: Seen) -> Answer:
    """Retain and adopted domains are left as they are."""
    return None if seen.deletes_domain else Released(seen.happened)


def admin_password_is_gone(seen: Seen) -> Answer:
    """Fail open: without the credential the domain cannot be deleted, and the backend is not held for it."""
    return _kept(seen, seen.admin_fault) if seen.admin_fault else None


def deletion_step_worked(seen: Seen) -> Answer:
    """Keep the finalizer, tell the cause, try again with back-off; the domain stays as it is (case B11)."""
    if seen.failure is None:
        return None
    return Failed("DomainDeleteFailed", f"{seen.failure.message}. {_WAY_OUT}")


def keystone_answers_deletion(seen: Seen) -> Answer:
    """Deleting the domain needs the API."""
    if seen.keystone is None or seen.keystone.api_ready:
        return None
    return _leaving(
        f"waiting for the API of Keystone {seen.keystone.name} to delete domain {seen.domain_name!r}. {_WAY_OUT}"
    )


def deletion_lookup_worked(seen: Seen) -> Answer:
    """A failed look is not a fact, so the domain may still be there."""
    if isinstance(seen.lookup, Lookup):
        return None
    why = seen.lookup.message if seen.lookup else "Keystone was not asked"
    return Failed("DomainDeleteFailed", f"{why}. {_WAY_OUT}")


def domain_is_gone(seen: Seen) -> Answer:
    """No domain with an id of ours exists (any more)."""
    return Released(seen.happened) if seen.found is None else None


def domain_is_removed(seen: Seen) -> Answer:
    """Disable, then delete; never a same-named foreign domain, never the one of the service users."""
    if seen.found is None:
        return None
    if seen.found.id == DEFAULT_DOMAIN_ID:
        return _kept(seen, "the domain with id default is never deleted")
    return DisableDomain(seen.found.id) if seen.found.enabled else DeleteDomain(seen.found.id)


DELETION_RULES: Final[tuple[Rule, ...]] = (
    nothing_of_ours, keystone_is_gone, configuration_is_gone, domain_is_retained, admin_password_is_gone,
    deletion_step_worked, keystone_answers_deletion, deletion_lookup_worked, domain_is_gone, domain_is_removed,
)  # fmt: skip

_WAY_OUT: Final = "Set spec.domain.deletionPolicy to Retain to leave the domain and finish"


def _leaving(message: str) -> Waiting:
    return Waiting("Deleting", message, after=POLL)


def _kept(seen: Seen, why: str) -> Released:
    """Let go with a warning; the domain is retained."""
    reason = "DomainDeleteFailed" if seen.deletes_domain else "DomainRetained"
    message = f"{why}; the backend is released and domain {seen.domain_name!r} is retained"
    return Released(seen.tells(Event("Warning", reason, message)))
