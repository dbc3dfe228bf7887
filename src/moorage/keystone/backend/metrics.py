"""Metrics of the backend room: for each backend whether it is Ready, how old its metadata is, when its certificate ends, calls of Keystone.

Enters: what a pass saw and reported. Leaves: numbers in the process's registry. Labels hold names of objects, never content.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from moorage.core.meta import Key
from moorage.runtime.series import Labels, Series

if TYPE_CHECKING:
    from .materials import Document

_BACKEND: Final = ("backend", "namespace")
READY: Final = Series(
    "gauge", "keystone_operator_identity_backend_ready", "1 while the backend is Ready, else 0.", _BACKEND
)
METADATA_AGE: Final = Series(
    "gauge",
    "keystone_operator_identity_backend_metadata_age_seconds",
    "Age of the provider's fetched metadata.",
    _BACKEND,
)
CERTIFICATE_EXPIRY: Final = Series(
    "gauge",
    "keystone_operator_identity_backend_certificate_expiry_timestamp_seconds",
    "End of our SAML certificate, Unix time.",
    _BACKEND,
)
CALLS: Final = Series(
    "counter",
    "keystone_operator_identity_backend_requests",
    "Requests to the Identity API, by method; logins apart.",
    _BACKEND,
    ("method",),
)


def ready(key: Key, is_ready: bool) -> None:
    """What the status says now."""
    READY.set(_labels(key), 1 if is_ready else 0)


def document(key: Key, found: Document | None, now: datetime) -> None:
    """How old the metadata is; a declared one has no age."""
    if found is None or found.fetched is None:
        METADATA_AGE.drop(_labels(key))
    else:
        METADATA_AGE.set(_labels(key), max(0.0, (now - found.fetched).total_seconds()))


def certificate(key: Key, ends: str) -> None:
    """When our certificate ends, RFC 3339; "" when there is none."""
    if ends:
        CERTIFICATE_EXPIRY.set(_labels(key), datetime.fromisoformat(ends).timestamp())
    else:
        CERTIFICATE_EXPIRY.drop(_labels(key))


def called(key: Key, method: str) -> None:
    """One request to Keystone."""
    CALLS.inc(_labels(key), method)


def forget(key: Key) -> None:
    """The backend is gone; its numbers go with it."""
    for series in (READY, METADATA_AGE, CERTIFICATE_EXPIRY, CALLS):
        series.drop(_labels(key))


def _labels(key: Key) -> Labels:
    return key.name, key.namespace
