"""PATCH: JSON patch, merge patch, strategic merge patch, server-side apply; of an object or of its status."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moorage.apiserver import metadata, present, strategy
from moorage.apiserver.api import Api
from moorage.apiserver.apply import ApplyConflict, ApplyInvalid, apply_object
from moorage.apiserver.codec import Duplicates, decode, go_json_error, negotiate, parse_json
from moorage.apiserver.errors import StatusError, bad_request, conflict, invalid, unsupported_media_type
from moorage.apiserver.gotypes import first_mismatch, go_print
from moorage.apiserver.options import check_write_options
from moorage.apiserver.patch import PatchError, json_patch, merge_patch, strategic_merge
from moorage.apiserver.registry import check_patched_version, key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import Edit, Written, type_map, write_object
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.schema import forbidden, required
from moorage.schema import invalid as invalid_value

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
    if media == STRATEGIC and served.custom:
        raise unsupported_media_type(accepted[:-1])
    if media not in accepted[:-1]:
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type")
    _check_options(request, media)
    key = key_of_target(served, request.target)
    if media == APPLY:
        written = await apply(api, request, served, key)
    else:
        edit = await api.aside.run(len(request.body), lambda: patch_edit(api, request, served, media))
        written = await write_object(api, edit)
    return await present.one(api, request, served, written.entry, 201 if written.created else 200)


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
        return checked(api, request, served, _patched(change, current), key)

    return Edit(served, key, request, wanted, request.target.subresource)


@dataclass(frozen=True, slots=True)
class Patched:
    """What a patch came to; `shown` is how refusals print it, `restored` whether it comes from a strategic merge."""

    obj: Any
    shown: str
    restored: bool = False


Change = Callable[[JsonObject], Patched]


def _patched(change: Change, current: JsonObject) -> Patched:
    try:
        return change(current)
    except PatchError as error:
        raise StatusError(error.code, error.reason, error.message) from error


def checked(api: Api, request: Request, served: ServedType, made: Patched, key: Key) -> JsonObject:
    """A patched object as if it had come in a body: kind, fields, name."""
    obj = made.obj
    if not isinstance(obj, dict):
        raise bad_request(f"the object provided is unrecognized (must be of type {served.resource.kind})")
    check_patched_version(served, obj)
    try:
        found = strategy.decode_object(api.registry, served, request, (obj, []))
    except StatusError as error:
        raise _undecodable(api, served, made, error) from error
    metadata.require_name(found["metadata"], key)
    metadata.check_name(found, key)
    return found


def _undecodable(api: Api, served: ServedType, made: Patched, error: StatusError) -> StatusError:
    """A patched object that cannot be decoded is 422 and names the patch, where a body is 400."""
    _, mark, why = error.message.partition(" cannot be handled as a ")
    if error.code != 400 or not mark or (served.custom and "strict decoding error: " not in why):
        return error
    why = why.partition(": ")[2]
    if made.restored and (wrong := first_mismatch(served.schema, served.definitions, made.obj, restored=True)):
        why = wrong
    elif why.startswith("converting ("):
        other = api.registry.of_kind(str(made.obj.get("apiVersion")), str(made.obj.get("kind")))
        why = (other and first_mismatch(other.schema, other.definitions, made.obj)) or why
    nameless = ResourceType("", "", "", "")
    return invalid(nameless, "", [invalid_value("patch", made.shown, why)])


def _changer(request: Request, served: ServedType, media: str) -> Change:
    body = _body(request, served)
    if media == JSON_PATCH:
        if isinstance(body, list) and len(body) > _TOO_MANY_OPS:
            why = f"The allowed maximum operations in a JSON patch is {_TOO_MANY_OPS}, got {len(body)}"
            raise StatusError(413, "RequestEntityTooLarge", why)
        return lambda current: _whole(json_patch(current, body))
    if not isinstance(body, dict):
        raise bad_request("error decoding patch: the patch must be an object")
    if media == MERGE:
        return lambda current: _whole(merge_patch(current, body))
    return lambda current: _strategic(served, current, body)


def _whole(obj: Any) -> Patched:
    return Patched(obj, json.dumps(obj, sort_keys=True, separators=(",", ":"), ensure_ascii=False))


def _strategic(served: ServedType, current: JsonObject, body: JsonObject) -> Patched:
    """A strategic merge; it works on the decoded object, whose kind no patch changes."""
    made = strategic_merge(current, body, served.schema, served.definitions)
    return Patched(
        {**made, "apiVersion": current["apiVersion"], "kind": current["kind"]}, go_print(body), restored=True
    )


def _body(request: Request, served: ServedType) -> Any:
    seen = Duplicates()
    try:
        body = parse_json(request.body, seen)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {go_json_error(error)}") from error
    strategy.report_fields(request, served, seen.problems(body))
    return body


async def apply(api: Api, request: Request, served: ServedType, key: Key) -> Written:
    """Server-side apply.

    Raises:
        StatusError: 409 naming the managers in conflict, and every other refusal.
    """
    applied = await api.aside.run(len(request.body), lambda: _configuration(request, served, key))
    force = request.flag("force")

    def wanted(current: JsonObject | None) -> JsonObject:
        try:
            made = apply_object(
                current,
                applied,
                manager=request.query["fieldManager"],
                force=force,
                types=type_map(api, served),
                now=api.now(),
                subresource=request.target.subresource,
            )
            return _named(served.resource, made, key, created=current is None)
        except ApplyConflict as error:
            raise _conflict(error) from error
        except ApplyInvalid as error:
            raise bad_request(str(error)) from error

    may_create = not request.target.subresource
    return await write_object(
        api,
        Edit(served, key, request, wanted, request.target.subresource, tracked=False, may_create=may_create),
    )


def _configuration(request: Request, served: ServedType, key: Key) -> JsonObject:
    """The applied configuration of a body."""
    applied, repeated = decode(request.body, "application/yaml", served.resource.kind)
    _check_applied(served, applied, key)
    strategy.report_fields(request, served, repeated)
    if applied["metadata"].get("managedFields"):
        raise bad_request("metadata.managedFields must be nil")
    return applied


def _named(rt: ResourceType, made: JsonObject, key: Key, *, created: bool) -> JsonObject:
    """The result of an apply with the name of its path; a version of an object that is not there is of no account."""
    meta = made["metadata"]
    metadata.check_name(made, key)
    if created:
        meta.pop("resourceVersion", None)
        if meta.get("uid"):
            why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
            raise conflict(rt, key.name, why)
    return made


def _check_applied(served: ServedType, applied: JsonObject, key: Key) -> None:
    """Raises 400 when a configuration is of another kind, or for another object, than the path says."""
    rt = served.resource
    version, kind = applied.get("apiVersion") or "", applied.get("kind") or ""
    if (version, kind) != (rt.api_version, rt.kind):
        group, _, number = str(version).rpartition("/")
        raise bad_request(f"invalid object type: {group}/{number}, Kind={kind}")
    metadata.require_metadata(applied, rt.kind)
    metadata.check_name({"metadata": dict(applied["metadata"])}, key)


def _conflict(error: ApplyConflict) -> StatusError:
    causes = [{"reason": "FieldManagerConflict", "message": message, "field": path} for path, message in error.causes]
    return StatusError(409, "Conflict", error.message, {"causes": causes})
