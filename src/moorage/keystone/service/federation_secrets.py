"""Secrets of federation that outlive the generations of the sidecar's files: passphrase, key pair of the service provider, its metadata.

Rules of `decide`. Each Secret is made once and never over one that is there; a content that cannot serve is the matter of the backends
that need it, never of the whole Keystone. Enters: the snapshot. Leaves: Met, a plan, or why nothing can be done.
Source: spec/keystone.md 1.3, 3.6; decisions, Keystone 12; C5, C10; ADR 0013.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from moorage.core.meta import JsonObject
from moorage.core.outcome import Waiting
from moorage.keystone.backend.federation import METADATA_SUFFIX, PAIR_SUFFIX
from moorage.keystone.backend.precedence import precedence
from moorage.keystone.backend.types import ROLLOVER, STAGE, SWITCH
from moorage.keystone.key_pair import Pair, read_pair

from . import manifests
from .domains import data_of
from .met import Met
from .plan import Ensure, MakePair, MakePassphrase, Plan, Remove, SwitchPair, Tell
from .seen import SECRET, Attached, Inputs, Seen

PASSPHRASE_SECRET: Final = "-oidc-crypto-passphrase"  # noqa: S105 - the end of a name
STAGED_SECRET: Final = "-saml-sp-next"  # noqa: S105


def made(seen: Seen) -> Met | Plan:
    """The passphrase with the first OIDC backend, the key pair with the first SAML backend that does not bring one: whatever else it
    lacks, its metadata can be handed to the provider (C5)."""
    wanted = seen.wanted.federation
    if wanted.needs_passphrase:
        return Plan("FederationSecrets", (MakePassphrase(f"{seen.name}{PASSPHRASE_SECRET}"), *_forgotten(seen)))
    if wanted.needs_pair and seen.inputs.pair is None:
        return Plan("FederationSecrets", (MakePair(f"{seen.name}{PAIR_SUFFIX}"), *_lost(seen)))
    return _rollover(seen) or Met("FederationSecretsPresent")


def _lost(seen: Seen) -> tuple[Tell, ...]:
    """A word about a pair that was there before: its certificate stands in metadata that the provider may have."""
    live = seen.child(SECRET, f"{seen.name}{METADATA_SUFFIX}")
    if live is None or not seen.owns(live):
        return ()
    text = f'Secret "{seen.name}{PAIR_SUFFIX}" was gone, so a new key pair was made: register the new SP metadata at the identity provider'
    return (Tell("SAMLKeyPairLost", text),)


def _forgotten(seen: Seen) -> tuple[Tell, ...]:
    """A word about a passphrase that was there before: an OIDC backend was in use."""
    if not any(item.projected and item.backend.spec.oidc for item in seen.inputs.backends):
        return ()
    text = f'Secret "{seen.name}{PASSPHRASE_SECRET}" was gone, so a new passphrase was made: people who signed in with OIDC sign in once more'
    return (Tell("OIDCPassphraseLost", text),)


def _rollover(seen: Seen) -> Plan | None:
    """One step of the rollover that an annotation asks for. Doing it again changes nothing."""
    alive = _saml(seen) if seen.wanted.federation.needs_pair else []
    asked = {(item.backend.metadata.annotations or {}).get(ROLLOVER, "") for item in alive[:1]}
    present, staged = seen.inputs.pair, seen.inputs.staged
    if staged is None:
        return Plan("FederationSecrets", (MakePair(f"{seen.name}{STAGED_SECRET}"),)) if STAGE in asked else None
    if not seen.owns(staged):
        return None
    usable = isinstance(read_pair(data_of(staged) or {}), Pair)
    if usable and SWITCH in asked and present is not None and not _foreign(seen, present):
        return Plan("FederationSecrets", (SwitchPair(present, staged),))
    return None if usable and STAGE in asked else Plan("FederationSecrets", (Remove(SECRET, staged),))


def _foreign(seen: Seen, secret: JsonObject) -> bool:
    """Whether another object controls it; a pair that a person put there has no controller."""
    owners = secret["metadata"].get("ownerReferences") or ()
    return any(owner.get("controller") for owner in owners) and not seen.owns(secret)


def exported(seen: Seen) -> Met | Plan | Waiting:
    """What a person registers at the provider, written as soon as key pair and address are known, and removed with the last SAML backend."""
    name, wanted = f"{seen.name}{METADATA_SUFFIX}", seen.wanted.federation.sp
    live = seen.child(SECRET, name)
    if live is not None and not seen.owns(live):
        why = f'Secret "{name}" exists and is not ours; delete or rename it: the metadata for the provider is to stand there'
        return Waiting("WaitingForBackends", why)
    if wanted is not None:
        return Met("SPMetadataExported") if "SPMetadata" in seen.done else _export(seen, live)
    if live is not None and not _saml(seen):
        return Plan("SPMetadata", (Remove(SECRET, live),))
    return Met("SPMetadataNotRequired")


def _export(seen: Seen, live: JsonObject | None) -> Plan:
    wanted = seen.wanted.federation.sp
    assert wanted is not None
    ensure = Ensure(SECRET, manifests.sp_metadata(seen.keystone, wanted))
    before = ((data_of(live) or {}).get("entityID") or b"").decode(errors="replace")
    if before in ("", wanted.entity_id):
        return Plan("SPMetadata", (ensure,))
    text = f"the entityID of the service provider was {before} and is {wanted.entity_id}: register the new SP metadata at the identity provider"
    return Plan("SPMetadata", (ensure, Tell("SAMLEntityIDChanged", text)))


def _saml(seen: Seen) -> list[Attached]:
    """SAML backends that stay, the one that may be served first."""
    found = [item for item in seen.inputs.backends if item.backend.spec.saml is not None and not item.terminating]
    return sorted(found, key=lambda item: precedence(item.backend))


def renewed(seen: Seen) -> Inputs:
    """The inputs with the Secrets of this module as they live now; the very same object when none of them changed."""
    inputs = seen.inputs
    live = {
        suffix: seen.child(SECRET, seen.name + suffix) for suffix in (PASSPHRASE_SECRET, PAIR_SUFFIX, STAGED_SECRET)
    }
    now = (live[PASSPHRASE_SECRET], live[PAIR_SUFFIX], live[STAGED_SECRET])
    if all(new is old for new, old in zip(now, (inputs.passphrase, inputs.pair, inputs.staged), strict=True)):
        return inputs
    pairs = {seen.name + suffix: live[suffix] for suffix in (PAIR_SUFFIX, STAGED_SECRET)}
    backends = tuple(_with_pairs(item, pairs) for item in inputs.backends)
    return replace(inputs, passphrase=now[0], pair=now[1], staged=now[2], backends=backends)


def _with_pairs(item: Attached, pairs: dict[str, JsonObject | None]) -> Attached:
    held = {name: data_of(obj) for name, obj in pairs.items() if name in item.materials.secrets}
    if not held:
        return item
    return replace(item, materials=replace(item.materials, secrets={**item.materials.secrets, **held}))
