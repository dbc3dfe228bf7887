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
    domain_id_of,
)
from moorage.keystone.backend.types import FINALIZER, KIND
from moorage.keystone.identity import Domain
from moorage.runtime.room import Event, Released

from .test_admission import VALID, complete

UID = "6b1f0f5c-3f0a-4a55-9d0e-2f9c1f6f7a11"
OWN = {"id": domain_id_of(UID), "name": "corp", "enabled": True, "description": ""}
KEYSTONE = {
    "name": "keystone", "terminating": False, "api_ready": True, "api_message": "",
    "admin_user": "admin", "admin_secret": "keystone-admin",
}  # fmt: skip
MOUNT = {"exists": True, "carries": True, "current": True, "rolled_out": True}


def condition(type_: str, status: str, reason: str, message: str = "") -> JsonObject:
    """A stored condition of an older generation."""
    since = "2026-01-01T00:00:00Z"
    named = {"type": type_, "status": status, "reason": reason, "message": message}
    return {**named, "lastTransitionTime": since, "observedGeneration": 1}


READY = [
    condition("DomainReady", "True", "DomainProvisioned", "domain 'corp' exists"),
    condition("ConfigProjected", "True", "ConfigProjected", "every replica runs this backend's configuration"),
    condition("Ready", "True", "AllReady", "all conditions are True"),
]


def backend_of(case: JsonObject) -> JsonObject:
    """The stored object of a case."""
    obj = copy.deepcopy(case["object"]) if "object" in case else complete(VALID)
    obj["spec"]["domain"].update(case.get("domain", {}))
    meta: JsonObject = {"uid": UID, "generation": 2, "finalizers": [FINALIZER], **case.get("metadata", {})}
    obj["metadata"] = {**obj["metadata"], **meta}
    conditions = READY if case.get("stored", "ready") == "ready" else case["stored"]
    recorded = case.get("domainID", OWN["id"])
    obj["status"] = {"conditions": conditions, **({"domainID": recorded} if recorded else {})}
    return obj


def snapshot(case: JsonObject) -> Seen:
    """The snapshot of a case."""
    keystone = case.get("keystone", {})
    fault = case.get("fault")
    return Seen(
        backend=KIND.parse(backend_of(case)),
        keystone=None if keystone is None else KeystoneFacts(**{**KEYSTONE, **keystone}),
        wanted=Fault(**fault) if fault else Projected({}, "0" * 8),
        mount=Mount(**{**MOUNT, **case.get("mount", {})}),
        admin_fault=case.get("adminFault", ""),
        lookup=_lookup(case.get("lookup", {"own": {}, "named": {}})),
        directory=Directory(**case["directory"]) if "directory" in case else None,
        happened=tuple(Event(**item) for item in case.get("happened", ())),
        failure=Failure(UpdateDomain(OWN["id"], {}), case["failure"]) if "failure" in case else None,
    )


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
