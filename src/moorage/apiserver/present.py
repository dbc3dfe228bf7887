"""Objects as answers: plain, as Table, as PartialObjectMetadata. Pure.

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


def one(api: Api, request: Request, served: ServedType, entry: Entry, status: int = 200) -> Response:
    """One object."""
    form = negotiate(request.headers, request.query)
    if form.listed:
        raise StatusError(406, "NotAcceptable", "content is not a list")
    if form.shape == "object" and form.media == "application/json" and not form.pretty:
        return Response(status, bytes_of(api.registry, served, entry))
    obj = object_of(api.registry, served, entry)
    if form.shape == "table":
        obj = table(api, request, served, form, [obj], {"resourceVersion": str(entry.rev or "")})
    elif form.shape == "partial":
        obj = partial(obj, form)
    return Response(status, form.encode(obj), form.media)


def many(api: Api, request: Request, served: ServedType, entries: Sequence[Entry], list_meta: JsonObject) -> Response:
    """A list."""
    form = negotiate(request.headers, request.query)
    rt = served.resource
    if form.shape == "partial" and not form.listed:
        kind = "unstructured.UnstructuredList" if served.custom else f"{rt.group or 'core'}.{served.list_kind}"
        why = f"you requested PartialObjectMetadata, but the requested object is a list (*{kind})"
        raise StatusError(406, "NotAcceptable", why)
    if form.shape == "object":
        if served.custom:
            list_meta = {"continue": "", **list_meta}
        head = {"kind": served.list_kind, "apiVersion": rt.api_version, "metadata": list_meta}
        items = b",".join([list_item(served, bytes_of(api.registry, served, entry)) for entry in entries])
        body = encode(head)[:-1] + b',"items":[' + items + b"]}"
        if form.media != "application/json" or form.pretty:
            return Response(200, form.encode(Entry("", 0, body).parse()), form.media)
        return Response(200, body)
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
    return Response(200, form.encode(answer), form.media)


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
