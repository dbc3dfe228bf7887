"""The policy for MappingsReady: rules, groups and role assignments are what is declared; what is declared no more is taken back.

Enters: a snapshot whose domain is settled. Leaves: answers of rules. Pure. An edit changes in place and never deletes a mapping.
Source: seed 000, Conditions, FederationGroupSpec; spec/keystone.md 4.2, 7 (S4); decisions, Keystone 1, 3 and 4; case B37.
"""

from __future__ import annotations

from typing import Final

from moorage.core.outcome import Stalled, Waiting

from .applied import covers, revocable
from .owned import both, foreign
from .rule import OBJECT_POLL, Answer, Rule, failed
from .seen import Seen
from .seen_federation import CreateGroups, CreateMapping, GrantRoles, MappingPlan, RevokeRoles, UpdateMapping, ids
from .wanted import same_rules


def rules_are_declared(seen: Seen) -> Answer:
    """Keystone knows no mapping without rules, and a protocol needs one."""
    if seen.wanted_objects is None or seen.wanted_objects.rules:
        return None
    closed = " the identity provider is disabled" if seen.objects and seen.objects.providers else " nobody can log in"
    return Stalled("NoMappingRules", f"spec.mappings is empty, so{closed}; declare at least one rule")


def nothing_is_foreign(seen: Seen) -> Answer:
    """What somebody else made is reported, never seized (S5)."""
    message = foreign(seen)
    return Waiting("ForeignFederationObject", message, after=OBJECT_POLL) if message else None


def mappings_step_worked(seen: Seen) -> Answer:
    """An unanswered write ends the pass, and the queue tries again; one that Keystone refuses for its content needs a person."""
    failure = seen.failure
    if failure is None or not isinstance(failure.plan, MappingPlan):
        return None
    return failed(failure)


def undeclared_roles_are_revoked(seen: Seen) -> Answer:
    """What this backend granted and no longer declares is taken back, also when there are no rules (S4)."""
    found = revocable(seen)
    return RevokeRoles(found) if found and seen.failure is None else None


def mapping_intents_are_recorded(seen: Seen) -> Answer:
    """As for the other objects."""
    return (
        None
        if covers(seen)
        else Waiting("ApplyingMappings", "the objects are about to be created", after=0.0, keep=True)
    )


def provider_is_there(seen: Seen) -> Answer:
    """The identity provider comes first: its description proves whose the mapping is."""
    if (pair := both(seen)) is None or pair[0].provider in pair[1].providers:
        return None
    return Waiting("ApplyingMappings", f"identity provider {pair[0].provider} does not exist yet", keep=True)


def mapping_is_current(seen: Seen) -> Answer:
    """Created, or changed in place: an edit never deletes (case B37)."""
    if (pair := both(seen)) is None:
        return None
    wanted, objects = pair
    found = objects.mappings.get(wanted.mapping)
    if found is None:
        return CreateMapping(wanted.mapping, wanted.rules)
    return None if same_rules(found, wanted.rules) else UpdateMapping(wanted.mapping, wanted.rules)


def groups_exist(seen: Seen) -> Answer:
    """Created when missing; never changed, never deleted."""
    if (pair := both(seen)) is None:
        return None
    missing = tuple((group.name, group.description) for group in pair[0].groups if group.name not in pair[1].groups)
    return CreateGroups(seen.domain_id, missing) if missing else None


def roles_are_granted(seen: Seen) -> Answer:
    """All that can be resolved; one that cannot does not hold up the others."""
    if (pair := both(seen)) is None:
        return None
    missing = ids(pair[1].resolved.values()) - pair[1].grants
    ordered = tuple(grant for grant in dict.fromkeys(pair[1].resolved.values()) if grant in missing)
    return GrantRoles(ordered) if ordered else None


def names_are_resolved(seen: Seen) -> Answer:
    """Roles and projects are looked for again until they exist."""
    if seen.objects is None or not seen.objects.missing:
        return None
    shown, more = seen.objects.missing[:5], len(seen.objects.missing) - 5
    message = f"{', '.join(shown)}{f' and {more} more' if more > 0 else ''} not found"
    return Waiting("RoleOrProjectNotFound", message, after=OBJECT_POLL)


MAPPING_RULES: Final[tuple[Rule, ...]] = (
    mappings_step_worked, undeclared_roles_are_revoked, rules_are_declared, nothing_is_foreign, mapping_intents_are_recorded,
    provider_is_there, mapping_is_current, groups_exist, roles_are_granted, names_are_resolved,
)  # fmt: skip
