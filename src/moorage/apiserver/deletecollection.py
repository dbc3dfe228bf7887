"""DELETE of a collection: every selected object, one by one."""

from __future__ import annotations

from moorage.apiserver import present
from moorage.apiserver.api import Api
from moorage.apiserver.delete import delete_object
from moorage.apiserver.errors import StatusError
from moorage.apiserver.options import delete_options
from moorage.apiserver.request import Request, Response
from moorage.apiserver.selection import selection
from moorage.apiserver.served import ServedType


async def delete_collection(api: Api, request: Request, served: ServedType) -> Response:
    """Delete what is selected; the answer lists what was.

    Raises:
        StatusError: what deleting one of them raises, but for 404.
    """
    options = delete_options(request)
    chosen = selection(api.registry, served, request)
    entries = [entry for entry in api.hub.collections[served.storage].select(chosen.namespace) if chosen.matches(entry)]
    listed_at = str(api.hub.revision)
    for entry in entries:
        try:
            await delete_object(api, request, served, entry.key, options)
        except StatusError as error:
            if error.code != 404:
                raise
    return await present.many(api, request, served, entries, {"resourceVersion": listed_at})
