"""The snapshot of one pass over a Keystone, and questions about it.

Enters: what `observe.py` read. Leaves: frozen values that decide, render and report look at. It reads nothing itself.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from moorage.core.conditions import Condition
from moorage.core.meta import JsonObject, Key, ResourceType, controlled_by, is_terminating
from moorage.keystone.backend.materials import Materials
from moorage.keystone.backend.types import KeystoneIdentityBackend

from .types import Keystone

if TYPE_CHECKING:
    from .render import Wanted

SECRET: Final = ResourceType("", "v1", "Secret", "secrets")
CONFIG_MAP: Final = ResourceType("", "v1", "ConfigMap", "configmaps")
SERVICE: Final = ResourceType("", "v1", "Service", "services")
POD: Final = ResourceType("", "v1", "Pod", "pods")
PVC: Final = ResourceType("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
DEPLOYMENT: Final = ResourceType("apps", "v1", "Deployment", "deployments")
JOB: Final = ResourceType("batch", "v1", "Job", "jobs")
CRON_JOB: Final = ResourceType("batch", "v1", "CronJob", "cronjobs")
PDB: Final = ResourceType("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
NETWORK_POLICY: Final = ResourceType("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
OWNED: Final = (SECRET, CONFIG_MAP, SERVICE, PVC, DEPLOYMENT, JOB, CRON_JOB, PDB, NETWORK_POLICY)
"""The kinds of our children, named here because pure doors do not import `moorage.kube`."""


class SecretFault(ValueError):
    """A Secret that cannot be used: which one and why, never a value. `missing`: a person has yet to bring it."""

    def __init__(self, text: str, *, missing: bool = False) -> None:
        super().__init__(text)
        self.missing = missing


def secret_text(secret: JsonObject | None, name: str, key: str) -> str:
    """The text of one data key, trailing CR and LF trimmed (the `--from-file` habit; decisions Keystone 6).

    Raises:
        SecretFault: the Secret or the key is missing or empty, or the value is no single line of text.
    """
    if secret is None:
        raise SecretFault(f'Secret "{name}" does not exist', missing=True)
    try:
        raw = base64.b64decode((secret.get("data") or {}).get(key) or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        raise SecretFault(f'Secret "{name}", key "{key}": not UTF-8 text') from None
    text = raw.rstrip("\r\n")
    if not text:
        raise SecretFault(f'Secret "{name}" has no "{key}", or an empty one', missing=True)
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise SecretFault(f'Secret "{name}", key "{key}": holds a control character')
    return text


@dataclass(frozen=True, slots=True)
class Attached:
    """One backend that names this Keystone, with all that its projection needs."""

    backend: KeystoneIdentityBackend
    materials: Materials = field(default_factory=Materials, repr=False)

    @property
    def name(self) -> str:
        return self.backend.metadata.name

    @property
    def domain(self) -> str:
        return self.backend.spec.domain.name

    @property
    def terminating(self) -> bool:
        return bool(self.backend.metadata.deletion_timestamp)

    @property
    def projected(self) -> bool:
        """Whether every replica ran with it when its controller last looked."""
        return any(c.type == "ConfigProjected" and c.status == "True" for c in self.backend.status.conditions)

    @property
    def domain_ready(self) -> bool:
        return any(c.type == "DomainReady" and c.status == "True" for c in self.backend.status.conditions)


@dataclass(frozen=True, slots=True)
class Inputs:
    """All that the children are made from.

    Args:
        passphrase: the Secret that encrypts sessions of the sidecar.
        pair: the Secret with our own key pair of the SAML service provider.
        staged: the Secret with the key pair that will take its place.
        running: image of the sidecar that the Deployment runs, "" without one.
    """

    keystone: Keystone
    database: JsonObject | None = field(default=None, repr=False)
    admin: JsonObject | None = field(default=None, repr=False)
    policy: JsonObject | None = None
    backends: tuple[Attached, ...] = ()
    passphrase: JsonObject | None = field(default=None, repr=False)
    pair: JsonObject | None = field(default=None, repr=False)
    staged: JsonObject | None = field(default=None, repr=False)
    running: str = ""


@dataclass(frozen=True, slots=True)
class Health:
    """One look at the Identity API. `reason` is that of KeystoneAPIReady."""

    ok: bool
    reason: str
    message: str
    at: datetime


Step = Literal[
    "DBConnectionSecret", "FederationSecrets", "SPMetadata", "Config", "FernetKeys", "CredentialKeys", "NetworkPolicy",
    "Database", "Deployment", "SAMLWorkload", "Prune", "HealthCheck", "Bootstrap", "TrustFlush",
]  # fmt: skip
"""Sub-reconcilers, named as in the metrics of spec/keystone.md 6."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """A write that the API server, or we ourselves, refused: the step it belongs to and why."""

    step: Step
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Note:
    """Something that this pass did and a person should read."""

    reason: str
    message: str
    warning: bool = False


@dataclass(frozen=True, slots=True)
class Seen:
    """One pass: inputs, what they call for, the children that live, and what this pass has done already.

    Args:
        live: children by (kind, name), ours and those that merely carry a name of ours.
        done: steps of this pass whose writes have been made; they are not asked for again.
        health: the newest answer of the API, None before the first.
        refusal: a write of this pass that was refused; the pass ends.
        notes: what this pass did beyond the ordinary.
        namespace_ends: the namespace is being deleted, nothing new may be made.
        troubles: what pods that do not work say, by name of their Job, `troubles.API` for the API pods.
    """

    inputs: Inputs
    wanted: Wanted
    now: datetime
    stored: tuple[Condition, ...] = ()
    live: Mapping[tuple[str, str], JsonObject] = field(default_factory=dict, repr=False)
    done: frozenset[Step] = frozenset()
    health: Health | None = None
    refusal: Refusal | None = None
    notes: tuple[Note, ...] = ()
    namespace_ends: bool = False
    troubles: Mapping[str, str] = field(default_factory=dict)

    @property
    def keystone(self) -> Keystone:
        return self.inputs.keystone

    @property
    def key(self) -> Key:
        return self.inputs.keystone.key

    @property
    def name(self) -> str:
        return self.inputs.keystone.metadata.name

    def child(self, kind: ResourceType, name: str) -> JsonObject | None:
        """The live object of that kind and name, or None."""
        return self.live.get((kind.kind, name))

    def owns(self, obj: JsonObject) -> bool:
        """Whether this Keystone controls a live object."""
        return controlled_by(obj, self.inputs.keystone.metadata.uid)

    def after(self, step: Step, written: Mapping[tuple[str, str], JsonObject | None]) -> Seen:
        """The snapshot once a step is done: answers noted, None for what was deleted."""
        live = {**self.live, **{key: obj for key, obj in written.items() if obj is not None}}
        for key, obj in written.items():
            if obj is None:
                live.pop(key, None)
        return replace(self, live=live, done=self.done | {step})


def mounted(deployment: JsonObject | None, volume: str) -> str | None:
    """Name of the Secret behind a volume of the pod template, None without one."""
    if deployment is None:
        return None
    for item in deployment["spec"]["template"]["spec"].get("volumes") or ():
        if item["name"] == volume:
            name: str = item["secret"]["secretName"]
            return name
    return None


JobState = Literal["absent", "ending", "running", "complete", "failed"]


def job_state(job: JsonObject | None) -> JobState:
    """Where a Job stands."""
    if job is None:
        return "absent"
    if is_terminating(job):
        return "ending"
    found = {c["type"] for c in (job.get("status") or {}).get("conditions") or () if c["status"] == "True"}
    if "Complete" in found:
        return "complete"
    return "failed" if "Failed" in found else "running"


def failed_since(job: JsonObject) -> datetime | None:
    """When a Job failed for good; None when its status does not say."""
    for condition in job["status"].get("conditions") or ():
        if condition["type"] == "Failed" and condition.get("lastTransitionTime"):
            return datetime.fromisoformat(condition["lastTransitionTime"].replace("Z", "+00:00"))
    return None
