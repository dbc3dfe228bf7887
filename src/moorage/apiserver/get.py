"""GET of one object."""

from __future__ import annotations

from moorage.apiserver import present
from moorage.apiserver.api import Api
from moorage.apiserver.codec import negotiate
from moorage.apiserver.errors import not_found, rv_too_large
from moorage.apiserver.options import read_version
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType


async def get(api: Api, request: Request, served: ServedType) -> Response:
    """The object of the request's name.

    Raises:
        StatusError: 404; 504 for a resourceVersion ahead of the server.
    """
    negotiate(request.headers, request.query)
    version = read_version(request.query.get("resourceVersion", ""))
    if version > api.hub.revision:
        raise rv_too_large(version, api.hub.revision)
    entry = api.hub.get(served.storage, str(key_of_target(served, request.target)))
    if entry is None:
        raise not_found(served.resource, request.target.name)
    return await present.one(api, request, served, entry)
