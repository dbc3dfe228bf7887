"""Snapshots from the few lines that a case gives; what it leaves out is a backend that is Ready."""

from __future__ import annotations

import copy
from dataclasses import asdict
from typing import Any

from moorage.core.meta import JsonObject
from moorage.keystone.backend.render import Fault, Projected
from moorage.keystone.backend.seen import (
    Directory,
    Failure,
    KeystoneFacts,
    Lookup,
    Mount,
    Seen,
    Unknown,
    UpdateDomain,
)
from moorage.keystone.backend.types import FINALIZER, KIND
from moorage.keystone.identity import Domain
from moorage.runtime.room import Event, Released

from . import federated_snapshots
from .federated_snapshots import FEDERATED_READY, UID, condition, federated_object, objects_of
from .test_admission import VALID, complete

OWN = {"id": federated_snapshots.DOMAIN, "name": "corp", "enabled": True, "description": ""}
KEYSTONE = {
    "name": "keystone", "terminating": False, "api_ready": True, "api_message": "",
    "admin_user": "admin", "admin_secret": "keystone-admin",
}  # fmt: skip
MOUNT = {"exists": True, "carries": True, "current": True, "rolled_out": True}


READY = [
    condition("DomainReady", "True", "DomainProvisioned", "domain 'corp' exists"),
    condition("ConfigProjected", "True", "ConfigProjected", "every replica runs this backend's configuration"),
    condition("Ready", "True", "AllReady", "all conditions are True"),
]


def backend_of(case: JsonObject) -> JsonObject:
    """The stored object of a case."""
    obj = copy.deepcopy(case["object"]) if "object" in case else complete(VALID)
    if "type" in case:
        obj = complete(federated_object(case))
    obj["spec"]["domain"].update(case.get("domain", {}))
    meta: JsonObject = {"uid": UID, "generation": 2, "finalizers": [FINALIZER], **case.get("metadata", {})}
    obj["metadata"] = {**obj["metadata"], **meta}
    ready = FEDERATED_READY if "type" in case else READY
    conditions = ready if case.get("stored", "ready") == "ready" else case["stored"]
    recorded = case.get("domainID", OWN["id"])
    obj["status"] = {"conditions": conditions, **({"domainID": recorded} if recorded else {})}
    if "type" in case:
        obj["status"] |= federated_snapshots.applied_of(case)
    return obj


def snapshot(case: JsonObject) -> Seen:
    """The snapshot of a case."""
    keystone = case.get("keystone", {})
    fault = case.get("fault")
    obj = backend_of(case)
    return Seen(
        backend=KIND.parse(obj),
        keystone=None if keystone is None else KeystoneFacts(**{**KEYSTONE, **keystone}),
        wanted=Fault(**fault) if fault else Projected({}, "0" * 8),
        mount=Mount(**{**MOUNT, **case.get("mount", {})}),
        admin_fault=case.get("adminFault", ""),
        lookup=_lookup(case.get("lookup", {"own": {}, "named": {}})),
        objects=objects_of(case, obj) if "type" in case else None,
        aside=federated_snapshots.aside_of(case),
        directory=Directory(**case["directory"]) if "directory" in case else None,
        leaving=case.get("leaving", 0.0),
        happened=tuple(Event(**item) for item in case.get("happened", ())),
        failure=_failure(case),
    )


def _failure(case: JsonObject) -> Failure | None:
    if "failure" not in case:
        return None
    plan = federated_snapshots.PLANS[case["failed"]] if "failed" in case else UpdateDomain(OWN["id"], {})
    return Failure(plan, case["failure"], case.get("refused", False))


def _lookup(given: Any) -> Lookup | Unknown | None:
    if given is None:
        return None
    if "unknown" in given:
        return Unknown(given["unknown"])
    return Lookup(_domain(given.get("own")), _domain(given.get("named")))


def _domain(given: JsonObject | None) -> Domain | None:
    return None if given is None else Domain(**{**OWN, **given})


def shown(answer: Any) -> JsonObject:
    """A plan or an outcome as a case shows it."""
    if isinstance(answer, Released):
        return {"Released": [asdict(event) for event in answer.events]}
    return {type(answer).__name__: asdict(answer)}
