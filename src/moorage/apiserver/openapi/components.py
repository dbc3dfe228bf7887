"""Schemas as OpenAPI components: which name a kind's schema has, and what a document needs of others.

Enters: served types. Leaves: components by name. Must not know paths.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

PREFIX = "#/components/schemas/"
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT_META, LIST_META = f"{_META}ObjectMeta", f"{_META}ListMeta"
_TEXTS = {
    "apiVersion": "The versioned schema of this representation of an object, `group/version`.",
    "kind": "The kind of resource that this object represents, in CamelCase. It cannot be updated.",
    "metadata": "Standard object's metadata.",
}


def gvk(served: ServedType) -> JsonObject:
    """The `x-kubernetes-group-version-kind` of a kind."""
    rt = served.resource
    return {"group": rt.group, "version": rt.version, "kind": rt.kind}


def component_name(served: ServedType) -> str:
    """The name of a kind's schema: a built-in's own, for others the group backwards with version and kind."""
    wanted = gvk(served)
    if not served.custom:
        for name, schema in served.definitions.items():
            if wanted in (schema.get("x-kubernetes-group-version-kind") or ()):
                return name
    rt = served.resource
    return ".".join([*reversed(rt.group.split(".")), rt.version, rt.kind])


def list_name(served: ServedType) -> str:
    """The name of the schema of a kind's list."""
    base = component_name(served).rpartition(".")[0]
    return f"{base}.{served.list_kind or served.resource.kind + 'List'}"


def reference(name: str) -> JsonObject:
    """A reference to a component."""
    return {"$ref": f"{PREFIX}{name}"}


def components(
    types: Sequence[ServedType], shared: Mapping[str, JsonObject], extra: Iterable[str]
) -> dict[str, JsonObject]:
    """All components that these kinds need, the shared ones named in `extra` included."""
    made: dict[str, JsonObject] = {}
    for served in types:
        if served.custom or component_name(served) not in shared:
            made[component_name(served)] = _custom(served)
            made[list_name(served)] = _list(served)
        else:
            made[component_name(served)] = shared[component_name(served)]
            made[list_name(served)] = shared.get(list_name(served)) or _list(served)
    _add_referenced(made, shared, extra)
    return dict(sorted(made.items()))


def _add_referenced(made: dict[str, JsonObject], shared: Mapping[str, JsonObject], extra: Iterable[str]) -> None:
    waiting = [*extra, *(name for schema in made.values() for name in references(schema))]
    while waiting:
        name = waiting.pop()
        if name not in made:
            made[name] = shared.get(name) or {"type": "object"}
            waiting += references(made[name])


def references(value: Any) -> Iterator[str]:
    """Names of the components that a schema refers to."""
    if isinstance(value, dict):
        for name, below in value.items():
            if name == "$ref" and isinstance(below, str):
                yield below.removeprefix(PREFIX)
            else:
                yield from references(below)
    elif isinstance(value, list):
        for below in value:
            yield from references(below)


def _head(metadata: str) -> JsonObject:
    texts = {name: {"type": "string", "description": _TEXTS[name]} for name in ("apiVersion", "kind")}
    return {**texts, "metadata": {"allOf": [reference(metadata)], "description": _TEXTS["metadata"]}}


def _custom(served: ServedType) -> JsonObject:
    """A CRD's schema as clients see it: metadata typed, the kind named."""
    schema = _shown(served.schema)
    own = {
        name: value
        for name, value in (schema.get("properties") or {}).items()
        if name not in ("apiVersion", "kind", "metadata")
    }
    properties = {**_head(OBJECT_META), **own}
    return {**schema, "type": "object", "properties": properties, "x-kubernetes-group-version-kind": [gvk(served)]}


def _shown(value: Any) -> Any:
    """A schema with its int-or-string fields spelled out; rules are kept."""
    if isinstance(value, list):
        return [_shown(item) for item in value]
    if not isinstance(value, dict):
        return value
    made = {name: _shown(below) for name, below in value.items()}
    if made.get("x-kubernetes-int-or-string") is True and "anyOf" not in made:
        made["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    return made


def _list(served: ServedType) -> JsonObject:
    kind = {**gvk(served), "kind": served.list_kind or f"{served.resource.kind}List"}
    items = {
        "type": "array",
        "items": reference(component_name(served)),
        "description": f"List of {served.resource.plural}.",
    }
    return {
        "description": f"{kind['kind']} is a list of {served.resource.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {**_head(LIST_META), "items": items},
        "x-kubernetes-group-version-kind": [kind],
    }
