"""Metrics that all kinds of Pocket-ID share: requests to servers, operations on objects, readiness.

Enters: what was asked and what came of it. Leaves: numbers in the process's registry. Labels hold names of objects, never content.
Source: spec/pocketid.md 6.1.
"""

from __future__ import annotations

from functools import lru_cache
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
INSTANCES: Final = Series(
    "gauge", f"{PREFIX}instance_info", "1 for each instance: what it runs, how, and where.",
    ("namespace", "name"), ("version", "deployment_type", "app_url"),
)  # fmt: skip
MEMBERS: Final = Series(
    "gauge", f"{PREFIX}usergroup_member_count", "Members of the group, however they came.", ("namespace", "name")
)
API_KEYS: Final = Counter(
    f"{PREFIX}api_key_operations", "API keys of users that were created and deleted.", ("instance_namespace", "instance_name", "operation")
)  # fmt: skip
EXTERNAL_DELETIONS: Final = Counter(
    f"{PREFIX}external_deletions", "Objects that somebody else deleted at Pocket-ID.", ("kind",)
)
for _kind in ("PocketIDUser", "PocketIDUserGroup", "PocketIDOIDCClient"):
    EXTERNAL_DELETIONS.labels(_kind)

Operation = Literal["created", "adopted", "updated", "deleted"]


def called(operation: str, result: str, seconds: float) -> None:
    """One request to a Pocket-ID."""
    count, duration = _of(operation, result)
    count.inc()
    duration.observe(seconds)


@lru_cache
def _of(operation: str, result: str) -> tuple[Counter, Histogram]:
    """The two series of a request: to find them by their labels costs more than to change them."""
    return REQUESTS.labels(operation, result), SECONDS.labels(operation)


def operated(kind: str, operation: Operation) -> None:
    """An object was created, adopted, updated or deleted."""
    OPERATIONS.labels(kind, operation).inc()


def ready(kind: str, key: Key, is_ready: bool) -> None:
    """What the status says now."""
    READY.set((kind, key.namespace, key.name), 1 if is_ready else 0)


def instance(key: Key, version: str, deployment_type: str, app_url: str) -> None:
    """What an instance said of itself last."""
    of = (key.namespace, key.name)
    INSTANCES.drop(of)
    INSTANCES.set(of, 1, version, deployment_type, app_url)


def members(key: Key, count: int) -> None:
    """How many members a group has."""
    MEMBERS.set((key.namespace, key.name), count)


def key_operated(namespace: str, name: str, operation: Literal["created", "deleted"]) -> None:
    """An API key of a user was created or deleted at the server of that instance."""
    API_KEYS.labels(namespace, name, operation).inc()


def forget(kind: str, key: Key) -> None:
    """The resource is gone; its numbers go with it."""
    READY.drop((kind, key.namespace, key.name))
    numbers = {"PocketIDInstance": INSTANCES, "PocketIDUserGroup": MEMBERS}.get(kind)
    if numbers is not None:
        numbers.drop((key.namespace, key.name))
