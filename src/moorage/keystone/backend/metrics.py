"""Metrics of the backend room: for each backend whether it is Ready, how old its metadata is, when its certificate ends, calls of Keystone.

Enters: what a pass saw and reported. Leaves: numbers in the process's registry. Labels hold names of objects, never content.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Final

from prometheus_client import Counter, Gauge

from moorage.core.meta import Key

if TYPE_CHECKING:
    from .materials import Document

_BACKEND: Final = ("backend", "namespace")
READY: Final = Gauge("keystone_operator_identity_backend_ready", "1 while the backend is Ready, else 0.", _BACKEND)
METADATA_AGE: Final = Gauge(
    "keystone_operator_identity_backend_metadata_age_seconds", "Age of the provider's fetched metadata.", _BACKEND
)
CERTIFICATE_EXPIRY: Final = Gauge(
    "keystone_operator_identity_backend_certificate_expiry_timestamp_seconds",
    "End of our SAML certificate, Unix time.",
    _BACKEND,
)
CALLS: Final = Counter(
    "keystone_operator_identity_backend_requests",
    "Requests to the Identity API, by method; logins apart.",
    (*_BACKEND, "method"),
)
METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "login")


def ready(key: Key, is_ready: bool) -> None:
    """What the status says now."""
    READY.labels(key.name, key.namespace).set(1 if is_ready else 0)


def document(key: Key, found: Document | None, now: datetime) -> None:
    """How old the metadata is; a declared one has no age."""
    if found is None or found.fetched is None:
        _drop(METADATA_AGE, key)
    else:
        _show(METADATA_AGE, key, max(0.0, (now - found.fetched).total_seconds()))


def certificate(key: Key, ends: str) -> None:
    """When our certificate ends, RFC 3339; "" when there is none."""
    if ends:
        _show(CERTIFICATE_EXPIRY, key, datetime.fromisoformat(ends).timestamp())
    else:
        _drop(CERTIFICATE_EXPIRY, key)


def called(key: Key, method: str) -> None:
    """One request to Keystone."""
    CALLS.labels(key.name, key.namespace, method).inc()


def forget(key: Key) -> None:
    """The backend is gone; its numbers go with it."""
    with suppress(KeyError):
        READY.remove(key.name, key.namespace)
    for gauge in _shown:
        _drop(gauge, key)
    CALLS.remove_by_labels(_labels(key))


_shown: Final[dict[Gauge, set[Key]]] = {METADATA_AGE: set(), CERTIFICATE_EXPIRY: set()}
"""Who has a series of these: most backends have none, and to find that out from the gauge costs a pass more than the rest of its numbers."""


def _show(gauge: Gauge, key: Key, value: float) -> None:
    gauge.labels(key.name, key.namespace).set(value)
    _shown[gauge].add(key)


def _drop(gauge: Gauge, key: Key) -> None:
    """One series, found by its labels as they stand: looking through all of them would cost each pass as much as there are backends."""
    if key in _shown[gauge]:
        _shown[gauge].discard(key)
        with suppress(KeyError):
            gauge.remove(key.name, key.namespace)


def _labels(key: Key) -> dict[str, str]:
    return {"backend": key.name, "namespace": key.namespace}
