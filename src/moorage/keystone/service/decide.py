"""The policy of a Keystone, read from top to bottom: groups of rules, each rule one part of the service.

A rule answers Met, the next plan, or why it has to wait. Rules of a group do not wait for each other; a group waits for those
above it. `decide` gives the first plan, `report` asks the same rules for the conditions: one sentence, one place.
Enters: the snapshot. Leaves: a plan or an outcome. Source: spec/keystone.md 1.2; ADR 0010 for the keys.
Bootstrap runs beside the first rollout, not after it: a backend that sees the API before there is an administrator fails and backs off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Final, TypeAlias

from moorage.core.conditions import find
from moorage.core.meta import is_terminating
from moorage.core.outcome import Done, Failed, Outcome, Stalled, Waiting
from moorage.keystone.addresses import PORT, SAML_SUFFIX
from moorage.runtime.projection import rolled_out

from . import federated_pods, federation_secrets, repositories, support
from .federation import CONFIG_VOLUME
from .gathering import closing, pause
from .jobs import job_step
from .manifests import bootstrap, database_name, db_sync, trust_flush
from .met import Met
from .network import Serving, network_policy
from .plan import Action, Ensure, Plan, Probe, Prune, Remove
from .render import CONFIG_BASE, DOMAINS_BASE, FEDERATION_BASE, base_children, bundles, workload
from .seen import (
    CONFIG_MAP,
    CRON_JOB,
    DEPLOYMENT,
    NETWORK_POLICY,
    SECRET,
    SERVICE,
    SecretFault,
    Seen,
    Step,
    mounted,
)
from .troubles import API

Answer: TypeAlias = Met | Plan | Outcome
RETAIN: Final = 3
CONFIDENTIAL: Final = (".client", "sp-key.pem")
"""Ends of the data keys of the sidecar's files that hold a client secret or a private key."""
HEALTHY_FOR: Final = 30.0
"""Seconds for which a good answer of the API counts; then it is asked again."""
SHOWN: Final = 20
"""Backends that a message names; the rest is counted."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One part of the service: the condition it shows in, and the question. `blocking`: later groups wait for it."""

    condition: str
    ask: Callable[[Seen], Answer]
    blocking: bool = True


def supported(seen: Seen) -> Answer:
    """What this release cannot do is refused here too: the webhook may have been down."""
    found = support.complaints(seen.keystone)
    return Stalled("ConfigError", "; ".join(found)) if found else Met("SecretsAvailable")


def secrets(seen: Seen) -> Answer:
    """The credentials that a person brings."""
    if isinstance(seen.wanted.connection, SecretFault):
        return Waiting("WaitingForDBCredentials", str(seen.wanted.connection), after=15)
    if seen.child(DEPLOYMENT, seen.name) is None:
        return administrator(seen)
    return Met("SecretsAvailable")


def administrator(seen: Seen) -> Answer:
    """The administrator's password. Without it nothing is begun; what runs already goes on, since pods take nothing from it: above all
    a backend that is being deleted has to lose its place in them."""
    if isinstance(seen.wanted.password, SecretFault) and seen.wanted.password.missing:
        return Waiting("WaitingForAdminCredentials", str(seen.wanted.password), after=15)
    return Met("SecretsAvailable")


def connection(seen: Seen) -> Answer:
    """The Secrets that pods take their environment from."""
    return _ensured(seen, "DBConnectionSecret", base_children(seen.keystone, seen.wanted)) or Met("SecretsAvailable")


def identity_backends(seen: Seen) -> Answer:
    """Which backends are projected, and whether every replica runs just that. It stops nothing.

    Source: spec/keystone.md 4.5; both directions wait for the rollout.
    """
    found = seen.wanted
    stale = "".join(f"; {text}" for text in found.stale[:SHOWN])
    if found.left:
        return Waiting("WaitingForBackends", waiting_for(seen) + stale)
    if why := _not_rolled_out(seen):
        return Waiting("WaitingForRollout", why + stale)
    if not found.total and found.sidecar:
        return Waiting(
            "WaitingForRollout", "the sidecar stays, and denies, until the backends that are being deleted are closed"
        )
    if not found.total:
        return Met("IdentityBackendsNotRequired", "no backend names this Keystone")
    return Met("AllBackendsProjected", f"{len(found.attached)} projected: {_listed(found.attached)}{stale}")


def _not_rolled_out(seen: Seen) -> str:
    """What keeps the pods from running just what is projected; "" when nothing does."""
    files, live = seen.wanted, seen.child(DEPLOYMENT, seen.name)
    wanted = {"domains": files.domain_files, "federation": files.federation_files}
    for what, volume in (("domains", "domains"), ("federation", CONFIG_VOLUME)):
        bundle = wanted[what]
        if mounted(live, volume) != (bundle.name if bundle else None):
            state = "has not reached the Deployment yet" if bundle else "is still mounted by the Deployment"
            return f"the {what} projection {state}"
    if not rolled_out(live):
        held = [what for what, bundle in wanted.items() if bundle]
        return (
            f"not every replica runs the {' and '.join(held)} projection yet"
            if held
            else "the Deployment has not rolled out yet"
        )
    return _saml_not_rolled_out(seen)


def _saml_not_rolled_out(seen: Seen) -> str:
    """The same of the Deployment that answers SAML for all replicas."""
    name, files = seen.name + SAML_SUFFIX, seen.wanted.federation_files
    live = seen.child(DEPLOYMENT, name)
    if not _forwards(seen):
        return f'Deployment "{name}" is still there' if live is not None and seen.owns(live) else ""
    if mounted(live, CONFIG_VOLUME) != (files.name if files else None):
        return f'the federation projection has not reached Deployment "{name}" yet'
    return "" if rolled_out(live) else f'Deployment "{name}", which answers SAML, has not rolled out yet'


def _forwards(seen: Seen) -> bool:
    return seen.wanted.sidecar is not None and seen.wanted.sidecar.elsewhere


def waiting_for(seen: Seen) -> str:
    """The sentence that names every backend that is left out, and why."""
    reasons = [f"{left.name} ({left.why})" for left in seen.wanted.left]
    return f"Waiting for identity backends: {_listed(reasons, '; ')}"


def _listed(names: Sequence[str], between: str = ", ") -> str:
    more = len(names) - SHOWN
    return between.join(names[:SHOWN]) + (f"{between}and {more} more" if more > 0 else "")


def gathered(seen: Seen) -> Answer:
    """Backends that are attached at once roll the pods once: who is ready first waits a moment for those that come with it. One that
    leaves is closed before its files do.
    """
    if not (wait := pause(seen)):
        return Met("BackendsGathered")
    leaving = _listed(closing(seen))
    why = f"{leaving} is being closed before it leaves the pods" if leaving else waiting_for(seen)
    return Waiting("WaitingForBackends", why, after=wait)


def config(seen: Seen) -> Answer:
    """Configuration and domain files under content-hashed names."""
    if isinstance(seen.wanted.config, ValueError):
        return Stalled("ConfigError", str(seen.wanted.config))
    return _ensured(seen, "Config", bundles(seen.keystone, seen.wanted)) or Met("SecretsAvailable")


def network(seen: Seen) -> Answer:
    """The NetworkPolicy, and its removal."""
    wanted = network_policy(seen.keystone, seen.inputs.backends, Serving(_ports(seen), _forwards(seen)))
    live = seen.child(NETWORK_POLICY, seen.name)
    if wanted is not None:
        return _ensured(seen, "NetworkPolicy", (Ensure(NETWORK_POLICY, wanted),)) or Met("NetworkPolicyReady")
    if live is not None and seen.owns(live):
        return Plan("NetworkPolicy", (Remove(NETWORK_POLICY, live),))
    return Met("NetworkPolicyNotRequired")


def _ports(seen: Seen) -> tuple[int, ...]:
    """Numbers at which pods serve: until a roll between plain and federated pods has ended, those of both."""
    wanted = federated_pods.PORT if seen.wanted.sidecar else PORT
    live = seen.child(DEPLOYMENT, seen.name)
    same = (mounted(live, CONFIG_VOLUME) is not None) == (seen.wanted.sidecar is not None)
    return (wanted,) if live is None or (same and rolled_out(live)) else (PORT, federated_pods.PORT)


def database(seen: Seen) -> Answer:
    """The schema, brought up to date by a Job."""
    job = db_sync(seen.keystone, seen.wanted.mounts.config)
    return job_step(seen, "Database", job, ("DBSyncInProgress", "DBSyncFailed", 30)) or Met("DatabaseSynced")


def serving(seen: Seen) -> Answer:
    """Service, Deployment and disruption budget, until every replica runs the newest template."""
    if plan := _ensured(seen, "Deployment", workload(seen.keystone, seen.wanted)):
        return plan
    live = seen.child(DEPLOYMENT, seen.name)
    if rolled_out(live):
        return Met("DeploymentReady", f"{seen.keystone.spec.replicas} replicas run")
    status = (live or {}).get("status") or {}
    updated = status.get("updatedReplicas", 0)
    text = (
        f"{updated} of {seen.keystone.spec.replicas} replicas are updated, {status.get('readyReplicas', 0)} are ready"
    )
    if (before := status.get("replicas", 0) - updated) > 0:
        text += f", {before} of before have not ended"
    for item in status.get("conditions") or ():
        stuck = item["type"] == "Progressing" and item["status"] == "False"
        if stuck or (item["type"] == "ReplicaFailure" and item["status"] == "True"):
            text += f"; {item.get('message') or item.get('reason')}"
    if said := seen.troubles.get(API):
        text += f"; {said}"
    return Waiting("WaitingForDeployment", text, after=10)


def single(seen: Seen) -> Answer:
    """The workload that answers SAML for all replicas: it runs, or it goes once no pod hands anything on to it."""
    said = f"{seen.keystone.spec.replicas} replicas run"
    if _forwards(seen):
        if why := _saml_not_rolled_out(seen):
            return Waiting("WaitingForDeployment", why, after=10)
        return Met("DeploymentReady", f"{said}, and one pod that answers SAML for all of them")
    found = [(kind, seen.child(kind, seen.name + SAML_SUFFIX)) for kind in (DEPLOYMENT, SERVICE)]
    ours = [(kind, live) for kind, live in found if live and seen.owns(live) and not is_terminating(live)]
    if ours:
        return Plan("SAMLWorkload", tuple(Remove(kind, live, "Foreground") for kind, live in ours))
    return Met("DeploymentReady", said)


def pruned(seen: Seen) -> Answer:
    """Older generations: three stay; of a type that is not projected any more none does, since they hold secrets (B08).

    Of the sidecar's files a generation with another client secret or another private key goes at once (S8): a roll back to it could not
    log anybody in, and a secret that was changed because it leaked is not to be read here.
    """
    found = seen.wanted
    if _forwards(seen) and _saml_not_rolled_out(seen):
        return Met("SecretsAvailable", "older generations stay until every pod runs the present one")
    domains, federation = (bundle.name if bundle else "" for bundle in (found.domain_files, found.federation_files))
    actions = (
        Prune(CONFIG_MAP, f"{seen.name}-{CONFIG_BASE}", found.mounts.config, RETAIN),
        Prune(SECRET, f"{seen.name}-{DOMAINS_BASE}", domains, RETAIN if domains else 0),
        Prune(SECRET, f"{seen.name}-{FEDERATION_BASE}", federation, RETAIN if federation else 0, CONFIDENTIAL),
    )
    return _ensured(seen, "Prune", actions) or Met("SecretsAvailable")


def api(seen: Seen) -> Answer:
    """Whether the Identity API answers. The first time it also waits for the administrator: nobody could log in before."""
    before = find(seen.stored, "KeystoneAPIReady")
    if (before is None or not before.is_true) and not isinstance(bootstrapped(seen), Met):
        return Waiting("EndpointNotReady", "the administrator is not made yet", after=10)
    health = seen.health
    fresh = health is not None and health.ok and (seen.now - health.at).total_seconds() < HEALTHY_FOR
    if not fresh and "HealthCheck" not in seen.done:
        return Plan("HealthCheck", (Probe(seen.keystone.internal_endpoint, database_name(seen.keystone)),))
    assert health is not None
    return Met("APIHealthy") if health.ok else Waiting(health.reason, health.message, after=10)


def bootstrapped(seen: Seen) -> Answer:
    """Administrator, region and endpoints, made by a Job that may run again."""
    held, password = seen.child(SECRET, f"{seen.name}-bootstrap"), seen.wanted.password
    if isinstance(password, SecretFault) and not (password.missing and held):
        return Stalled("AdminSecretInvalid", str(password))
    assert held is not None
    job = bootstrap(seen.keystone, seen.wanted.mounts.config, repositories.version_of(held))
    return job_step(seen, "Bootstrap", job, ("BootstrapInProgress", "BootstrapFailed", 60)) or Met("BootstrapComplete")


def trusts(seen: Seen) -> Answer:
    """The CronJob that removes expired trusts, and its removal."""
    wanted = trust_flush(seen.keystone, seen.wanted.mounts.config)
    live = seen.child(CRON_JOB, f"{seen.name}-trust-flush")
    if wanted is not None:
        return _ensured(seen, "TrustFlush", (Ensure(CRON_JOB, wanted),)) or Met("TrustFlushReady")
    if live is not None and seen.owns(live):
        return Plan("TrustFlush", (Remove(CRON_JOB, live),))
    return Met("TrustFlushNotRequired")


GROUPS: Final = (
    (Rule("SecretsReady", supported),),
    (Rule("SecretsReady", secrets),),
    (Rule("SecretsReady", connection), Rule("SecretsReady", administrator, blocking=False)),
    (Rule("IdentityBackendsReady", federation_secrets.made, blocking=False),),
    (Rule("IdentityBackendsReady", federation_secrets.exported, blocking=False),),
    (Rule("IdentityBackendsReady", gathered),),
    (Rule("IdentityBackendsReady", identity_backends, blocking=False),),
    (Rule("SecretsReady", config),),
    (
        Rule("FernetKeysReady", repositories.fernet_keys),
        Rule("CredentialKeysReady", repositories.credential_keys),
        Rule("NetworkPolicyReady", network),
    ),
    (Rule("DatabaseReady", database),),
    (Rule("DeploymentReady", serving), Rule("BootstrapReady", bootstrapped, blocking=False)),
    (Rule("DeploymentReady", single, blocking=False),),
    (Rule("SecretsReady", pruned),),
    (Rule("KeystoneAPIReady", api), Rule("TrustFlushReady", trusts)),
    (Rule("CredentialKeysReady", repositories.credential_rotation),),
)


def decide(seen: Seen) -> Plan | Outcome:
    """The next plan of this pass, or what it came to."""
    if seen.keystone.metadata.deletion_timestamp or seen.namespace_ends:
        return Done()  # garbage collection takes the children; nothing new is made
    if seen.refusal is not None:
        return Failed(seen.refusal.reason, seen.refusal.message)
    open_: list[Outcome] = []
    for group in GROUPS:
        blocked = False
        for rule in group:
            answer = rule.ask(seen)
            if isinstance(answer, Plan):
                return answer
            if not isinstance(answer, Met):
                open_.append(answer)
                blocked = blocked or rule.blocking
        if blocked:
            return min(open_, key=_urgency)
    return min([Done(after=min(HEALTHY_FOR, _until_rotation(seen))), *open_], key=_urgency)


def answers(seen: Seen) -> Iterator[tuple[Rule, Answer | None]]:
    """What each rule says of a snapshot; None for the rules that the pass does not reach."""
    reached = True
    for group in GROUPS:
        found = [(rule, rule.ask(seen) if reached else None) for rule in group]
        yield from found
        reached = reached and all(isinstance(answer, Met) or not rule.blocking for rule, answer in found)


def _urgency(outcome: Outcome) -> float:
    """Seconds until the outcome wants another look; a failure first, a stall last."""
    match outcome:
        case Failed():
            return 0.0
        case Waiting(after=after) | Done(after=after) if after is not None:
            return after
    return float("inf")


def _until_rotation(seen: Seen) -> float:
    times = [at for at in repositories.rotations(seen) if at is not None]
    return max(1.0, (min(times) - seen.now.astimezone(UTC)).total_seconds()) if times else float("inf")


def _ensured(seen: Seen, step: Step, actions: Sequence[Action]) -> Plan | None:
    return None if step in seen.done else Plan(step, tuple(actions))
