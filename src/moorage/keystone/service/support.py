"""What the schema knows and this release does not do, and what no schema can say of one Keystone alone.

Enters: a declared Keystone. Leaves: complaints with their paths, the same at admission and in a pass, so that nothing is
ignored in silence. Source: spec/keystone.md 1.1, marks O; decisions, Keystone 19.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from moorage.core import cron
from moorage.core.errors import InputError
from moorage.schema.fielderror import FieldError, forbidden, invalid

from .types import Keystone, KeystoneSpec

_SENTENCES: Final = {
    "spec.database.clusterRef": "is not supported by this release; set host, or embedded",
    "spec.database.credentialsMode": "Dynamic is not supported by this release; leave it out",
    "spec.database.tls": "is not supported by this release; leave it out, or set mode to disabled",
    "spec.cache.clusterRef": "is not supported by this release; set servers",
    "spec.uwsgi.httpKeepAliveTimeout": "is not supported by this release; leave it out: a connection ends with its answer",
    "spec.gateway": "is not supported by this release; make the HTTPRoute yourself and set bootstrap.publicEndpoint",
    "spec.autoscaling": "is not supported by this release; set deployment.replicas",
    "spec.passwordRotation.enabled": "is not supported by this release; change the Secret of the password instead",
    "spec.secretStoreRef": "is not supported by this release; bring the Secrets by any means",
    "spec.targetClusterRef": "is not supported by this release; declare the Keystone in its own cluster",
}


def not_supported(spec: KeystoneSpec) -> Iterator[FieldError]:
    """Fields that are set though this release does not act on them."""
    present = {
        "spec.database.clusterRef": spec.database.cluster_ref is not None,
        "spec.database.credentialsMode": spec.database.credentials_mode == "Dynamic",
        "spec.database.tls": spec.database.tls is not None and spec.database.tls.mode != "disabled",
        "spec.cache.clusterRef": spec.cache is not None and spec.cache.cluster_ref is not None,
        "spec.uwsgi.httpKeepAliveTimeout": spec.uwsgi.http_keep_alive_timeout is not None,
        "spec.gateway": spec.gateway is not None,
        "spec.autoscaling": spec.autoscaling is not None,
        "spec.passwordRotation.enabled": spec.password_rotation is not None and spec.password_rotation.enabled,
        "spec.secretStoreRef": spec.secret_store_ref is not None,
        "spec.targetClusterRef": spec.target_cluster_ref is not None,
    }
    for path, is_set in present.items():
        if is_set:
            yield forbidden(path, _SENTENCES[path])


def schedules(spec: KeystoneSpec) -> Iterator[tuple[str, str]]:
    """Paths and texts of all cron schedules."""
    yield "spec.fernet.rotationSchedule", spec.fernet.rotation_schedule
    yield "spec.credentialKeys.rotationSchedule", spec.credential_keys.rotation_schedule
    if spec.trust_flush is not None:
        yield "spec.trustFlush.schedule", spec.trust_flush.schedule
    if spec.password_rotation is not None:
        yield "spec.passwordRotation.schedule", spec.password_rotation.schedule


def bad_schedules(spec: KeystoneSpec) -> Iterator[FieldError]:
    """Schedules that are no cron expression of five fields, or that never come."""
    for path, text in schedules(spec):
        if why := cron_fault(text):
            yield invalid(path, text, why)


def cron_fault(text: str) -> str:
    """Why a text is no cron schedule; "" when it is one."""
    if len(text.split()) != 5:
        return "must be a cron expression of five fields: minute hour day month weekday"
    try:
        cron.read(text)
    except InputError as error:
        return f"must be a cron expression of five fields: {error.why}"
    return ""


def complaints(keystone: Keystone) -> list[str]:
    """All complaints as sentences."""
    spec = keystone.spec
    found = [*not_supported(spec), *bad_schedules(spec)]
    if spec.database.embedded is not None and spec.replicas != 1:
        found.append(forbidden("spec.deployment.replicas", "an embedded database needs exactly one replica"))
    return [error.message for error in found]
