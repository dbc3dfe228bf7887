"""Defaults of network policies, RBAC bindings, webhook configurations and CustomResourceDefinitions.

Enters: objects as decoded; they are changed in place. Must not check anything. Source: API references of those groups.
"""

from __future__ import annotations

from moorage.apiserver.builtin.pods import fill
from moorage.core.meta import JsonObject

_RBAC = "rbac.authorization.k8s.io"


def default_network_policy(obj: JsonObject) -> None:
    """Ingress is always meant, egress where a rule says so; ports are TCP."""
    spec = obj.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if "egress" in spec else ["Ingress"]
    for rule in [*(spec.get("ingress") or ()), *(spec.get("egress") or ())]:
        for port in rule.get("ports") or ():
            port["protocol"] = port.get("protocol") or "TCP"


def default_role(obj: JsonObject) -> None:
    """A role without rules prints them as null."""
    obj.setdefault("rules", None)


def default_binding(obj: JsonObject) -> None:
    """Roles, users and groups are of the RBAC group."""
    role = obj.setdefault("roleRef", {})
    role["apiGroup"] = role.get("apiGroup") or _RBAC
    for subject in obj.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            subject["apiGroup"] = subject.get("apiGroup") or _RBAC


def default_webhooks(obj: JsonObject) -> None:
    """Webhooks fail closed, match equivalent versions, and have ten seconds."""
    for hook in obj.get("webhooks") or ():
        fill(hook, {"failurePolicy": "Fail", "matchPolicy": "Equivalent", "timeoutSeconds": 10})
        hook.setdefault("namespaceSelector", {})
        hook.setdefault("objectSelector", {})
        if obj.get("kind") == "MutatingWebhookConfiguration":
            hook.setdefault("reinvocationPolicy", "Never")
        for rule in hook.get("rules") or ():
            rule.setdefault("scope", "*")
        if isinstance(service := (hook.get("clientConfig") or {}).get("service"), dict):
            service.setdefault("port", 443)


def default_definition(obj: JsonObject) -> None:
    """Names that follow from the kind, no conversion; the status prints its lists even when they are empty."""
    spec = obj.setdefault("spec", {})
    names = spec.setdefault("names", {})
    kind = names.get("kind") or ""
    names["singular"] = names.get("singular") or kind.lower()
    if kind:
        names["listKind"] = names.get("listKind") or f"{kind}List"
    spec.setdefault("conversion", {"strategy": "None"})
    service = ((spec["conversion"].get("webhook") or {}).get("clientConfig") or {}).get("service")
    if isinstance(service, dict):
        service.setdefault("port", 443)
    status = obj.setdefault("status", {})
    fill(status, {"conditions": None, "storedVersions": None})
    status.setdefault("acceptedNames", {"kind": "", "plural": ""})
    if status["storedVersions"] is None:
        stored = [version["name"] for version in spec.get("versions") or () if version.get("storage")]
        status["storedVersions"] = stored or None
