"""POST to a collection."""

from __future__ import annotations

from moorage.apiserver import present, strategy
from moorage.apiserver.api import Api
from moorage.apiserver.codec import decode, negotiate
from moorage.apiserver.creation import Shape
from moorage.apiserver.options import check_write_options
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import Edit, create_object
from moorage.core.meta import JsonObject


async def create(api: Api, request: Request, served: ServedType) -> Response:
    """Create the object of the body.

    Raises:
        StatusError: 400, 403, 404 (namespace), 409, 413, 415, 422.
    """
    negotiate(request.headers, request.query)
    check_write_options(request)
    obj, shape = await api.aside.run(len(request.body), lambda: _read(api, request, served))

    def wanted(_: JsonObject | None) -> JsonObject:
        return obj

    key = key_of_target(served, request.target)
    written = await create_object(api, Edit(served, key, request, wanted, shape=shape))
    return await present.one(api, request, served, written.entry, 201)


def _read(api: Api, request: Request, served: ServedType) -> tuple[JsonObject, Shape | None]:
    """The object of the body, and its shape when decoding and defaulting leave it as it is."""
    media, kind = request.headers.get("content-type", ""), served.resource.kind
    obj, repeated = decode(request.body, media, kind, binary=not served.custom)
    shape = None if repeated else api.created.whole(api.registry, served, request, obj)
    if shape is None:
        obj = strategy.decode_object(api.registry, served, request, (obj, repeated))
    return obj, shape
