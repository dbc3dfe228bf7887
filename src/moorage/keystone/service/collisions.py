"""Backends of one Keystone that cannot stand beside each other.

Enters: the backends that name a Keystone and are not being deleted. Leaves: for each that collides the reason. None of a colliding set is
projected: which of them was meant, nobody can tell. Admission refuses that; this holds for what bypassed it. Of settings that the one sidecar
has once, and that admission only warns about, the oldest backend's count: who came later and differs waits, and harms nobody.
Source: spec/keystone.md 4.5, 7 (C8, C9); seed 000, webhook rules; cases B13, B28.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from moorage.keystone.backend.federation import issuer_basename, provider_name

from .seen import Attached

Claim: TypeAlias = tuple[str, str]
"""What only one may have, as people call it and as it is compared."""


def collisions(alive: Iterable[Attached]) -> Mapping[str, str]:
    """Why each federated backend that collides is left out, by its name; the first reason counts."""
    items = sorted(alive, key=lambda item: item.name)
    holders: dict[Claim, list[str]] = defaultdict(list)
    for item in items:
        for claim in _claims(item):
            holders[claim].append(item.name)
    found: dict[str, str] = {}
    for (what, _), names in holders.items():
        for name in names if len(names) > 1 else ():
            found.setdefault(name, f"{what} is claimed by more than one backend: {', '.join(names)}")
    for name, why in _unlike(items):
        found.setdefault(name, why)
    return found


def _claims(item: Attached) -> Iterator[Claim]:
    spec = item.backend.spec
    yield f'domain "{item.domain}"'.lower(), item.domain.lower()
    if spec.oidc is None and spec.saml is None:
        return
    yield f'identity provider name "{provider_name(item.backend)}"', provider_name(item.backend)
    remote_id = spec.oidc.issuer if spec.oidc else spec.saml.idp_entity_id if spec.saml else ""
    yield "its remote id (issuer or entityID)", remote_id
    if spec.oidc is not None:
        yield (
            "the name of its metadata documents (its issuer without scheme and slash)",
            issuer_basename(spec.oidc.issuer),
        )
        if spec.oidc.oauth2_introspection is not None and spec.oidc.oauth2_introspection.enabled:
            yield "oauth2Introspection", ""
    else:
        yield "the one place of a SAML backend", ""


def _unlike(items: Sequence[Attached]) -> Iterator[tuple[str, str]]:
    providers = [(item, item.backend.spec.oidc) for item in items if item.backend.spec.oidc is not None]
    if len({oidc.remote_id_attribute for _, oidc in providers}) > 1:
        yield from (
            (item.name, "remoteIDAttribute differs among the OIDC backends of this Keystone") for item, _ in providers
        )
    if not providers:
        return
    first, settled = min(providers, key=lambda pair: (pair[0].backend.metadata.creation_timestamp or "", pair[0].name))
    for item, oidc in providers:
        for name, value, counts in (
            ("sessionType", oidc.session_type, settled.session_type),
            ("stateInputHeaders", oidc.state_input_headers, settled.state_input_headers),
        ):
            if value != counts:
                yield (
                    item.name,
                    f"{name} is one for all OIDC backends of a Keystone, and {first.name}, the oldest, has {counts}",
                )
