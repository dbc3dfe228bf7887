"""Mapping rules as a backend declares them, generated or turned from Keystone's spelling."""

from __future__ import annotations

import re
from typing import Any

from moorage.keystone.backend.admission import ADMISSION
from moorage.keystone.backend.types import KIND
from moorage.schema.review import Review

from .clock import NOW

CAMEL = {"group_ids": "groupIds", "any_one_of": "anyOneOf", "not_any_of": "notAnyOf"}
ISSUER = "https://idp.example.org/realms/corp"


def camel(node: Any) -> Any:
    """Keystone's JSON in the spelling of the custom resource."""
    if isinstance(node, dict):
        return {CAMEL.get(name, name): camel(child) for name, child in node.items()}
    return [camel(child) for child in node] if isinstance(node, list) else node


def backend(mappings: Any, **oidc: Any) -> dict[str, Any]:
    """A complete OIDC backend with these mappings."""
    block = {"issuer": ISSUER, "clientID": "keystone", "clientSecretRef": {"name": "client"}, **oidc}
    spec = {
        "keystoneRef": {"name": "k"},
        "domain": {"name": "corp"},
        "type": "OIDC",
        "oidc": block,
        "mappings": mappings,
    }
    obj = {
        "apiVersion": KIND.resource.api_version, "kind": KIND.kind,
        "metadata": {"name": "corp", "namespace": "openstack"}, "spec": spec,
    }  # fmt: skip
    KIND.structural.default(obj)
    return ADMISSION.complete(obj, None)


def complaints(obj: dict[str, Any]) -> list[str]:
    """Everything that schema, rules and webhook have against an object."""
    for found in (KIND.structural.validate(obj, None), KIND.structural.validate_rules(obj, None)):
        if found.errors:
            return [error.message for error in found.errors]
    verdict = ADMISSION.validate(Review("CREATE", obj, None, (), NOW))
    return [error.message for error in verdict.errors]


def bare(messages: list[str]) -> set[str]:
    """What complaints say, without where and of which value."""
    return {re.sub(r'^\S+: (\w+ value)(: ("(\\.|[^"\\])*"|\w+))?:? ?', r"\1: ", text) for text in messages}
