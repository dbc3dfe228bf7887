"""Backends of one Keystone that cannot stand beside each other.

Enters: the backends that name a Keystone and are not being deleted. Leaves: for each that collides the reason. None of a colliding set is
projected: which of them was meant, nobody can tell. Admission refuses most of it; this holds for what bypassed it.
Source: spec/keystone.md 4.5, 7 (C8, C9); seed 000, webhook rules; cases B13, B28.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from moorage.keystone.backend.federation import issuer_basename, provider_name
from moorage.keystone.backend.types import KeystoneIdentityBackend

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


_UNIFORM: Final[Mapping[str, Callable[[KeystoneIdentityBackend], str]]] = {
    "remoteIDAttribute": lambda backend: backend.spec.oidc.remote_id_attribute if backend.spec.oidc else "",
    "sessionType": lambda backend: backend.spec.oidc.session_type if backend.spec.oidc else "",
    "stateInputHeaders": lambda backend: backend.spec.oidc.state_input_headers if backend.spec.oidc else "",
}
"""What the sidecar or keystone.conf has once for all OIDC backends."""


def _unlike(items: Sequence[Attached]) -> Iterator[tuple[str, str]]:
    providers = [item for item in items if item.backend.spec.oidc is not None]
    for name, value in _UNIFORM.items():
        if len({value(item.backend) for item in providers}) > 1:
            yield from ((item.name, f"{name} differs among the OIDC backends of this Keystone") for item in providers)
