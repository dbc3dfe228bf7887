"""What is said about a Keystone after a pass: conditions, status, events.

Enters: the snapshot at its end and the outcome. Leaves: a Report. The rules of `decide` are asked again, so that a condition is the
answer of the rule and nothing else. Parts that the pass did not reach keep what was said before.
Source: spec/keystone.md 1.1, 1.2, 4.5, 4.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.core import conditions
from moorage.core.conditions import Condition, false, find, true
from moorage.core.meta import JsonObject
from moorage.core.outcome import Done, Failed, Outcome
from moorage.runtime.projection import rolled_out
from moorage.runtime.room import Event, Report

from .catalogue import unknown_options
from .decide import GROUPS, SHOWN, Answer, answers
from .met import Met
from .plan import Plan
from .seen import DEPLOYMENT, Seen

REQUIRED: Final = (
    "SecretsReady", "FernetKeysReady", "CredentialKeysReady", "NetworkPolicyReady", "DatabaseReady",
    "DeploymentReady", "BootstrapReady", "KeystoneAPIReady", "TrustFlushReady", "IdentityBackendsReady",
)  # fmt: skip
"""What Ready sums up, causes before what follows from them; the other parts of spec/keystone.md 1.2 do not exist in this release."""
EXTRA_CONFIG: Final = "ExtraConfigHealthy"
_KEYS: Final = ("Available", "Rotated", "Invalid")
REASONS: Final = {
    "SecretsReady": (
        "SecretsAvailable", "WaitingForDBCredentials", "WaitingForAdminCredentials", "ConfigError", "ForeignObject",
        "WriteRefused",
    ),
    "FernetKeysReady": ("GeneratingKeys", *(f"FernetKeys{word}" for word in _KEYS)),
    "CredentialKeysReady": (
        "GeneratingKeys", *(f"CredentialKeys{word}" for word in _KEYS), "MigratingCredentials",
        "CredentialMigrationFailed",
    ),
    "NetworkPolicyReady": ("NetworkPolicyReady", "NetworkPolicyNotRequired"),
    "DatabaseReady": ("DatabaseSynced", "DBSyncInProgress", "DBSyncFailed"),
    "DeploymentReady": ("DeploymentReady", "WaitingForDeployment"),
    "BootstrapReady": ("BootstrapComplete", "BootstrapInProgress", "BootstrapFailed", "AdminSecretInvalid"),
    "KeystoneAPIReady": (
        "APIHealthy", "APIUnhealthy", "EndpointNotReady", "HealthCheckTimeout", "ConnectionFailed", "HealthCheckFailed",
        "DatabaseUnavailable",
    ),
    "TrustFlushReady": ("TrustFlushReady", "TrustFlushNotRequired"),
    "IdentityBackendsReady": (
        "IdentityBackendsNotRequired", "AllBackendsProjected", "WaitingForBackends", "WaitingForRollout",
    ),
    EXTRA_CONFIG: ("ExtraConfigHealthy", "OwnedKeyOverridden", "UnknownOption"),
    "Ready": ("AllReady", "NotAllReady"),
}  # fmt: skip
"""Every reason by condition type, for the reference."""
_WARNED: Final = frozenset(
    {"ConfigError", "FernetKeysInvalid", "CredentialKeysInvalid", "CredentialMigrationFailed", "DBSyncFailed",
     "BootstrapFailed", "AdminSecretInvalid", "ForeignObject", "WriteRefused"}
)  # fmt: skip
"""Reasons that also make a Warning event when they come up: a person is needed, or somebody else's object is in the way."""
EVENTS: Final = (
    "IdentityBackendSkipped", "FederationProxyImageMissing", "FederationMetadataStale", "SAMLEntityIDChanged",
    "SAMLKeyPairSwitched", "SAMLKeyPairLost", "OIDCPassphraseLost", "ExtraConfigOwnedKeyOverride", "FernetKeysRotated", "CredentialKeysRotated", *sorted(_WARNED),
)  # fmt: skip
"""Every event reason, for the reference."""
_STEPS: Final = {
    "DBConnectionSecret": "SecretsReady", "FederationSecrets": "IdentityBackendsReady", "SPMetadata": "IdentityBackendsReady",
    "SAMLWorkload": "DeploymentReady", "Config": "SecretsReady", "Prune": "SecretsReady",
    "FernetKeys": "FernetKeysReady", "CredentialKeys": "CredentialKeysReady", "NetworkPolicy": "NetworkPolicyReady",
    "Database": "DatabaseReady", "Deployment": "DeploymentReady", "HealthCheck": "KeystoneAPIReady",
    "Bootstrap": "BootstrapReady", "TrustFlush": "TrustFlushReady",
}  # fmt: skip


def report(seen: Seen, outcome: Outcome) -> Report:
    """Conditions, status and events of one pass. A terminating Keystone keeps what was said."""
    if seen.keystone.metadata.deletion_timestamp or seen.namespace_ends:
        return Report(conditions=seen.stored)
    found = [*_parts(seen, outcome), _extra_config(seen)]
    ready = conditions.aggregate(found, REQUIRED)
    told = (*found, ready)
    return Report(conditions=told, status=_status(seen), events=tuple(_events(seen, told)))


def _parts(seen: Seen, outcome: Outcome) -> list[Condition]:
    """One condition for each part, in the order of the rules."""
    asked: dict[str, list[Answer | None]] = {}
    for rule, answer in answers(seen):
        asked.setdefault(rule.condition, []).append(answer)
    order = [rule.condition for group in GROUPS for rule in group]
    refused = _STEPS[seen.refusal.step] if seen.refusal is not None and isinstance(outcome, Failed) else ""
    found = []
    for type_ in dict.fromkeys(order):
        if type_ == refused and isinstance(outcome, Failed):
            found.append(false(type_, outcome.reason, outcome.message))
        elif condition := _condition(type_, asked[type_], find(seen.stored, type_)):
            found.append(condition)
    return sorted(found, key=lambda item: REQUIRED.index(item.type))


def _condition(type_: str, said: list[Answer | None], before: Condition | None) -> Condition | None:
    """The first rule that is not met speaks; the last one that is met speaks when all are; else what was said before."""
    met: Met | None = None
    for answer in said:
        if answer is None or isinstance(answer, Plan):
            return before if before is not None or met is None else true(type_, met.reason, met.message)
        if not isinstance(answer, Met):
            return _held(type_, answer)
        met = answer
    assert met is not None
    return true(type_, met.reason, met.message)


def _held(type_: str, answer: Outcome) -> Condition:
    assert not isinstance(answer, Done)
    return false(type_, answer.reason, answer.message)


def _extra_config(seen: Seen) -> Condition:
    """Informational: what of ours extraConfig overrides, and options that Keystone does not know."""
    overrides, unknown = seen.wanted.overridden, unknown_options(seen.keystone)
    if overrides:
        return false(EXTRA_CONFIG, "OwnedKeyOverridden", f"extraConfig overrides {', '.join(overrides)}")
    if unknown:
        return false(EXTRA_CONFIG, "UnknownOption", f"this Keystone does not know {', '.join(unknown)}")
    return true(EXTRA_CONFIG, "ExtraConfigHealthy")


def _status(seen: Seen) -> JsonObject:
    stored, live = seen.keystone.status, seen.child(DEPLOYMENT, seen.name)
    target = seen.keystone.spec.image.tag
    current = _runs_wanted_image(seen, live)
    installed = target if current and rolled_out(live) else stored.installed_release
    rolling = target is not None and installed is not None and installed != target
    return {
        "endpoint": seen.keystone.public_endpoint if live is not None else stored.endpoint,
        "installedRelease": installed,
        "targetRelease": target if rolling else None,
        "upgradePhase": "RollingUpdate" if rolling and current else None,
    }


def _runs_wanted_image(seen: Seen, live: JsonObject | None) -> bool:
    if live is None:
        return False
    containers = live["spec"]["template"]["spec"]["containers"]
    return any(c["name"] == "keystone" and c["image"] == seen.keystone.spec.image.reference for c in containers)


def _backend_events(seen: Seen) -> Iterator[Event]:
    """What a person should know of backends. The message of the condition remembers what was said; what it does not show is not said."""
    before = find(seen.stored, "IdentityBackendsReady")
    said = before.message if before else ""
    for left in seen.wanted.left[:SHOWN]:
        own = left.reason if left.reason in EVENTS else ""
        if (left.fault or own) and f"{left.name} ({left.why})" not in said:
            yield Event(
                "Warning", own or "IdentityBackendSkipped", f"identity backend {left.name} is skipped: {left.why}"
            )
    for text in seen.wanted.stale[:SHOWN]:
        if text not in said:
            yield Event("Warning", "FederationMetadataStale", text)


def _events(seen: Seen, told: tuple[Condition, ...]) -> Iterator[Event]:
    """What changed since the stored status, each once."""
    yield from _backend_events(seen)
    extra, known = find(told, EXTRA_CONFIG), find(seen.stored, EXTRA_CONFIG)
    if extra and extra.reason == "OwnedKeyOverridden" and (known is None or known.message != extra.message):
        yield Event("Warning", "ExtraConfigOwnedKeyOverride", extra.message)
    for item in told:
        old = find(seen.stored, item.type)
        if item.reason in _WARNED and (old is None or old.reason != item.reason):
            yield Event("Warning", item.reason, item.message)
    for note in seen.notes:
        yield Event("Warning" if note.warning else "Normal", note.reason, note.message)
