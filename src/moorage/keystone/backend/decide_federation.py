"""The policy for federation objects: created closed, opened once every replica protects them, closed first when anything is lost.

Enters: a snapshot whose domain is settled. Leaves: answers of rules. Pure. FederationObjectsReady is what its list answers.
Source: seed 000, Conditions; spec/keystone.md 4.2, 7 (S1, S4, S5); decisions, Keystone 1 to 3.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from moorage.core.outcome import Waiting
from moorage.keystone.identity_federation import IdentityProvider, Protocol

from .applied import covers
from .decide_config import is_projected
from .decide_mappings import MAPPING_RULES, nothing_is_foreign, rules_are_declared
from .owned import both, is_open, is_owned, is_settled, owned_providers, owns_mapping, protocol_of, retired
from .rule import OBJECT_POLL, Answer, Rule, failed, first_answer
from .seen import DomainPlan, Seen
from .seen_federation import (
    CloseProvider,
    CreateProtocol,
    CreateProvider,
    DeleteMapping,
    DeleteProtocol,
    DeleteProvider,
    LeaveMapping,
    MappingPlan,
    OpenProvider,
    UpdateProtocol,
    UpdateProvider,
)
from .wanted import Wanted, adopts_objects, applied_of, mapping_of, marker, placeholder, recorded_provider

# --- closing


def lost_providers_are_closed(seen: Seen) -> Answer:
    """Disabled first, and only for what is a fact: no rules, no projection, no domain. A failed look closes nothing (S1, C6)."""
    if seen.failure is not None or seen.objects is None:
        return None
    why = _why_closed(seen)
    opened = [item for item in owned_providers(seen) if item.enabled]
    return CloseProvider(opened[0].id, why) if why and opened else None


def _why_closed(seen: Seen) -> str:
    if seen.wanted_objects is None or not seen.wanted_objects.rules:
        return "spec.mappings is empty"
    if seen.mount.exists and not seen.mount.carries:
        return "its Keystone no longer carries this backend's configuration"
    return ""


# --- FederationObjectsReady


def objects_step_worked(seen: Seen) -> Answer:
    """An unanswered write ends the pass, and the queue tries again; one that Keystone refuses for its content needs a person."""
    failure = seen.failure
    if failure is None or isinstance(failure.plan, DomainPlan | MappingPlan):
        return None
    return failed(failure)


def remote_id_is_free(seen: Seen) -> Answer:
    """Keystone keeps remote ids unique, over all identity providers (case B28)."""
    if (pair := both(seen)) is None or not pair[1].taken_by:
        return None
    message = (
        f"remote id {pair[0].remote_id} is registered with identity provider {pair[1].taken_by}, and Keystone takes it once only:"
        " remove it there, or attach to another issuer"
    )
    return Waiting("RemoteIDTaken", message, after=OBJECT_POLL)


def intents_are_recorded(seen: Seen) -> Answer:
    """Names go into the status before the objects go into Keystone, so that whatever is cut short is found again."""
    if covers(seen):
        return None
    return Waiting("WaitingForConfigProjection", "the objects are about to be created", after=0.0, keep=True)


def provider_exists(seen: Seen) -> Answer:
    """Created closed, in our domain, with its remote id: or one that nobody asserts while an earlier name still has it."""
    if (pair := both(seen)) is None or pair[0].provider in pair[1].providers:
        return None
    wanted = pair[0]
    remote_ids = tuple(_target_ids(seen, wanted, ())) or (placeholder(seen.backend, wanted.provider),)
    return CreateProvider(
        IdentityProvider(wanted.provider, seen.domain_id, False, remote_ids, description=marker(seen.backend))
    )


def provider_is_current(seen: Seen) -> Answer:
    """Drift of description and remote ids is repaired in place. Until every replica runs the new configuration an earlier remote id stays."""
    if (pair := both(seen)) is None:
        return None
    wanted, provider = pair[0], pair[1].providers[pair[0].provider]
    changes: dict[str, Any] = {}
    if provider.description != marker(seen.backend):
        changes["description"] = marker(seen.backend)
    target = _target_ids(seen, wanted, provider.remote_ids) or [placeholder(seen.backend, wanted.provider)]
    if set(target) != set(provider.remote_ids):
        changes["remote_ids"] = target
    return UpdateProvider(provider.id, changes, ", ".join(changes)) if changes else None


def _target_ids(seen: Seen, wanted: Wanted, present: tuple[str, ...]) -> list[str]:
    """Remote ids as they should be now; empty when the wanted one is still with a provider of an earlier name."""
    if any(wanted.remote_id in item.remote_ids for item in retired(seen)):
        return []
    own = placeholder(seen.backend, wanted.provider)
    earlier = [] if is_projected(seen) else [item for item in present if item not in (own, wanted.remote_id)]
    return [*earlier, wanted.remote_id]


def protocol_uses_our_mapping(seen: Seen) -> Answer:
    """A protocol that was pointed at another mapping is repaired at once, projected or not."""
    if (pair := both(seen)) is None:
        return None
    wanted, objects = pair
    found = objects.protocol(wanted.provider, wanted.protocol)
    if found is None or found.mapping_id == wanted.mapping or wanted.mapping not in objects.mappings:
        return None
    return UpdateProtocol(wanted.provider, Protocol(found.id, wanted.mapping, found.remote_id_attribute))


def opening_is_safe(seen: Seen) -> Answer:
    """Nobody may log in before every replica protects the path, nor before the mapping is what was declared (S1)."""
    if is_settled(seen):
        return None
    if not is_projected(seen):
        return Waiting("WaitingForConfigProjection", "the identity provider is opened once ConfigProjected is True")
    if first_answer(MAPPING_RULES, seen) is None:
        return None
    return Waiting("WaitingForMappings", "the identity provider is opened once MappingsReady is True")


def earlier_providers_are_closed(seen: Seen) -> Answer:
    """The replicas know the new name only: the old one gives up logins and its remote id, which Keystone keeps once."""
    if not is_projected(seen):
        return None
    for provider in retired(seen):
        none = (placeholder(seen.backend, provider.id),)
        if provider.enabled or provider.remote_ids != none:
            return CloseProvider(provider.id, "identityProviderName changed", none)
    return None


def protocol_exists(seen: Seen) -> Answer:
    """With its own remote id attribute, so that it never depends on a section of keystone.conf."""
    if (pair := both(seen)) is None or not is_projected(seen):
        return None
    wanted, objects = pair
    found = objects.protocol(wanted.provider, wanted.protocol)
    if found is None:
        return CreateProtocol(wanted.provider, protocol_of(wanted))
    return UpdateProtocol(wanted.provider, protocol_of(wanted)) if found != protocol_of(wanted) else None


def provider_is_open(seen: Seen) -> Answer:
    """The last step: now people can log in."""
    if (pair := both(seen)) is None or not is_projected(seen) or is_open(seen):
        return None
    return OpenProvider(pair[0].provider)


def earlier_objects_are_deleted(seen: Seen) -> Answer:
    """A protocol of an earlier name, then everything of identity providers of an earlier name: protocol, mapping, provider."""
    if (pair := both(seen)) is None or not is_projected(seen):
        return None
    wanted = pair[0]
    record = recorded_provider(seen.backend, wanted.provider)
    for item in pair[1].protocols.get(wanted.provider, ()):
        made = item.mapping_id == wanted.mapping and not adopts_objects(seen.backend)
        ours = made or (record is not None and item.id in record.protocols)
        if ours and item.id != wanted.protocol:
            return DeleteProtocol(wanted.provider, item.id)
    return next((plan for provider in _earlier_names(seen) if (plan := teardown(seen, provider))), None)


def _earlier_names(seen: Seen) -> Iterator[str]:
    wanted = seen.wanted_objects
    names = [item.name for item in applied_of(seen.backend).identity_providers]
    names += [provider.id for provider in retired(seen)]
    return (name for name in dict.fromkeys(names) if wanted is None or name != wanted.provider)


def teardown(seen: Seen, provider: str) -> DeleteProtocol | DeleteMapping | LeaveMapping | DeleteProvider | None:
    """The next deletion of a closed identity provider: its protocols, its mapping, itself. None: nothing of ours is left.

    A mapping to which somebody else's protocol refers stays: without it, or with other rules, that one's people would be locked out.
    """
    objects, record = seen.objects, recorded_provider(seen.backend, provider)
    if objects is None:
        return None
    found = objects.providers.get(provider)
    ours = found is not None and is_owned(seen, found)
    if ours and objects.protocols.get(provider):
        return DeleteProtocol(provider, objects.protocols[provider][0].id)
    mapping = record.mapping if record else mapping_of(provider)
    if mapping in objects.mappings and owns_mapping(seen, provider, mapping):
        user = objects.users.get(mapping)
        return LeaveMapping(mapping, user) if user else DeleteMapping(mapping)
    return DeleteProvider(provider) if ours else None


OBJECT_RULES: Final[tuple[Rule, ...]] = (
    objects_step_worked, rules_are_declared, remote_id_is_free, nothing_is_foreign, intents_are_recorded, provider_exists,
    provider_is_current, protocol_uses_our_mapping, opening_is_safe, earlier_providers_are_closed, protocol_exists, provider_is_open,
    earlier_objects_are_deleted,
)  # fmt: skip
