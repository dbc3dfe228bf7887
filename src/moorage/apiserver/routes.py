"""Which verb file answers which request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from moorage.apiserver.api import Api
from moorage.apiserver.binding import bind
from moorage.apiserver.create import create
from moorage.apiserver.delete import delete
from moorage.apiserver.deletecollection import delete_collection
from moorage.apiserver.errors import method_not_allowed, no_such_resource, not_supported
from moorage.apiserver.get import get
from moorage.apiserver.list import list_objects
from moorage.apiserver.logs import read_log
from moorage.apiserver.patching import patch
from moorage.apiserver.request import Request, Response
from moorage.apiserver.scale import get_scale, patch_scale, put_scale
from moorage.apiserver.served import ServedType
from moorage.apiserver.tokenrequest import create_token
from moorage.apiserver.update import update
from moorage.apiserver.watch import watch

Verb = Callable[[Api, Request, ServedType], Awaitable[Response]]

VERBS: Mapping[str, Verb] = {
    "get": get,
    "list": list_objects,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}
STATUS: Mapping[str, Verb] = {"get": get, "update": update, "patch": patch}
SUBRESOURCES: Mapping[str, Mapping[str, Verb]] = {
    "status": STATUS,
    "finalize": {"update": update},
    "scale": {"get": get_scale, "update": put_scale, "patch": patch_scale},
    "binding": {"create": bind},
    "log": {"get": read_log},
    "token": {"create": create_token},
}
REVIEW_GROUPS = ("authentication.k8s.io", "authorization.k8s.io")


async def serve(api: Api, request: Request) -> Response:
    """The answer to a request on a resource.

    Raises:
        StatusError: 404, 405, and what the verb raises.
    """
    served = api.registry.resolve(request.target)
    target = request.target
    if request.method == "HEAD":
        raise method_not_allowed()
    if "//" in target.path or (served.resource.group in REVIEW_GROUPS and target.name):
        raise no_such_resource()
    if target.subresource:
        verb = SUBRESOURCES.get(target.subresource, {}).get(target.verb)
    else:
        verb = VERBS.get(target.verb) if target.verb in served.verbs else None
    if served.resource.group in REVIEW_GROUPS and verb is create:
        return await api.reviews.create(api, request, served)
    if target.verb in ("create", "deletecollection") and served.resource.namespaced and not target.namespace:
        raise method_not_allowed()
    if target.name and target.verb == "create" and not target.subresource:
        raise method_not_allowed()
    if verb is None or (not target.name and target.verb in ("update", "patch")):
        raise (
            not_supported(served.resource, target.verb)
            if served.custom and target.subresource
            else method_not_allowed()
        )
    return await verb(api, request, served)
