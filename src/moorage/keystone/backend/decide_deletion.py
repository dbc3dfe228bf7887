"""The policy of a backend that is being deleted: closed first, then out of the pods, then out of Keystone. It always ends.

Enters: a snapshot. Leaves: answers of rules. Pure. Source: seed 000, Deletion Semantics; spec/keystone.md 4.4, 7 (S1, C18); decisions, Keystone 2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.core.outcome import Failed, Waiting
from moorage.runtime.room import Event, Released

from .decide_federation import teardown
from .owned import owned_providers
from .render import VARIANTS
from .rule import POLL, Answer, Rule
from .seen import DEFAULT_DOMAIN_ID, DeleteDomain, DisableDomain, DomainPlan, Lookup, Seen
from .seen_federation import CloseProvider
from .types import FINALIZER
from .wanted import applied_of


def deletion_rules(seen: Seen) -> Sequence[Rule]:
    """The rules for this type of backend."""
    return DELETION_RULES if seen.wanted_objects is None else FEDERATED_RULES


def nothing_of_ours(seen: Seen) -> Answer:
    """Another controller holds the object, or this version never attached it."""
    return Released() if not seen.holds_finalizer or seen.backend.spec.type not in VARIANTS else None


def keystone_is_gone(seen: Seen) -> Answer:
    """Stack teardown: never hold the backend hostage (case B80)."""
    if seen.keystone is not None and not seen.keystone.terminating:
        return None
    state = "does not exist" if seen.keystone is None else "is being deleted"
    return _kept(seen, f"Keystone {seen.backend.spec.keystone_ref.name} {state}")


def configuration_is_gone(seen: Seen) -> Answer:
    """Keystone must never run with a file that points at a dead domain. Without a recorded domain none was projected."""
    file = seen.file
    if seen.rivals:
        return None  # the domain's file is that of the sibling that was served in this one's place
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
    return _failed(seen, seen.failure.message)


def keystone_answers_deletion(seen: Seen) -> Answer:
    """Deleting anything needs the API."""
    if seen.keystone is None or seen.keystone.api_ready:
        return None
    what = f"domain {seen.domain_name!r}" if seen.wanted_objects is None else "the federation objects"
    return _leaving(f"waiting for the API of Keystone {seen.keystone.name} to delete {what}. {_way_out(seen)}")


def deletion_lookup_worked(seen: Seen) -> Answer:
    """A failed look is not a fact, so the domain may still be there."""
    if isinstance(seen.lookup, Lookup):
        return None
    why = seen.lookup.message if seen.lookup else "Keystone was not asked"
    return _failed(seen, why)


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


def providers_are_closed(seen: Seen) -> Answer:
    """Before anything else: nobody logs in through a path that is about to lose its protection (S1)."""
    opened = next((item for item in owned_providers(seen) if item.enabled), None)
    return CloseProvider(opened.id, "the backend is being deleted") if opened else None


def objects_are_gone(seen: Seen) -> Answer:
    """Protocol, mapping, identity provider, whatever becomes of the domain; what somebody else made stays."""
    names = [item.name for item in applied_of(seen.backend).identity_providers]
    names += [item.id for item in owned_providers(seen)]
    return next((plan for name in dict.fromkeys(names) if (plan := teardown(seen, name))), None)


def nothing_was_applied(seen: Seen) -> bool:
    """Nothing was ever put into Keystone: names are recorded before objects are made."""
    return not applied_of(seen.backend).identity_providers and not seen.backend.status.domain_id


def _unless_nothing_was_applied(rule: Rule) -> Rule:
    def asked(seen: Seen) -> Answer:
        return None if nothing_was_applied(seen) and not seen.deletes_domain else rule(seen)

    return asked


def _unless_locked_out(rule: Rule) -> Rule:
    """Fail open: without the admin password nothing can be asked of Keystone, and nobody is held for it."""

    def asked(seen: Seen) -> Answer:
        return None if seen.admin_fault else rule(seen)

    return asked


FEDERATED_RULES: Final[tuple[Rule, ...]] = (
    nothing_of_ours, keystone_is_gone, deletion_step_worked,
    _unless_locked_out(_unless_nothing_was_applied(keystone_answers_deletion)),
    _unless_locked_out(_unless_nothing_was_applied(deletion_lookup_worked)),
    providers_are_closed, configuration_is_gone, admin_password_is_gone, objects_are_gone, domain_is_retained, domain_is_gone, domain_is_removed,
)  # fmt: skip
"""Of a federated backend; `providers_are_closed` finds nothing where Keystone could not be asked."""


def is_closed(seen: Seen) -> bool:
    """Whether the pods may drop this backend: every identity provider of ours is known to be closed, or cannot be reached for good."""
    if seen.admin_fault or nothing_was_applied(seen):
        return True
    return seen.objects is not None and not any(item.enabled for item in owned_providers(seen))


def _leaving(message: str) -> Waiting:
    return Waiting("Deleting", message, after=POLL)


def _failed(seen: Seen, why: str) -> Failed:
    domain = seen.wanted_objects is None or (seen.failure is not None and isinstance(seen.failure.plan, DomainPlan))
    return Failed("DomainDeleteFailed" if domain else "FederationTeardownFailed", f"{why}. {_way_out(seen)}")


LASTING: Final = 300.0
"""Seconds after which a deletion that does not get on is no matter of a Keystone that just restarts: then a person is told how to force it."""


def _way_out(seen: Seen) -> str:
    if seen.wanted_objects is None:
        return "Set spec.domain.deletionPolicy to Retain to leave the domain and finish"
    if seen.leaving < LASTING:
        return "It is tried again"
    return f"Remove finalizer {FINALIZER} by hand to leave everything as it is in Keystone"


def _kept(seen: Seen, why: str) -> Released:
    """Let go with a warning; domain and federation objects are retained."""
    domain = f"domain {seen.domain_name!r} is retained"
    events = [
        Event(
            "Warning",
            "DomainDeleteFailed" if seen.deletes_domain else "DomainRetained",
            f"{why}; the backend is released and {domain}",
        )
    ]
    left = applied_of(seen.backend).identity_providers
    if left:
        names = ", ".join(item.name for item in left)
        events.insert(
            0,
            Event(
                "Warning",
                "FederationTeardownFailed",
                f"{why}; identity provider {names} stays in Keystone with its mapping and protocol",
            ),
        )
    return Released(seen.tells(*events))
