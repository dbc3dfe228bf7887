"""Rules of disruption budgets, network policies, RBAC objects and webhook configurations.

Enters: defaulted objects and the stored ones. Leaves: complaints. Source: API references of those groups; recorded refusals.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from moorage.apiserver.builtin.conditions import check_conditions
from moorage.apiserver.builtin.fields import (
    Errors,
    at_most_all,
    complaints,
    named,
    network,
    one_of,
    percent_or_number,
    port_or_name,
    selector,
)
from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.schema import duplicate, forbidden, invalid, required
from moorage.schema.fielderror import Verbatim, go_json

_RBAC = "rbac.authorization.k8s.io"
_VERSIONS = ("v1", "v1beta1")


def check_disruption_budget(obj: JsonObject, _old: JsonObject | None) -> Errors:
    """Complaints about a PodDisruptionBudget."""
    spec = obj["spec"]
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        yield invalid("spec", Verbatim(go_json(shown)), "minAvailable and maxUnavailable cannot be both set")
    for name in ("minAvailable", "maxUnavailable"):
        if spec.get(name) is not None:
            yield from percent_or_number(f"spec.{name}", spec[name])
            yield from at_most_all(f"spec.{name}", spec[name])
    yield from selector("spec.selector", spec.get("selector"))


def check_network_policy(obj: JsonObject, _old: JsonObject | None) -> Errors:
    """Complaints about a NetworkPolicy."""
    spec = obj["spec"]
    yield from selector("spec.podSelector", spec.get("podSelector"))
    for direction, peers in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or ()):
            here = f"spec.{direction}[{index}]"
            for number, item in enumerate(rule.get("ports") or ()):
                yield from _policy_port(f"{here}.ports[{number}]", item)
            for number, peer in enumerate(rule.get(peers) or ()):
                yield from _peer(f"{here}.{peers}[{number}]", peer)
    for index, kind in enumerate(spec.get("policyTypes") or ()):
        yield from one_of(f"spec.policyTypes[{index}]", kind, "Ingress", "Egress")


def _policy_port(path: str, item: Mapping[str, Any]) -> Errors:
    yield from one_of(f"{path}.protocol", item.get("protocol"), "SCTP", "TCP", "UDP")
    number, last = item.get("port"), item.get("endPort")
    if number is not None:
        yield from port_or_name(f"{path}.port", number)
    if last is not None and isinstance(number, int) and last < number:
        yield invalid(f"{path}.endPort", number, "must be greater than or equal to `port`")
    elif last is not None and not isinstance(number, int):
        yield invalid(f"{path}.endPort", last, "may not be specified when `port` is non-numeric or not specified")


def _peer(path: str, peer: Mapping[str, Any]) -> Errors:
    kinds = [name for name in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(name) is not None]
    for name in kinds[:2]:
        if name != "ipBlock":
            yield from selector(f"{path}.{name}", peer[name])
    if "ipBlock" in kinds:
        yield from _ip_block(f"{path}.ipBlock", peer["ipBlock"])
    if not kinds:
        yield required(path, "must specify a peer")
    elif "ipBlock" in kinds and len(kinds) > 1:
        yield forbidden(path, "may not specify both ipBlock and another peer")


def _ip_block(path: str, block: Mapping[str, Any]) -> Errors:
    cidr = block.get("cidr") or ""
    outer = network(cidr)
    if not cidr:
        yield required(f"{path}.cidr")
    elif outer is None:
        yield invalid(f"{path}.cidr", cidr, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)")
    for index, text in enumerate(block.get("except") or ()):
        inner = network(text)
        if inner is None:
            yield invalid(
                f"{path}.except[{index}]", text, "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
            )
        elif outer is not None and not _inside(inner, outer):
            yield invalid(f"{path}.except[{index}]", text, "must be a strict subset of `cidr`")


def _inside(inner: Any, outer: Any) -> bool:
    return bool(inner.version == outer.version and inner.prefixlen > outer.prefixlen and inner.subnet_of(outer))


def check_role(obj: JsonObject, _old: JsonObject | None) -> Errors:
    """Complaints about a Role or ClusterRole."""
    for index, rule in enumerate(obj.get("rules") or ()):
        path, paths = f"rules[{index}]", rule.get("nonResourceURLs") or []
        if not rule.get("verbs"):
            yield required(f"{path}.verbs", "verbs must contain at least one value")
        if paths:
            if obj.get("kind") == "Role":
                yield invalid(f"{path}.nonResourceURLs", paths, "namespaced rules cannot apply to non-resource URLs")
            if any(rule.get(name) for name in ("apiGroups", "resources", "resourceNames")):
                text = "rules cannot apply to both regular resources and non-resource URLs"
                yield invalid(f"{path}.nonResourceURLs", paths, text)
            continue
        if not rule.get("apiGroups"):
            yield required(f"{path}.apiGroups", "resource rules must supply at least one api group")
        if not rule.get("resources"):
            yield required(f"{path}.resources", "resource rules must supply at least one resource")


def check_binding(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a RoleBinding or ClusterRoleBinding."""
    role, namespaced = obj["roleRef"], obj.get("kind") == "RoleBinding"
    yield from one_of("roleRef.apiGroup", role.get("apiGroup"), _RBAC)
    yield from one_of("roleRef.kind", role.get("kind"), *(("Role",) if namespaced else ()), "ClusterRole")
    yield from named("roleRef.name", role.get("name"))
    for index, subject in enumerate(obj.get("subjects") or ()):
        yield from _subject(f"subjects[{index}]", subject, namespaced=namespaced)
    if old is not None and role != old["roleRef"]:
        shown = {"APIGroup": role.get("apiGroup"), "Kind": role.get("kind"), "Name": role.get("name")}
        yield invalid("roleRef", shown, "cannot change roleRef")


def _subject(path: str, subject: Mapping[str, Any], *, namespaced: bool) -> Errors:
    kind, name = subject.get("kind") or "", subject.get("name") or ""
    yield from named(f"{path}.name", name)
    match kind:
        case "ServiceAccount":
            if name:
                yield from complaints(f"{path}.name", name, names.dns1123_subdomain(name))
            yield from one_of(f"{path}.apiGroup", subject.get("apiGroup") or "", "")
            if not namespaced and not subject.get("namespace"):
                yield required(f"{path}.namespace")
        case "User" | "Group":
            yield from one_of(f"{path}.apiGroup", subject.get("apiGroup"), _RBAC)
        case _:
            yield from one_of(f"{path}.kind", kind, "ServiceAccount", "User", "Group")


def check_webhooks(obj: JsonObject, _old: JsonObject | None) -> Errors:
    """Complaints about a webhook configuration."""
    seen: set[str] = set()
    for index, hook in enumerate(obj.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name") or ""
        yield from _hook_name(f"{path}.name", name)
        for number, rule in enumerate(hook.get("rules") or ()):
            yield from _hook_rule(f"{path}.rules[{number}]", rule)
        yield from one_of(f"{path}.failurePolicy", hook.get("failurePolicy"), "Fail", "Ignore")
        yield from one_of(f"{path}.matchPolicy", hook.get("matchPolicy"), "Equivalent", "Exact")
        yield from _side_effects(f"{path}.sideEffects", hook.get("sideEffects"))
        if obj.get("kind") == "MutatingWebhookConfiguration":
            yield from one_of(f"{path}.reinvocationPolicy", hook.get("reinvocationPolicy"), "IfNeeded", "Never")
        seconds = hook.get("timeoutSeconds")
        if isinstance(seconds, int) and not 1 <= seconds <= 30:
            yield invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds")
        yield from selector(f"{path}.namespaceSelector", hook.get("namespaceSelector"))
        yield from selector(f"{path}.objectSelector", hook.get("objectSelector"))
        yield from _client(f"{path}.clientConfig", hook.get("clientConfig") or {})
        yield from _review_versions(f"{path}.admissionReviewVersions", hook.get("admissionReviewVersions") or [])
        yield from check_conditions(f"{path}.matchConditions", hook.get("matchConditions") or [])
        if name in seen:
            yield duplicate(f"{path}.name", name)
        seen.add(name)


def _side_effects(path: str, value: str | None) -> Errors:
    if value is None:
        yield required(path, "must specify one of None, NoneOnDryRun")
    else:
        yield from one_of(path, value, "None", "NoneOnDryRun")


def _hook_name(path: str, name: str) -> Errors:
    if not name:
        yield required(path)
    elif wrong := names.dns1123_subdomain(name):
        yield from complaints(path, name, wrong)
    elif name.count(".") < 2:
        yield invalid(path, name, "should be a domain with at least three segments separated by dots")


def _hook_rule(path: str, rule: Mapping[str, Any]) -> Errors:
    operations, resources = rule.get("operations") or [], rule.get("resources") or []
    if not operations:
        yield required(f"{path}.operations")
    elif "*" in operations and len(operations) > 1:
        yield invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        yield from one_of(f"{path}.operations[{index}]", operation, "*", "CONNECT", "CREATE", "DELETE", "UPDATE")
    for name, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            yield required(f"{path}.{name}")
        elif "*" in values and len(values) > 1:
            yield invalid(f"{path}.{name}", values, f"if '*' is present, must not specify other {what}")
    if not resources:
        yield required(f"{path}.resources")
    elif "*/*" in resources and len(resources) > 1:
        yield invalid(f"{path}.resources", resources, "if '*/*' is present, must not specify other resources")
    elif "*" in resources and any("/" not in item and item != "*" for item in resources):
        text = "if '*' is present, must not specify other resources without subresources"
        yield invalid(f"{path}.resources", resources, text)
    yield from one_of(f"{path}.scope", rule.get("scope"), "*", "Cluster", "Namespaced")


def _client(path: str, client: Mapping[str, Any]) -> Errors:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _address(f"{path}.url", url)
    elif service is not None:
        yield from named(f"{path}.service.name", service.get("name"))
        # Kubernetes tells of a missing namespace at the name, too
        yield from named(f"{path}.service.name", service.get("namespace"))
        where = service.get("port", 443)
        if not isinstance(where, int) or not 1 <= where <= 65535:
            text = "port is not valid: must be between 1 and 65535, inclusive"
            yield invalid(f"{path}.service.port", where, text)


def _address(path: str, url: str) -> Errors:
    parts, form = urlsplit(url), "; desired format: https://host[/path]"
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc:
        yield invalid(path, "", f"host must be specified{form}")
    if parts.username is not None:
        yield invalid(path, parts.username, "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _review_versions(path: str, versions: list[str]) -> Errors:
    listed = ", ".join(_VERSIONS)
    if not versions:
        yield required(path, f"must specify one of {listed}")
    elif not set(versions) & set(_VERSIONS):
        yield invalid(path, versions, f"must include at least one of {listed}")
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
