"""PUT of an object or of its status."""

from __future__ import annotations

from moorage.apiserver import metadata, present, strategy
from moorage.apiserver.api import Api
from moorage.apiserver.codec import decode, negotiate
from moorage.apiserver.errors import invalid
from moorage.apiserver.options import check_write_options
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import Edit, write_object
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import invalid as invalid_value

_NEEDS_VERSION = {("coordination.k8s.io", "leases"), ("apiextensions.k8s.io", "customresourcedefinitions")}
_CREATE_ON_UPDATE = {
    ("coordination.k8s.io", "leases"), ("", "events"), ("events.k8s.io", "events"), ("", "endpoints"), ("", "services"),
    ("rbac.authorization.k8s.io", "roles"), ("rbac.authorization.k8s.io", "rolebindings"),
    ("rbac.authorization.k8s.io", "clusterroles"), ("rbac.authorization.k8s.io", "clusterrolebindings"),
}  # fmt: skip


async def update(api: Api, request: Request, served: ServedType) -> Response:
    """Replace the object of the request's name by the body.

    Raises:
        StatusError: 400, 403, 404, 409, 413, 415, 422.
    """
    negotiate(request.headers, request.query)
    check_write_options(request)
    obj = await api.aside.run(len(request.body), lambda: _read(api, request, served))
    key, sub = key_of_target(served, request.target), request.target.subresource
    metadata.require_name(obj["metadata"], key)
    metadata.check_name(obj, key)
    if unconditional_refused(served) and not obj["metadata"].get("resourceVersion"):
        await _require_version(api, served, obj, str(key))

    def wanted(_: JsonObject | None) -> JsonObject:
        return copied(obj)

    may_create = not sub and (served.resource.group, served.resource.plural) in _CREATE_ON_UPDATE
    retry = not obj["metadata"].get("resourceVersion")
    written = await write_object(api, Edit(served, key, request, wanted, sub, may_create=may_create, retry=retry))
    return await present.one(api, request, served, written.entry, 201 if written.created else 200)


def _read(api: Api, request: Request, served: ServedType) -> JsonObject:
    media, kind = request.headers.get("content-type", ""), served.resource.kind
    body = decode(request.body, media, kind, binary=not served.custom)
    return strategy.decode_object(api.registry, served, request, body)


def unconditional_refused(served: ServedType) -> bool:
    """Whether a PUT without resourceVersion is 422: custom resources, Leases, CRDs."""
    return served.custom or (served.resource.group, served.resource.plural) in _NEEDS_VERSION


async def _require_version(api: Api, served: ServedType, obj: JsonObject, path: str) -> None:
    if (await api.hub.settled(served.storage, path)) is None:
        return
    rt: ResourceType = served.resource
    error = invalid_value("metadata.resourceVersion", 0, "must be specified for an update")
    shown = ResourceType(rt.group, rt.version, rt.plural, rt.plural)
    raise invalid(shown, obj["metadata"]["name"], [error])
