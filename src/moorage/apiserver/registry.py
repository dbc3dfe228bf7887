"""Which kinds are served: built-ins from data, others from CustomResourceDefinitions.

Enters: data/*.json once, and CRDs as they are established. Leaves: ServedType by group, version and plural. No I/O after start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from moorage.apiserver.errors import NoSuchPage, bad_request, invalid, no_such_resource, not_found
from moorage.apiserver.request import Target
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.schema import Compiler, Structural
from moorage.schema import invalid as invalid_value

OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_SHARED_STORAGE = {("events.k8s.io", "events"): "events"}

NAMESPACES = ResourceType("", "v1", "Namespace", "namespaces", namespaced=False)
CONFIG_MAPS = ResourceType("", "v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNTS = ResourceType("", "v1", "ServiceAccount", "serviceaccounts")
CRDS = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)


def _load(name: str) -> Any:
    return json.loads((files("moorage.apiserver") / "data" / name).read_bytes())


@dataclass(frozen=True)
class _BuiltIns:
    """What Kubernetes brings along; nobody changes it.

    Attributes:
        definitions: component schemas by name.
        types: the kinds.
        subresource_kinds: rows of resources.json by group and version, and by `<plural>/<subresource>`.
        object_meta: the compiled schema of `metadata`.
    """

    definitions: dict[str, JsonObject]
    types: tuple[ServedType, ...]
    subresource_kinds: dict[tuple[str, str], JsonObject]
    object_meta: Structural


@cache
def _built_ins() -> _BuiltIns:
    """Read once a process."""
    definitions: dict[str, JsonObject] = _load("schemas.json")
    resources: dict[str, list[JsonObject]] = _load("resources.json")
    compiler = Compiler(definitions)
    kinds = {(version, row["name"]): row for version, rows in resources.items() for row in rows if "/" in row["name"]}
    types = tuple(_types(definitions, resources, compiler))
    return _BuiltIns(definitions, types, kinds, Structural.by(compiler, definitions[OBJECT_META]))


def _types(
    definitions: dict[str, JsonObject], resources: dict[str, list[JsonObject]], compiler: Compiler
) -> Iterator[ServedType]:
    by_kind = {
        (gvk["group"], gvk["version"], gvk["kind"]): schema
        for schema in definitions.values()
        for gvk in schema.get("x-kubernetes-group-version-kind", ())
    }
    tables = _load("tables.json")
    for group_version, rows in resources.items():
        group, _, version = group_version.rpartition("/")
        for row in [row for row in rows if "/" not in row["name"]]:
            name = row["name"]
            subs = frozenset(item["name"].partition("/")[2] for item in rows if item["name"].startswith(f"{name}/"))
            yield ServedType(
                ResourceType(group, version, row["kind"], name, row["namespaced"]),
                by_kind[group, version, row["kind"]],
                subs,
                tuple(row["verbs"]),
                f"{row['kind']}List",
                row["singularName"],
                tuple(row.get("shortNames", ())),
                tuple(row.get("categories", ())),
                tuple(tables.get(f"{group_version}/{name}", ())),
                definitions,
                _SHARED_STORAGE.get((group, name), f"{name}.{group}" if group else name),
                compiler,
            )


class Registry:
    """All served kinds."""

    def __init__(self) -> None:
        built = _built_ins()
        self.definitions, self.subresource_kinds = built.definitions, built.subresource_kinds
        self.object_meta = built.object_meta
        self._types: dict[tuple[str, str, str], ServedType] = {}
        self._by_storage: dict[str, ServedType] = {}
        self.changes = 0
        for served in built.types:
            self._put(served)
        self._builtin_groups = {group for group, _, _ in self._types}

    def _put(self, served: ServedType) -> None:
        rt = served.resource
        self._types[rt.group, rt.version, rt.plural] = served
        self._by_storage.setdefault(served.storage, served)
        self.changes += 1

    def define(self, served: ServedType) -> None:
        """Serve a kind of a CRD, or its changed form."""
        self._by_storage.pop(served.storage, None)
        self._put(served)

    def forget(self, served: ServedType) -> None:
        """Serve a kind no more."""
        rt = served.resource
        self._types.pop((rt.group, rt.version, rt.plural), None)
        self._by_storage.pop(served.storage, None)
        self.changes += 1

    def types(self) -> list[ServedType]:
        """All served kinds."""
        return list(self._types.values())

    def find(self, group: str, version: str, plural: str) -> ServedType | None:
        """The kind at that address."""
        return self._types.get((group, version, plural))

    def of_storage(self, storage: str) -> ServedType | None:
        """The first kind that is kept under a storage name."""
        return self._by_storage.get(storage)

    def builtin(self, storage: str) -> ServedType:
        """The same of a kind that is always there."""
        return self._by_storage[storage]

    def of_kind(self, api_version: str, kind: str) -> ServedType | None:
        """The kind by apiVersion and kind."""
        group, _, version = api_version.rpartition("/")
        for served in self._types.values():
            rt = served.resource
            if rt.kind == kind and rt.group == group and rt.version == version:
                return served
        return None

    def of_group_kind(self, api_version: str, kind: str) -> ServedType | None:
        """The kind by group and kind, whatever version is named."""
        group = api_version.rpartition("/")[0]
        for served in self._types.values():
            if served.resource.kind == kind and served.resource.group == group:
                return served
        return None

    def serves_group_of(self, path: str) -> bool:
        """Whether a path lies below a built-in group (`/api/...`, `/apis/apps/...`)."""
        parts = [part for part in path.split("/") if part]
        return parts[:1] == ["api"] or (len(parts) > 1 and parts[1] in self._builtin_groups)

    def resolve(self, target: Target) -> ServedType:
        """The kind that a request addresses.

        Raises:
            StatusError: 404, no such resource, or its scope does not fit the path.
        """
        served = self.find(target.group, target.version, target.resource)
        if served and served.custom and target.subresource in {"status", "scale"} - served.subresources:
            raise not_found(served.resource, target.name)
        if served is None or (target.subresource and target.subresource not in served.subresources):
            raise (
                no_such_resource()
                if target.group in self._builtin_groups and not (served and served.custom)
                else NoSuchPage()
            )
        scoped = served.resource.namespaced
        if (scoped and target.name and not target.namespace) or (
            not scoped and target.namespace and target.resource != "namespaces"
        ):
            raise NoSuchPage() if served.custom else no_such_resource()
        return served


def key_of_target(served: ServedType, target: Target) -> Key:
    """The key that a request names; the namespace of cluster-scoped kinds is empty."""
    return Key(target.namespace if served.resource.namespaced else "", target.name)


def check_patched_version(served: ServedType, obj: JsonObject) -> None:
    """Raises 422 when a patch gave a custom resource another apiVersion, where a body with one is 400."""
    rt, version = served.resource, obj.get("apiVersion")
    if served.custom and isinstance(version, str) and version and version != rt.api_version:
        shown = ResourceType(version.rpartition("/")[0], rt.version, rt.kind, rt.plural)
        name = (obj.get("metadata") or {}).get("name", "")
        raise invalid(shown, name, [invalid_value("apiVersion", version, f"must be {rt.api_version}")])


def check_gvk(served: ServedType, obj: JsonObject) -> None:
    """Raises 400 when a body is of another kind than the path; fills in what is left out for built-ins."""
    rt = served.resource
    given = (obj.get("apiVersion") or "", obj.get("kind") or "")
    if given == (rt.api_version, rt.kind):
        return
    if served.custom or not isinstance(given[0], str) or not isinstance(given[1], str):
        _refuse_custom(rt, obj)
    if given[0] not in ("", rt.api_version) or given[1] not in ("", rt.kind):
        _refuse_builtin(rt, *given)
    obj["apiVersion"], obj["kind"] = rt.api_version, rt.kind


def _refuse_builtin(rt: ResourceType, api_version: str, kind: str) -> None:
    group, _, version = api_version.rpartition("/")
    if api_version.count("/") > 1:
        raise bad_request(
            f"the object provided is unrecognized (must be of type {rt.kind}): unexpected GroupVersion string: {api_version}"
        )
    if group == rt.group and version != rt.version:
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {rt.kind}: no kind "{kind}" is registered for version '
            f'"{api_version}" in scheme "pkg/runtime/scheme.go:111"'
        )
    if kind != rt.kind:
        internal = "core" if not rt.group else rt.group.partition(".")[0]
        raise bad_request(
            f'{kind} in version "{version}" cannot be handled as a {rt.kind}: '
            f"converting ({version}.{kind}) to ({internal}.{rt.kind}): unknown conversion"
        )
    raise bad_request(
        f"the API version in the data ({api_version}) does not match the expected API version ({rt.api_version})"
    )


def _refuse_custom(rt: ResourceType, obj: JsonObject) -> None:
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(version, str) or not version or not isinstance(kind, str) or not kind:
        missing = "kind" if not kind else "apiVersion"
        text = json.dumps(obj, separators=(",", ":"), ensure_ascii=False)
        raise bad_request(
            f"the object provided is unrecognized (must be of type {rt.kind}): "
            f"Object '{missing[0].upper()}{missing[1:]}' is missing in '{text}' ({text[:30]}{' ...' if len(text) > 30 else ''})"
        )
    if version != rt.api_version:
        raise bad_request(
            f"the API version in the data ({version}) does not match the expected API version ({rt.api_version})"
        )
    shown = ResourceType(rt.group, rt.version, kind, rt.plural)
    error = invalid_value("kind", kind, f"must be {rt.kind}")
    raise invalid(shown, (obj.get("metadata") or {}).get("name", ""), [error])
