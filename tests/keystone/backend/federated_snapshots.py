"""Snapshots of federated backends from the few lines that a case gives; what it leaves out is a backend that people log in through.

A case says `type: OIDC` (or SAML), `spec` (fields that replace the declared ones), `applied` (the record of the status), and `objects`: what
Keystone holds, each part replacing the default of that name.
"""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

from moorage.core.meta import JsonObject
from moorage.keystone.backend.mapping_rules import keystone_rules
from moorage.keystone.backend.materials import Document
from moorage.keystone.backend.seen import Aside, domain_id_of
from moorage.keystone.backend.seen_federation import CreateMapping, ObjectPlan, Objects, OpenProvider
from moorage.keystone.backend.types import KIND
from moorage.keystone.backend.wanted import Share, marker, wanted_of
from moorage.keystone.identity_access import Grant, Scope
from moorage.keystone.identity_federation import IdentityProvider, Protocol

from .scene import oidc

UID = "6b1f0f5c-3f0a-4a55-9d0e-2f9c1f6f7a11"
DOMAIN = domain_id_of(UID)
GROUPS = {"eng": "group-eng"}
ROLES = {"member": "role-member", "reader": "role-reader"}
PROJECTS = {("corp", "delivery"): "project-delivery"}
SAML = {
    "idpEntityID": "https://idp.example.org/saml",
    "idpMetadata": {"url": "https://idp.example.org/saml/metadata"},
    "identityProviderName": "acme",
}
PLANS: dict[str, ObjectPlan] = {"provider": OpenProvider("acme"), "mapping": CreateMapping("acme-mapping", ())}
"""What failed, by the word that a case uses."""
APPLIED = {
    "identityProviders": [{"name": "acme", "mapping": "acme-mapping", "protocols": ["openid"]}],
    "groups": [{"name": "eng", "id": "group-eng", "grants": [{"role": "member", "roleID": "role-member"}]}],
}


def condition(type_: str, status: str, reason: str, message: str = "") -> JsonObject:
    """A stored condition of an older generation."""
    since = "2026-01-01T00:00:00Z"
    named = {"type": type_, "status": status, "reason": reason, "message": message}
    return {**named, "lastTransitionTime": since, "observedGeneration": 1}


FEDERATED_READY = [
    condition("DomainReady", "True", "DomainProvisioned", "domain 'corp' exists"),
    condition("FederationObjectsReady", "True", "FederationObjectsProvisioned", "people log in"),
    condition("MappingsReady", "True", "MappingsApplied", "1 rules, 1 groups, 1 role assignments are applied"),
    condition("ConfigProjected", "True", "ConfigProjected", "every replica runs this backend's configuration"),
    condition("Ready", "True", "AllReady", "all conditions are True"),
]


def federated_object(case: JsonObject) -> JsonObject:
    """The declared object of a case."""
    obj = copy.deepcopy(oidc("sso"))
    spec = obj["spec"]
    if case["type"] == "SAML":
        spec.pop("oidc")
        spec |= {"type": "SAML", "saml": copy.deepcopy(SAML)}
    for name, value in case.get("spec", {}).items():
        spec[name] = {**spec.get(name, {}), **value} if isinstance(value, dict) else value
    return obj


def applied_of(case: JsonObject) -> JsonObject:
    """The record of a case; `applied: null` is a backend whose status was lost, or that is new."""
    applied = case.get("applied", APPLIED)
    return {} if applied is None else {"applied": applied}


def aside_of(case: JsonObject) -> Aside:
    """What is shown besides."""
    given = case.get("aside", {})
    times = {name: datetime.fromisoformat(given[name]) for name in ("fetched", "valid_until") if name in given}
    document = Document(b"", stale=given.get("stale", False), why=given.get("why", ""), **times) if times else None
    return Aside(document, given.get("spMetadata", ""), given.get("spEnds", ""), tuple(given.get("cautions", ())))


def objects_of(case: JsonObject, obj: JsonObject) -> Objects | None:
    """What Keystone holds; None when it was not asked."""
    if case.get("objects", {}) is None or case.get("lookup", {}) is None or "unknown" in case.get("lookup", {}):
        return None
    given, backend = case.get("objects", {}), KIND.parse(obj)
    wanted = wanted_of(backend)
    assert wanted is not None
    groups = given.get("groups", GROUPS)
    resolved, missing = {}, []
    for share in wanted.shares:
        role, scope = ROLES.get(share.role, ""), _scope(share)
        if role and scope.id:
            resolved[share] = Grant(groups.get(share.group, ""), role, scope)
        else:
            missing.append(str(share.project) if role else f"role {share.role!r}")
    providers = given.get("providers", {"acme": {}})
    protocols = given.get("protocols", {"acme": {"openid" if case["type"] == "OIDC" else "mapped": {}}})
    mappings = given.get("mappings", {"acme-mapping": "declared"})
    return Objects(
        providers={name: _provider(name, backend, wanted.remote_id, fields) for name, fields in providers.items()},
        protocols={
            name: tuple(_protocol(id, name, wanted.attribute, item) for id, item in protocols.get(name, {}).items())
            for name in providers
        },
        mappings={
            id: keystone_rules(backend.spec.mappings) if rules == "declared" else rules
            for id, rules in mappings.items()
        },
        groups=groups,
        grants=frozenset(_grants(given, resolved)),
        resolved=resolved,
        missing=tuple(missing),
        taken_by=given.get("takenBy", ""),
    )


def _scope(share: Share) -> Scope:
    if share.project is None:
        return Scope("domain", DOMAIN)
    return Scope("project", PROJECTS.get((share.project.domain, share.project.name), ""))


def _grants(given: JsonObject, resolved: dict[Share, Grant]) -> list[Grant]:
    return [] if given.get("grants") == [] else [grant for grant in resolved.values() if grant.group]


def _provider(name: str, backend: Any, remote_id: str, fields: JsonObject) -> IdentityProvider:
    given = {"domain_id": DOMAIN, "enabled": True, "remote_ids": (remote_id,), "description": marker(backend), **fields}
    return IdentityProvider(name, **{**given, "remote_ids": tuple(given["remote_ids"])})


def _protocol(id: str, provider: str, attribute: str, fields: JsonObject) -> Protocol:
    return Protocol(id, **{"mapping_id": f"{provider}-mapping", "remote_id_attribute": attribute, **fields})
