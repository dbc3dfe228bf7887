"""PATCH: JSON patch, merge patch, strategic merge patch, server-side apply; of an object or of its status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moorage.apiserver import metadata, present, strategy
from moorage.apiserver.api import Api
from moorage.apiserver.apply import ApplyConflict, ApplyInvalid, apply_object
from moorage.apiserver.codec import Duplicates, decode, negotiate, parse_json
from moorage.apiserver.errors import StatusError, bad_request, invalid, unsupported_media_type
from moorage.apiserver.options import check_write_options
from moorage.apiserver.patch import PatchError, json_patch, merge_patch, strategic_merge
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import Edit, Written, type_map, write_object
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.schema import forbidden, required

JSON_PATCH, MERGE, STRATEGIC = (
    "application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json",
)  # fmt: skip
APPLY = "application/apply-patch+yaml"
_PATCH_OPTIONS = ResourceType("meta.k8s.io", "v1", "PatchOptions", "patchoptions")
_TOO_MANY_OPS = 10_000


async def patch(api: Api, request: Request, served: ServedType) -> Response:
    """Change the object of the request's name as the body says.

    Raises:
        StatusError: 400, 403, 404, 409, 413, 415, 422.
    """
    negotiate(request.headers, request.query)
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    accepted = [JSON_PATCH, MERGE, *([] if served.custom else [STRATEGIC]), APPLY, "application/apply-patch+cbor"]
    if media not in accepted[:-1]:
        raise unsupported_media_type(accepted)
    _check_options(request, media)
    key = key_of_target(served, request.target)
    if media == APPLY:
        written = await apply(api, request, served, key)
    else:
        written = await write_object(api, patch_edit(api, request, served, media))
    return present.one(api, request, served, written.entry, 201 if written.created else 200)


def _check_options(request: Request, media: str) -> None:
    check_write_options(request)
    errors = []
    if media == APPLY:
        if not request.query.get("fieldManager"):
            errors.append(required("fieldManager", "is required for apply patch"))
    elif "force" in request.query:
        errors.append(forbidden("force", "may not be specified for non-apply patch"))
    if errors:
        raise invalid(_PATCH_OPTIONS, "", errors)


def patch_edit(api: Api, request: Request, served: ServedType, media: str) -> Edit:
    """The edit of a JSON, merge or strategic merge patch."""
    change = _changer(request, served, media)
    key = key_of_target(served, request.target)

    def wanted(current: JsonObject | None) -> JsonObject:
        assert current is not None
        changed = _patched(change, current)
        return checked(api, request, served, changed, key)

    return Edit(served, key, request, wanted, request.target.subresource)


def _patched(change: Callable[[JsonObject], Any], current: JsonObject) -> Any:
    try:
        return change(current)
    except PatchError as error:
        raise StatusError(error.code, error.reason, error.message) from error


def checked(api: Api, request: Request, served: ServedType, obj: Any, key: Key) -> JsonObject:
    """A patched object as if it had come in a body: kind, fields, name."""
    if not isinstance(obj, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {served.resource.kind})")
    found = strategy.decode_object(api.registry, served, request, (obj, []))
    metadata.check_name(found, key)
    return found


def _changer(request: Request, served: ServedType, media: str) -> Callable[[JsonObject], Any]:
    body = _body(request, served)
    if media == JSON_PATCH:
        if not isinstance(body, list):
            raise bad_request("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch")
        if len(body) > _TOO_MANY_OPS:
            raise StatusError(
                413,
                "RequestEntityTooLarge",
                f"The allowed maximum operations in a JSON patch is {_TOO_MANY_OPS}, got {len(body)}",
            )
        return lambda current: json_patch(current, body)
    if not isinstance(body, dict):
        raise bad_request("error decoding patch: the patch must be an object")
    if media == MERGE:
        return lambda current: merge_patch(current, body)
    return lambda current: strategic_merge(current, body, served.schema, served.definitions)


def _body(request: Request, served: ServedType) -> Any:
    seen = Duplicates()
    try:
        body = parse_json(request.body, seen)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error
    strategy.report_fields(request, served, [f'duplicate field "{path}"' for path in seen.paths(body)])
    return body


async def apply(api: Api, request: Request, served: ServedType, key: Key) -> Written:
    """Server-side apply.

    Raises:
        StatusError: 409 naming the managers in conflict, and every other refusal.
    """
    sent, repeated = decode(request.body, "application/yaml", served.resource.kind)
    applied = strategy.decode_object(api.registry, served, request, (sent, repeated))
    metadata.check_name(applied, key)
    if applied["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    force = request.flag("force")

    def wanted(current: JsonObject | None) -> JsonObject:
        try:
            return apply_object(
                current,
                applied,
                manager=request.query["fieldManager"],
                force=force,
                types=type_map(api, served),
                now=api.now(),
                subresource=request.target.subresource,
            )
        except ApplyConflict as error:
            raise _conflict(error) from error
        except ApplyInvalid as error:
            raise bad_request(str(error)) from error

    may_create = not request.target.subresource
    return await write_object(
        api,
        Edit(served, key, request, wanted, request.target.subresource, tracked=False, may_create=may_create),
    )


def _conflict(error: ApplyConflict) -> StatusError:
    causes = [
        {"reason": "FieldManagerConflict", "message": message, "field": path} for path, message in error.causes
    ]
    return StatusError(409, "Conflict", error.message, {"causes": causes})
