"""Metrics of the Keystone room, under the names that dashboards know.

Enters: what observe and apply saw. Leaves: numbers in the process's registry. Labels hold names of objects and steps, never content.
Source: spec/keystone.md 6.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from prometheus_client import Counter, Gauge, Histogram

from moorage.core.meta import Key

DURATION: Final = Histogram(
    "keystone_operator_reconcile_duration_seconds",
    "Time of one step of a pass.",
    ("sub_reconciler",),
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
ERRORS: Final = Counter(
    "keystone_operator_reconcile_errors", "Steps that were refused or failed.", ("sub_reconciler", "condition_type")
)
ROTATION_AGE: Final = Gauge(
    "keystone_operator_key_rotation_age_seconds",
    "Age of the newest key of a repository.",
    ("keystone", "namespace", "key_type"),
)
DB_SYNCS: Final = Counter("keystone_operator_db_sync", "db_sync Jobs that ended.", ("keystone", "namespace", "result"))
DB_SYNC_DURATION: Final = Histogram(
    "keystone_operator_db_sync_duration_seconds",
    "Time of a db_sync Job.",
    ("keystone", "namespace"),
    buckets=(1, 5, 10, 30, 60, 120, 300, 600),
)

CERTIFICATE_EXPIRY: Final = Gauge(
    "moorage_keystone_saml_sp_certificate_expiry_timestamp_seconds",
    "When the certificate of the SAML service provider ends, as Unix time.",
    ("keystone", "namespace"),
)


def age(key: Key, key_type: str, since: datetime, now: datetime) -> None:
    """How old the keys of one repository are."""
    ROTATION_AGE.labels(key.name, key.namespace, key_type).set(max(0.0, (now - since).total_seconds()))


def certificate_ends(key: Key, at: datetime | None) -> None:
    """When the SAML service provider's certificate ends; None when there is none that counts."""
    if at is not None:
        CERTIFICATE_EXPIRY.labels(key.name, key.namespace).set(at.timestamp())
    else:
        CERTIFICATE_EXPIRY.remove_by_labels({"keystone": key.name, "namespace": key.namespace})


def db_sync_ended(key: Key, result: str, seconds: float | None) -> None:
    """A db_sync Job came to its end; `result` is success or failure."""
    DB_SYNCS.labels(key.name, key.namespace, result).inc()
    if seconds is not None:
        DB_SYNC_DURATION.labels(key.name, key.namespace).observe(seconds)


def forget(key: Key) -> None:
    """The Keystone is gone; its gauges go with it."""
    for key_type in ("fernet", "credential"):
        ROTATION_AGE.remove_by_labels({"keystone": key.name, "namespace": key.namespace, "key_type": key_type})
    certificate_ends(key, None)
