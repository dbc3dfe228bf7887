"""The paths of a kind, with the parameters that clients look for before they use them.

Enters: a served type. Leaves: OpenAPI v3 path items. Must not know schemas beyond their names.
"""

from __future__ import annotations

from moorage.apiserver.openapi.components import component_name, gvk, list_name, reference
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject

PATCH = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch"
DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"
STATUS = "io.k8s.apimachinery.pkg.apis.meta.v1.Status"
SCALE = "io.k8s.api.autoscaling.v1.Scale"
NEEDED = (PATCH, DELETE_OPTIONS, STATUS, SCALE)

_QUERY = {
    "pretty": ("string", "If 'true', the output is indented."),
    "dryRun": ("string", "All: the request is processed without being stored."),
    "fieldManager": ("string", "The name of the actor that makes these changes; required for apply patches."),
    "fieldValidation": ("string", "What to do with unknown or duplicate fields: Ignore, Warn or Strict."),
    "force": ("boolean", "Take over conflicting fields owned by others; for apply patches only."),
    "gracePeriodSeconds": ("integer", "Seconds before the object is deleted; zero means at once."),
    "orphanDependents": ("boolean", "Deprecated: use propagationPolicy."),
    "propagationPolicy": ("string", "Whether and how dependents are deleted: Orphan, Background or Foreground."),
    "allowWatchBookmarks": ("boolean", "Ask for events of type BOOKMARK."),
    "continue": ("string", "The continue token of the page before."),
    "fieldSelector": ("string", "Restricts the objects by their fields."),
    "labelSelector": ("string", "Restricts the objects by their labels."),
    "limit": ("integer", "At most so many objects a page."),
    "resourceVersion": ("string", "What resource versions the answer may be made from."),
    "resourceVersionMatch": ("string", "How resourceVersion is applied to lists: Exact or NotOlderThan."),
    "sendInitialEvents": ("boolean", "A watch begins with the objects that are there."),
    "timeoutSeconds": ("integer", "Seconds after which the request ends."),
    "watch": ("boolean", "Stream changes instead of listing."),
}
_LIST = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion", "resourceVersionMatch",
    "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_WRITE = ("dryRun", "fieldManager", "fieldValidation")
_DELETE = ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy")
_MEDIA = ("application/json", "application/yaml")


def query(*names: str) -> list[JsonObject]:
    """Query parameters."""
    return [
        {
            "name": name,
            "in": "query",
            "description": _QUERY[name][1],
            "schema": {"type": _QUERY[name][0], "uniqueItems": True},
        }
        for name in names
    ]


def _place(name: str, text: str) -> JsonObject:
    schema = {"type": "string", "uniqueItems": True}
    return {"name": name, "in": "path", "required": True, "description": text, "schema": schema}


def paths_of(served: ServedType) -> dict[str, JsonObject]:
    """The paths of one kind and its subresources."""
    rt = served.resource
    inside = (
        [_place("namespace", "object name and auth scope, such as for teams and projects")] if rt.namespaced else []
    )
    collection = rt.path("{namespace}" if rt.namespaced else "")
    whole = component_name(served)
    found = {collection: _item(served, whole, _COLLECTION, [*inside, *query("pretty")])}
    if "get" in served.verbs or "delete" in served.verbs:
        named = [_place("name", f"name of the {rt.kind}"), *inside, *query("pretty")]
        found[f"{collection}/{{name}}"] = _item(served, whole, _OBJECT, named)
        for name in sorted(served.subresources & {"status", "scale"}):
            shown = SCALE if name == "scale" else whole
            found[f"{collection}/{{name}}/{name}"] = _item(served, shown, _SUBRESOURCE, named)
    if rt.namespaced and "list" in served.verbs:
        found[rt.path()] = _item(served, whole, {"get": "list"}, query("pretty"))
    return {path: item for path, item in found.items() if item.keys() - {"parameters"}}


_COLLECTION = {"get": "list", "post": "create", "delete": "deletecollection"}
_OBJECT = {"get": "get", "put": "update", "delete": "delete", "patch": "patch"}
_SUBRESOURCE = {"get": "get", "put": "update", "patch": "patch"}
_ACTIONS = {"create": "post", "update": "put"}
_PARAMETERS = {
    "list": _LIST,
    "get": (),
    "create": _WRITE,
    "update": _WRITE,
    "patch": (*_WRITE, "force"),
    "delete": _DELETE,
    "deletecollection": (*_DELETE, *(name for name in _LIST if name not in ("allowWatchBookmarks", "watch"))),
}


def _item(served: ServedType, shown: str, verbs: dict[str, str], parameters: list[JsonObject]) -> JsonObject:
    made: JsonObject = {}
    for method, verb in verbs.items():
        if verb in served.verbs:
            made[method] = _operation(served, shown, verb)
    return {**made, "parameters": parameters}


def _operation(served: ServedType, shown: str, verb: str) -> JsonObject:
    rt = served.resource
    kind = gvk(served) if shown != SCALE else {"group": "autoscaling", "version": "v1", "kind": "Scale"}
    made: JsonObject = {
        "tags": [f"{(rt.group.removesuffix('.k8s.io') or 'core').replace('.', '_')}_{rt.version}"],
        "description": f"{verb} {rt.kind}",
        "operationId": f"{verb}{rt.group.title().replace('.', '')}{rt.version.title()}{rt.kind}",
        "parameters": query(*_PARAMETERS[verb]),
        "responses": _responses(served, shown, verb),
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": kind,
    }
    if body := _body(served, shown, verb):
        made["requestBody"] = body
    return made


def _body(served: ServedType, shown: str, verb: str) -> JsonObject:
    if verb == "patch":
        kinds = ["apply-patch+yaml", "json-patch+json", "merge-patch+json"]
        kinds += [] if served.custom else ["strategic-merge-patch+json"]
        content = {f"application/{kind}": {"schema": reference(PATCH)} for kind in kinds}
        return {"content": content, "required": True}
    if verb in ("delete", "deletecollection"):
        return {"content": {"*/*": {"schema": reference(DELETE_OPTIONS)}}}
    if verb in ("create", "update"):
        return {"content": {"*/*": {"schema": reference(shown)}}, "required": True}
    return {}


def _responses(served: ServedType, shown: str, verb: str) -> JsonObject:
    answer = list_name(served) if verb == "list" else STATUS if verb.startswith("delete") else shown
    content = {media: {"schema": reference(answer)} for media in _MEDIA}
    codes = {"create": ("200", "201", "202"), "update": ("200", "201"), "delete": ("200", "202")}.get(verb, ("200",))
    texts = {"200": "OK", "201": "Created", "202": "Accepted"}
    made: JsonObject = {code: {"description": texts[code], "content": content} for code in codes}
    return {**made, "401": {"description": "Unauthorized"}}
