"""The pod of a deployed server.

Enters: a declared instance, its image, its keys. Leaves: a pod template. No secret stands in it: the pod takes them from Secrets, and two
annotations change with them, by digests that are keyed with another secret, so that nobody can try guesses. Pure.
Source: spec/pocketid.md 2.1, 5.3; design, "Pods bind $(POD_IP)".
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from moorage.core.digest import concealed_digest
from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

from . import merging
from .children import DATA, labels, name_of, selector
from .environment import TLS_FOLDER, env
from .types import KEY_HASH, PORT, SETTINGS_HASH, PocketIDInstance

CONTAINER: Final = "pocket-id"
PUBLIC: Final = "http"
METRICS: Final = "metrics"
"""Names of ports."""
UID: Final = 1000
"""The user that the server's own image runs as."""
_READ_ONLY: Final = 0o440
_POD_SECURITY: Final[JsonObject] = {
    "runAsNonRoot": True,
    "runAsUser": UID,
    "runAsGroup": UID,
    "fsGroup": UID,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_CONTAINER_SECURITY: Final[JsonObject] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}


@dataclass(frozen=True, slots=True)
class Keys:
    """The secrets of a server.

    Args:
        encryption, api: the keys as their Secrets hold them.
        settings: all secret variables.
        pair: certificate and key of its TLS; () without.
        beside: values of Secrets that `spec.env` names.
    """

    encryption: SecretText
    api: SecretText
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    pair: tuple[str, ...] = field(default=(), repr=False)
    beside: tuple[str, ...] = field(default=(), repr=False)


def template(instance: PocketIDInstance, image: str, keys: Keys) -> JsonObject:
    """The pod template, with `podTemplate` over it.

    Raises:
        TemplateFault: `podTemplate` does not fit.
    """
    spec, name = instance.spec, instance.metadata.name
    pod: JsonObject = {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": spec.pod_security_context or _POD_SECURITY,
        "terminationGracePeriodSeconds": 30,
        "containers": [_container(instance, image, keys)],
        "volumes": _volumes(instance),
    }
    if not spec.host_users:
        pod["hostUsers"] = False
    ours = {"metadata": {"labels": labels(instance), "annotations": dict(spec.annotations or {})}, "spec": pod}
    made = merging.merged(ours, spec.pod_template, merging.POD_TEMPLATE)
    meta = made.get("metadata") or {}
    chosen = {**(meta.get("labels") or {}), **selector(name)}
    noted = {**(meta.get("annotations") or {}), **_hashes(keys)}
    return {**made, "metadata": {**meta, "labels": chosen, "annotations": noted}}


def _hashes(keys: Keys) -> dict[str, str]:
    api = keys.api.reveal()
    found = {KEY_HASH: concealed_digest(api, keys.encryption.reveal().encode())}
    if keys.settings or keys.pair or keys.beside:
        parts = [dict(keys.settings), keys.pair, *([keys.beside] if keys.beside else [])]
        text = json.dumps(parts, sort_keys=True)
        found[SETTINGS_HASH] = concealed_digest(text, api.encode())
    return found


def _container(instance: PocketIDInstance, image: str, keys: Keys) -> JsonObject:
    spec = instance.spec
    ports: list[JsonObject] = [{"name": PUBLIC, "containerPort": PORT, "protocol": "TCP"}]
    if spec.metrics is not None and spec.metrics.enabled:
        ports.append({"name": METRICS, "containerPort": spec.metrics.port, "protocol": "TCP"})
    made: JsonObject = {
        "name": CONTAINER,
        "image": image,
        "env": env(instance, keys.settings),
        "ports": ports,
        "volumeMounts": _mounts(instance),
        "securityContext": spec.container_security_context or _CONTAINER_SECURITY,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        **_probes(instance),
    }
    if spec.resources:
        made["resources"] = spec.resources
    return made


def _probes(instance: PocketIDInstance) -> JsonObject:
    """A start may migrate a large database, so it gets ten minutes before liveness counts."""
    spec = instance.spec
    look: JsonObject = {"path": "/healthz", "port": PUBLIC}
    if spec.tls is not None:
        look["scheme"] = "HTTPS"
    asked = {"httpGet": look, "timeoutSeconds": 5}
    return {
        "startupProbe": {**asked, "periodSeconds": 2, "failureThreshold": 300},
        "readinessProbe": spec.readiness_probe or {**asked, "periodSeconds": 5, "failureThreshold": 3},
        "livenessProbe": spec.liveness_probe or {**asked, "periodSeconds": 20, "failureThreshold": 3},
    }


def _mounts(instance: PocketIDInstance) -> list[JsonObject]:
    wanted = instance.spec.volume
    data: JsonObject = {"name": "data", "mountPath": wanted.path}
    if wanted.sub_path:
        data["subPath"] = wanted.sub_path
    found = [data, {"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108 - a volume of the pod's own
    if instance.spec.tls is not None:
        found.append({"name": "tls", "mountPath": TLS_FOLDER, "readOnly": True})
    return [*found, *(wanted.extra_volume_mounts or ())]


def _volumes(instance: PocketIDInstance) -> list[JsonObject]:
    wanted = instance.spec.volume
    data: JsonObject = {"name": "data", "emptyDir": {}}
    if wanted.enabled:
        claim = wanted.existing_claim or name_of(instance, DATA)
        data = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    found = [data, {"name": "tmp", "emptyDir": {}}]
    if instance.spec.tls is not None:
        secret = {"secretName": instance.spec.tls.secret_ref.name, "defaultMode": _READ_ONLY}
        found.append({"name": "tls", "secret": secret})
    return found
