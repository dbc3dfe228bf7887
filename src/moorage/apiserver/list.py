"""GET of a collection: paging, consistent continuation, resourceVersion rules."""

from __future__ import annotations

from bisect import bisect_left

from moorage.apiserver import present
from moorage.apiserver.api import Api
from moorage.apiserver.errors import StatusError, rv_too_large
from moorage.apiserver.hub import Entry
from moorage.apiserver.options import ListOptions, list_options, make_token
from moorage.apiserver.request import Request, Response
from moorage.apiserver.selection import Selection, selection
from moorage.apiserver.served import ServedType
from moorage.core.meta import JsonObject


async def list_objects(api: Api, request: Request, served: ServedType) -> Response:
    """The selected objects, at one revision.

    Raises:
        StatusError: 400, 410 (revision no longer kept), 422, 504 (revision ahead of the server).
    """
    options = list_options(request)
    chosen = selection(api.registry, served, request)
    if options.version > api.hub.revision:
        raise rv_too_large(options.version, api.hub.revision)
    version = _pinned(options) or api.hub.revision
    if options.start and version < api.hub.store.compacted:
        raise _token_expired(options.start)
    if version < api.hub.revision and _pinned(options):
        entries = await api.hub.at(served.storage, chosen.namespace, version)
    else:
        entries = list(api.hub.collections[served.storage].select(chosen.namespace))
    page, meta = _page(entries, options, chosen, version)
    return await present.many(api, request, served, page, meta)


def _pinned(options: ListOptions) -> int:
    """The revision that the answer must show exactly; 0 for the newest."""
    if options.start or options.match == "Exact":
        return options.version
    legacy = options.limit > 0 and options.version > 0 and not options.match
    return options.version if legacy else 0


def _page(
    entries: list[Entry], options: ListOptions, chosen: Selection, version: int
) -> tuple[list[Entry], JsonObject]:
    meta: JsonObject = {"resourceVersion": str(version)}
    if options.start:
        entries = entries[bisect_left(entries, options.start, key=lambda entry: entry.key) :]
    if options.limit <= 0:
        return ([*entries] if chosen.everything else [e for e in entries if chosen.matches(e)]), meta
    page: list[Entry] = []
    for at, entry in enumerate(entries):
        if not chosen.matches(entry):
            continue
        if len(page) == options.limit:
            meta["continue"] = make_token(version, entry.key)
            if chosen.everything:
                meta["remainingItemCount"] = len(entries) - at
            break
        page.append(entry)
    return page, meta


def _token_expired(start: str) -> StatusError:
    """410: the first page is too long ago; the answer has a token that goes on at the newest revision."""
    return StatusError(
        410,
        "Expired",
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list.",
        metadata={"continue": make_token(-1, start)},
    )
