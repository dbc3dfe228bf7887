"""Manifests of the children of a Keystone, apart from the content-hashed bundles.

Enters: a declared Keystone and the names that belong to this pass. Leaves: wire objects, owned by the Keystone. Pure.
Source: spec/keystone.md 1.3; decisions, Keystone 11, 19, 22.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from moorage.core.digest import json_digest
from moorage.core.meta import JsonObject, owner_reference
from moorage.keystone.addresses import PORT, SAML_SUFFIX
from moorage.keystone.key_pair import CERTIFICATE, KEY, Pair

from . import federated_pods, pods
from .sp_metadata import SpMetadata
from .types import Keystone

GATE: Final = "cobaltcore.c5c3.io/pod-spec-hash"
"""Annotation of a Job: what it was run for. A Job of another gate is deleted and made anew."""
BASE_LABEL: Final = "cobaltcore.c5c3.io/config-base"


def connection_url(keystone: Keystone, user: str = "", password: str = "") -> str:
    """The SQLAlchemy URL of the database; a secret, for the connection Secret only."""
    database = keystone.spec.database
    if database.embedded is not None:
        return f"sqlite:///{pods.STATE}/keystone.sqlite"
    driver = "postgresql+psycopg2" if database.engine == "PostgreSQL" else "mysql+pymysql"
    suffix = "" if database.engine == "PostgreSQL" else "?charset=utf8"
    host = f"[{database.host}]" if ":" in (database.host or "") else database.host
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return f"{driver}://{login}@{host}:{database.effective_port}/{database.database}{suffix}"


def database_name(keystone: Keystone) -> str:
    """The database as messages name it."""
    database = keystone.spec.database
    if database.embedded is not None:
        return "the SQLite file on its volume"
    return f"{database.engine} at {database.host}:{database.effective_port}"


def secret(keystone: Keystone, suffix: str, data: Mapping[str, str]) -> JsonObject:
    """A Secret `<ks>-<suffix>` with these texts."""
    encoded = {key: base64.b64encode(data[key].encode()).decode() for key in sorted(data)}
    return {**child(keystone, "v1", "Secret", f"-{suffix}"), "type": "Opaque", "data": encoded}


def key_pair(keystone: Keystone, suffix: str, pair: Pair) -> JsonObject:
    """A Secret `<ks>-<suffix>` of type kubernetes.io/tls with this pair."""
    data = {CERTIFICATE: pair.certificate.decode(), KEY: pair.key.decode()}
    return {**secret(keystone, suffix, data), "type": "kubernetes.io/tls"}


def sp_metadata(keystone: Keystone, found: SpMetadata) -> JsonObject:
    """The Secret `<ks>-saml-sp-metadata`: what a person registers at the identity provider."""
    return secret(
        keystone, "saml-sp-metadata", {"sp-metadata.xml": found.document.decode(), "entityID": found.entity_id}
    )


def volume_claim(keystone: Keystone) -> JsonObject:
    """The volume of an embedded database."""
    embedded = keystone.spec.database.embedded
    assert embedded is not None
    spec: JsonObject = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": embedded.storage_size}}}
    if embedded.storage_class_name is not None:
        spec["storageClassName"] = embedded.storage_class_name
    return {**child(keystone, "v1", "PersistentVolumeClaim", "-data"), "spec": spec}


def deployment(keystone: Keystone, template: JsonObject) -> JsonObject:
    """The Deployment of the API."""
    spec = {
        "replicas": keystone.spec.replicas,
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": pods.api_selector(keystone.metadata.name)},
        "strategy": keystone.spec.pods.strategy or _STRATEGY,
        "template": template,
    }
    return {**child(keystone, "apps/v1", "Deployment"), "spec": spec}


_STRATEGY: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def saml_deployment(keystone: Keystone, template: JsonObject) -> JsonObject:
    """The one pod that answers SAML for all replicas: never two at a time, since each would know its own sessions only (ADR 0012)."""
    spec = {
        "replicas": 1,
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": pods.saml_selector(keystone.metadata.name)},
        "strategy": {"type": "Recreate"},
        "template": template,
    }
    return {**child(keystone, "apps/v1", "Deployment", SAML_SUFFIX), "spec": spec}


def service(keystone: Keystone, *, sticky: bool = False) -> JsonObject:
    """The Service in front of the API pods. It asks for their port by name: in a roll to or from federation the numbers differ.

    Args:
        sticky: a client's requests go to one pod (decisions, Keystone 11). The whole block is ours, so that it goes as a whole.
    """
    port = {"name": pods.PUBLIC, "port": PORT, "targetPort": pods.PUBLIC, "protocol": "TCP"}
    spec = {"type": "ClusterIP", "selector": pods.api_selector(keystone.metadata.name), "ports": [port]}
    affinity = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}}}
    return {**child(keystone, "v1", "Service"), "spec": {**spec, **(affinity if sticky else {})}}


def saml_service(keystone: Keystone) -> JsonObject:
    """The Service by which every other sidecar finds the pod that answers SAML."""
    port = {"name": pods.PUBLIC, "port": federated_pods.PORT, "targetPort": pods.PUBLIC, "protocol": "TCP"}
    spec = {"type": "ClusterIP", "selector": pods.saml_selector(keystone.metadata.name), "ports": [port]}
    return {**child(keystone, "v1", "Service", SAML_SUFFIX), "spec": spec}


def disruption_budget(keystone: Keystone) -> JsonObject:
    """One API pod stays; with a single replica a drain is not blocked. Pods of Jobs, and the one for SAML, do not count."""
    bound = {"minAvailable": 1} if keystone.spec.replicas > 1 else {"maxUnavailable": 1}
    no_job = [{"key": "batch.kubernetes.io/job-name", "operator": "DoesNotExist"}]
    chosen = {"matchLabels": pods.api_selector(keystone.metadata.name), "matchExpressions": no_job}
    return {**child(keystone, "policy/v1", "PodDisruptionBudget"), "spec": {**bound, "selector": chosen}}


def db_sync(keystone: Keystone, config: str) -> JsonObject:
    """The Job that brings the schema up to date. Attaching a backend does not change its gate (C15)."""
    database = keystone.spec.database
    where = [database.engine, database.host, database.effective_port, database.database, database.embedded is not None]
    options = (keystone.spec.extra_config or {}).get("database", {})
    gate = json_digest([keystone.spec.image.reference, where, options])
    return _job(keystone, "db-sync", gate, pods.manage_template(keystone, config, ["db_sync"]))


def credential_migrate(keystone: Keystone, config: str, version: str) -> JsonObject:
    """The Job that encrypts all stored credentials with the primary key of repository `version`."""
    template = pods.manage_template(keystone, config, ["credential_migrate"])
    return _job(keystone, "credential-migrate", json_digest(["migrate", version]), template)


def bootstrap(keystone: Keystone, config: str, version: str) -> JsonObject:
    """The Job that makes administrator, region and endpoints; running it again changes nothing that is right.

    Args:
        version: uid and resourceVersion of the Secret that holds the password, so that a new password runs it again and
            no hash of a password stands anywhere.
    """
    settings = keystone.spec.bootstrap
    internal = keystone.internal_endpoint
    argv = [
        "bootstrap",
        f"--bootstrap-username={settings.admin_user}",
        f"--bootstrap-region-id={settings.region}",
        f"--bootstrap-admin-url={internal}",
        f"--bootstrap-internal-url={internal}",
        f"--bootstrap-public-url={keystone.public_endpoint}",
    ]
    ref = {"name": f"{keystone.metadata.name}-bootstrap", "key": "password"}
    env = [{"name": "OS_BOOTSTRAP_PASSWORD", "valueFrom": {"secretKeyRef": ref}}]
    template = pods.manage_template(keystone, config, argv, env)
    return _job(keystone, "bootstrap", json_digest([argv, version]), template)


def trust_flush(keystone: Keystone, config: str) -> JsonObject | None:
    """The CronJob that removes expired trusts, None when none is declared."""
    wanted = keystone.spec.trust_flush
    if wanted is None:
        return None
    template = pods.manage_template(keystone, config, ["trust_flush", *(wanted.args or ())])
    spec = {
        "schedule": wanted.schedule,
        "suspend": wanted.suspend,
        "concurrencyPolicy": "Forbid",
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"spec": {"backoffLimit": 2, "template": template}},
    }
    return {**child(keystone, "batch/v1", "CronJob", "-trust-flush"), "spec": spec}


def _job(keystone: Keystone, suffix: str, gate: str, template: JsonObject) -> JsonObject:
    job = child(keystone, "batch/v1", "Job", f"-{suffix}")
    job["metadata"]["annotations"] = {GATE: gate}
    return {**job, "spec": {"backoffLimit": 4, "template": template}}


def gate_of(job: JsonObject) -> str:
    """What a live Job was run for."""
    gate: str = (job["metadata"].get("annotations") or {}).get(GATE, "")
    return gate


def child(keystone: Keystone, api_version: str, kind: str, suffix: str = "") -> JsonObject:
    """What all children have: name, labels, owner."""
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {
            "name": keystone.metadata.name + suffix,
            "namespace": keystone.metadata.namespace,
            "labels": pods.labels(keystone.metadata.name),
            "ownerReferences": [owner_reference(keystone.ref)],
        },
    }
