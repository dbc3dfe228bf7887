"""Which federation objects are ours: proven by what Keystone holds, not by a record alone.

Enters: a snapshot. Leaves: answers to "is it ours", "is it open". Pure. The mark is the identity provider's description; mapping and
protocol are ours with it. Source: spec/keystone.md 7 (S4, S5); decisions, Keystone 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from moorage.keystone.identity_federation import IdentityProvider, Protocol

from .seen import Seen
from .seen_federation import Objects
from .types import ADOPT
from .wanted import Wanted, adopts_objects, recorded_provider

ADOPTION: Final = f'; to take it over, annotate this backend with {ADOPT}="true"'


def both(seen: Seen) -> tuple[Wanted, Objects] | None:
    """What is wanted and what is there; None when Keystone was not asked."""
    if seen.wanted_objects is None or seen.objects is None:
        return None
    return seen.wanted_objects, seen.objects


def is_owned(seen: Seen, provider: IdentityProvider) -> bool:
    """Whether this backend created an identity provider, or a person let it have it: by its description, or by record and domain."""
    if f"uid {seen.backend.metadata.uid}" in provider.description:
        return True
    if provider.domain_id != seen.domain_id:
        return False
    return recorded_provider(seen.backend, provider.id) is not None or _adopts(seen)


def _adopts(seen: Seen) -> bool:
    """Whether this backend may take over what it did not create: nothing, while its mapping cannot be had."""
    wanted, objects = seen.wanted_objects, seen.objects
    contested = wanted is not None and objects is not None and wanted.mapping in objects.users
    return adopts_objects(seen.backend) and not contested


def owned_providers(seen: Seen) -> Iterator[IdentityProvider]:
    """Our identity providers: the wanted one, and those of earlier names."""
    found = seen.objects.providers.values() if seen.objects else ()
    return (provider for provider in found if is_owned(seen, provider))


def owns_mapping(seen: Seen, provider: str, id: str) -> bool:
    """A mapping has no place for a mark: it is ours when the identity provider beside it is, since that is only created where there is none."""
    beside = seen.objects.providers.get(provider) if seen.objects else None
    if beside is not None:
        return is_owned(seen, beside)
    record = recorded_provider(seen.backend, provider)
    return (record is not None and record.mapping == id) or adopts_objects(seen.backend)


def foreign(seen: Seen) -> str:
    """What of the wanted names belongs to somebody else; "" when nothing does (defect S5)."""
    if (pair := both(seen)) is None:
        return ""
    wanted, objects = pair
    if user := objects.users.get(wanted.mapping):
        return (
            f"mapping {wanted.mapping} has other rules, and {user} uses it, which is not of this backend: give that protocol a mapping of its own,"
            " declare the same rules here, or set another identityProviderName"
        )
    provider = objects.providers.get(wanted.provider)
    if provider is not None and not is_owned(seen, provider):
        if provider.domain_id != seen.domain_id:
            return (
                f"identity provider {provider.id} exists in domain {provider.domain_id}, and Keystone cannot move it:"
                " delete it, or set another identityProviderName"
            )
        return f"identity provider {provider.id} was not created by this backend{ADOPTION}"
    if wanted.mapping in objects.mappings and not owns_mapping(seen, wanted.provider, wanted.mapping):
        return f"mapping {wanted.mapping} was not created by this backend{ADOPTION}"
    protocol = objects.protocol(wanted.provider, wanted.protocol)
    if protocol is not None and not _owns_protocol(seen, wanted, protocol):
        return (
            f"protocol {protocol.id} of identity provider {wanted.provider} was not created by this backend{ADOPTION}"
        )
    return ""


def _owns_protocol(seen: Seen, wanted: Wanted, protocol: Protocol) -> bool:
    record = recorded_provider(seen.backend, wanted.provider)
    known = record is not None and protocol.id in record.protocols
    return protocol.mapping_id == wanted.mapping or known or adopts_objects(seen.backend)


def foreign_users(seen: Seen, mapping: str, protocols: Mapping[str, Iterable[Protocol]]) -> str:
    """A protocol, not of this backend, that refers to a mapping, in words; "" when there is none.

    While a person lets this backend adopt, what of its identity provider is not recorded was there before, and is somebody's, too; it goes with
    the identity provider, though.
    """
    wanted, adopts = seen.wanted_objects, adopts_objects(seen.backend)
    for provider, found in protocols.items():
        record = recorded_provider(seen.backend, provider)
        ours = record is not None or (wanted is not None and provider == wanted.provider)
        known = {*(record.protocols if record else ()), *([wanted.protocol] if wanted else [])}
        for item in found:
            if item.mapping_id == mapping and not (ours and (item.id in known or not adopts or seen.terminating)):
                return f"protocol {item.id} of identity provider {provider}"
    return ""


def is_open(seen: Seen) -> bool:
    """Whether people can log in through the wanted identity provider."""
    if (pair := both(seen)) is None:
        return False
    provider = pair[1].providers.get(pair[0].provider)
    return provider is not None and provider.enabled


def is_settled(seen: Seen) -> bool:
    """Whether the open identity provider is the declared one: protocol, mapping and remote id."""
    if (pair := both(seen)) is None or not is_open(seen):
        return False
    wanted, objects = pair
    has_id = wanted.remote_id in objects.providers[wanted.provider].remote_ids
    return has_id and objects.protocol(wanted.provider, wanted.protocol) == protocol_of(wanted)


def protocol_of(wanted: Wanted) -> Protocol:
    """The declared protocol."""
    return Protocol(wanted.protocol, wanted.mapping, wanted.attribute)


def retired(seen: Seen) -> Iterator[IdentityProvider]:
    """Our identity providers of earlier names (defect S4)."""
    name = seen.wanted_objects.provider if seen.wanted_objects else ""
    return (provider for provider in owned_providers(seen) if provider.id != name)
