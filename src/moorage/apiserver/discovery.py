"""Discovery: which groups, versions and resources there are; the legacy documents and the aggregated ones. Pure.

Source: API concepts, "API discovery"; `apidiscovery.k8s.io/v2`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from moorage.apiserver.codec import MEDIA_TYPES
from moorage.apiserver.errors import no_such_form
from moorage.apiserver.hub import encode
from moorage.apiserver.registry import Registry
from moorage.apiserver.request import Response
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

_ORDER = (
    "", "events.k8s.io", "authentication.k8s.io", "authorization.k8s.io", "autoscaling", "batch",
    "networking.k8s.io", "policy", "rbac.authorization.k8s.io", "apps", "admissionregistration.k8s.io",
    "apiextensions.k8s.io", "coordination.k8s.io",
)  # fmt: skip
_STORED_AS = {
    ("events.k8s.io", "events"): "/v1",
    ("apiextensions.k8s.io", "customresourcedefinitions"): "apiextensions.k8s.io/v1beta1",
}
"""Group and version under which kinds are stored, where it is not the served one: clients compare the hash of it."""
_SUB_VERBS = ("get", "patch", "update")


def api_versions(host: str) -> JsonObject:
    """`/api`."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}],
    }


def _groups(registry: Registry) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for served in registry.types():
        versions = found.setdefault(served.resource.group, [])
        if served.resource.version not in versions:
            versions.append(served.resource.version)
    known = {name: at for at, name in enumerate(_ORDER)}
    return dict(sorted(found.items(), key=lambda item: (known.get(item[0], len(known)), item[0])))


def group(name: str, versions: list[str]) -> JsonObject:
    """One APIGroup."""
    rows = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": rows, "preferredVersion": rows[0]}


def group_list(registry: Registry) -> JsonObject:
    """`/apis`."""
    groups = [group(name, versions) for name, versions in _groups(registry).items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def one_group(registry: Registry, name: str) -> JsonObject | None:
    """`/apis/NAME`."""
    versions = _groups(registry).get(name)
    if not versions or not name:
        return None
    return {"kind": "APIGroup", "apiVersion": "v1", **group(name, versions)}


def resource_list(registry: Registry, group_name: str, version: str) -> JsonObject | None:
    """`/api/v1`, `/apis/GROUP/VERSION`."""
    found = [s for s in registry.types() if (s.resource.group, s.resource.version) == (group_name, version)]
    if not found:
        return None
    rows = [row for served in found for row in _rows(registry, served)]
    answer = {"kind": "APIResourceList", "groupVersion": found[0].resource.api_version, "resources": rows}
    return answer if not group_name else {**answer, "apiVersion": "v1"}


def _rows(registry: Registry, served: ServedType) -> list[JsonObject]:
    rt = served.resource
    row: JsonObject = {
        "name": rt.plural, "singularName": served.singular, "namespaced": rt.namespaced, "kind": rt.kind,
        "verbs": list(served.verbs),
    }  # fmt: skip
    if served.short_names:
        row["shortNames"] = list(served.short_names)
    if served.categories:
        row["categories"] = list(served.categories)
    if "list" in served.verbs:
        stored = _STORED_AS.get((rt.group, rt.plural), f"{rt.group}/{rt.version}")
        row["storageVersionHash"] = _hash(f"{stored}/{rt.kind}")
    return [row, *(_sub_row(registry, served, name) for name in _sub_names(served))]


def _sub_names(served: ServedType) -> list[str]:
    """Subresources in order: custom ones name the status first."""
    return sorted(served.subresources, reverse=served.custom)


def _sub_row(registry: Registry, served: ServedType, name: str) -> JsonObject:
    rt = served.resource
    full = f"{rt.plural}/{name}"
    known = registry.subresource_kinds.get((rt.api_version, full))
    if known and not served.custom:
        return {**known, "name": full, "singularName": ""}
    row: JsonObject = {
        "name": full, "singularName": "", "namespaced": rt.namespaced, "kind": rt.kind, "verbs": list(_SUB_VERBS),
    }  # fmt: skip
    return {**row, "group": "autoscaling", "version": "v1", "kind": "Scale"} if name == "scale" else row


def _hash(text: str) -> str:
    import base64

    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def aggregated(registry: Registry, *, core: bool, version: str) -> JsonObject:
    """The aggregated document of `/api` (core) or `/apis`; `version` of apidiscovery: v2 or v2beta1."""
    items = [
        _aggregated_group(registry, name, versions)
        for name, versions in _groups(registry).items()
        if (name == "") is core
    ]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"apidiscovery.k8s.io/{version}",
        "metadata": {},
        "items": items,
    }


def _aggregated_group(registry: Registry, name: str, versions: list[str]) -> JsonObject:
    rows = []
    for version in versions:
        types = [s for s in registry.types() if (s.resource.group, s.resource.version) == (name, version)]
        resources = [_aggregated_resource(registry, served) for served in types]
        rows.append({"version": version, "freshness": "Current", "resources": resources})
    return {"metadata": {"name": name, "creationTimestamp": None}, "versions": rows}


def _aggregated_resource(registry: Registry, served: ServedType) -> JsonObject:
    rt = served.resource
    row: JsonObject = {
        "resource": rt.plural,
        "responseKind": {"group": rt.group, "version": rt.version if rt.group else "", "kind": rt.kind},
        "scope": "Namespaced" if rt.namespaced else "Cluster",
        "singularResource": served.singular,
        "verbs": list(served.verbs),
    }
    if served.short_names:
        row["shortNames"] = list(served.short_names)
    if served.categories:
        row["categories"] = list(served.categories)
    if served.subresources:
        row["subresources"] = [_aggregated_sub(registry, served, name) for name in _sub_names(served)]
    return row


def _aggregated_sub(registry: Registry, served: ServedType, name: str) -> JsonObject:
    row, rt = _sub_row(registry, served, name), served.resource
    group, version = row.get("group", rt.group), row.get("version", rt.version)
    kind = {"group": group, "version": version if group else "", "kind": row["kind"]}
    return {"subresource": name, "responseKind": kind, "verbs": row["verbs"]}


def answer(registry: Registry, path: str, headers: Mapping[str, str], host: str) -> Response | None:
    """The discovery document of a path, or None when the path is no discovery path."""
    parts = [part for part in path.split("/") if part]
    accept = headers.get("accept", "")
    if parts in (["api"], ["apis"]) and (version := _asks_aggregated(accept)):
        body = encode(aggregated(registry, core=parts == ["api"], version=version))
        media = f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList"
        return _tagged(body, media, headers)
    found: JsonObject | None = None
    match parts:
        case ["api"]:
            found = api_versions(host)
        case ["apis"]:
            found = group_list(registry)
        case ["apis", name]:
            found = one_group(registry, name)
        case ["api", version]:
            found = resource_list(registry, "", version)
        case ["apis", name, version]:
            found = resource_list(registry, name, version)
    return None if found is None else Response(200, encode(found))


def _tagged(body: bytes, media: str, headers: Mapping[str, str]) -> Response:
    tag = f'"{hashlib.sha512(body).hexdigest().upper()}"'
    extra = [("ETag", tag), ("Vary", "Accept"), ("Cache-Control", "public")]
    if headers.get("if-none-match") == tag:
        return Response(304, b"", media, extra)
    return Response(200, body, media, extra)


def _asks_aggregated(accept: str) -> str:
    for clause in accept.split(","):
        media, *parameters = [part.strip() for part in clause.split(";")]
        if media == "application/json" and "as=APIGroupDiscoveryList" in parameters:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in parameters:
                    return version
            if len(accept.split(",")) == 1:
                raise no_such_form(MEDIA_TYPES)
        elif media in ("application/json", "*/*"):
            return ""
    return ""
