"""Objects as answers: plain, as Table, as PartialObjectMetadata. No I/O; large ones are formed beside the loop.

Enters: entries and the form a client accepts. Leaves: response bytes; stored bytes are passed on untouched where they can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from moorage.apiserver.api import Api
from moorage.apiserver.codec import Form, negotiate
from moorage.apiserver.errors import StatusError, bad_request
from moorage.apiserver.hub import Entry, encode
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.table import to_table
from moorage.apiserver.views import bytes_of, list_item, object_of
from moorage.core.meta import JsonObject

Include = Literal["Metadata", "Object", "None"]


async def one(api: Api, request: Request, served: ServedType, entry: Entry, status: int = 200) -> Response:
    """One object.

    Raises:
        StatusError: 400 and 406, a form that it cannot be given in.
    """
    form = negotiate(request.headers, request.query)
    if form.listed:
        raise StatusError(406, "NotAcceptable", "content is not a list")
    if form.shape == "object" and form.media == "application/json" and not form.pretty:
        return Response(status, bytes_of(api.registry, served, entry))
    return await api.aside.run(
        len(entry.raw), lambda: Response(status, _formed(api, request, served, form, entry), form.media)
    )


def _formed(api: Api, request: Request, served: ServedType, form: Form, entry: Entry) -> bytes:
    obj = object_of(api.registry, served, entry)
    if form.shape == "table":
        obj = table(api, request, served, form, [obj], {"resourceVersion": str(entry.rev or "")})
    elif form.shape == "partial":
        obj = partial(obj, form)
    return form.encode(obj)


async def many(
    api: Api, request: Request, served: ServedType, entries: Sequence[Entry], list_meta: JsonObject
) -> Response:
    """A list.

    Raises:
        StatusError: 400 and 406, a form that it cannot be given in.
    """
    form = negotiate(request.headers, request.query)
    rt = served.resource
    if form.shape == "partial" and not form.listed:
        kind = "unstructured.UnstructuredList" if served.custom else f"{rt.group or 'core'}.{served.list_kind}"
        why = f"you requested PartialObjectMetadata, but the requested object is a list (*{kind})"
        raise StatusError(406, "NotAcceptable", why)
    size = sum(len(entry.raw) for entry in entries)
    if form.shape == "object":
        body = _listed(api, served, entries, list_meta)
        if form.media != "application/json" or form.pretty:
            body = await api.aside.run(size, lambda: form.encode(Entry("", 0, body).parse()))
        return Response(200, body, form.media)
    return await api.aside.run(
        size, lambda: Response(200, _all_formed(api, request, served, (form, entries, list_meta)), form.media)
    )


def _listed(api: Api, served: ServedType, entries: Sequence[Entry], list_meta: JsonObject) -> bytes:
    """A list of whole objects, as JSON."""
    if served.custom:
        list_meta = {"continue": "", **list_meta}
    head = {"kind": served.list_kind, "apiVersion": served.resource.api_version, "metadata": list_meta}
    items = b",".join([list_item(served, bytes_of(api.registry, served, entry)) for entry in entries])
    return encode(head)[:-1] + b',"items":[' + items + b"]}"


def _all_formed(
    api: Api, request: Request, served: ServedType, shown: tuple[Form, Sequence[Entry], JsonObject]
) -> bytes:
    form, entries, list_meta = shown
    objects = [object_of(api.registry, served, entry) for entry in entries]
    if form.shape == "table":
        answer = table(api, request, served, form, objects, list_meta)
    else:
        answer = {
            "kind": "PartialObjectMetadataList",
            "apiVersion": f"meta.k8s.io/{form.version}",
            "metadata": list_meta,
            "items": [partial(obj, form) for obj in objects],
        }
    return form.encode(answer)


def table(
    api: Api, request: Request, served: ServedType, form: Form, objects: list[JsonObject], list_meta: JsonObject
) -> JsonObject:
    """A Table whose rows carry what `includeObject` asks for.

    Raises:
        StatusError: 400, an unknown `includeObject`.
    """
    include = request.query.get("includeObject") or "Metadata"
    if include not in ("None", "Metadata", "Object"):
        why = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
        raise bad_request(f"Unable to convert to Table as requested: includeObject: {why}")
    made = to_table(served, objects, now=api.clock(), list_meta=list_meta, include=cast(Include, include))
    made["apiVersion"] = f"meta.k8s.io/{form.version}"
    return made


def partial(obj: JsonObject, form: Form) -> JsonObject:
    """PartialObjectMetadata of an object."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{form.version}",
        "metadata": obj["metadata"],
    }
