"""Metrics that all kinds of Pocket-ID share: requests to servers, operations on objects, readiness.

Enters: what was asked and what came of it. Leaves: numbers in the process's registry. Labels hold names of objects, never content.
Source: spec/pocketid.md 6.1.
"""

from __future__ import annotations

from typing import Final, Literal

from prometheus_client import Counter, Histogram

from moorage.core.meta import Key
from moorage.runtime.series import Series

PREFIX: Final = "pocketid_operator_"
_OBJECT: Final = ("kind", "namespace", "name")
REQUESTS: Final = Counter(
    f"{PREFIX}pocketid_api_requests", "Requests to Pocket-ID, by operation.", ("operation", "result")
)
SECONDS: Final = Histogram(
    f"{PREFIX}pocketid_api_request_duration_seconds",
    "Seconds that a request took, by operation.",
    ("operation",),
    buckets=(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)
OPERATIONS: Final = Counter(
    f"{PREFIX}resource_operations", "Objects created, adopted, updated and deleted at Pocket-ID.", ("kind", "operation")
)
READY: Final = Series("gauge", f"{PREFIX}resource_ready", "1 while the resource is Ready, else 0.", _OBJECT)
EXTERNAL_DELETIONS: Final = Counter(
    f"{PREFIX}external_deletions", "Objects that somebody else deleted at Pocket-ID.", ("kind",)
)
for _kind in ("PocketIDUser", "PocketIDUserGroup", "PocketIDOIDCClient"):
    EXTERNAL_DELETIONS.labels(_kind)

Operation = Literal["created", "adopted", "updated", "deleted"]


def called(operation: str, result: str, seconds: float) -> None:
    """One request to a Pocket-ID."""
    REQUESTS.labels(operation, result).inc()
    SECONDS.labels(operation).observe(seconds)


def operated(kind: str, operation: Operation) -> None:
    """An object was created, adopted, updated or deleted."""
    OPERATIONS.labels(kind, operation).inc()


def ready(kind: str, key: Key, is_ready: bool) -> None:
    """What the status says now."""
    READY.set((kind, key.namespace, key.name), 1 if is_ready else 0)


def forget(kind: str, key: Key) -> None:
    """The resource is gone; its number goes with it."""
    READY.drop((kind, key.namespace, key.name))
