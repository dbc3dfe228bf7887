"""The scale subresource: autoscaling/v1 Scale over Deployments, ReplicaSets and custom resources that declare it."""

from __future__ import annotations

from typing import Any

from moorage.apiserver.api import Api
from moorage.apiserver.codec import decode, negotiate, parse_json
from moorage.apiserver.errors import StatusError, bad_request, conflict, invalid, not_found, unsupported_media_type
from moorage.apiserver.hub import encode
from moorage.apiserver.metadata import require_name
from moorage.apiserver.options import check_write_options
from moorage.apiserver.patch import PatchError, json_patch, merge_patch
from moorage.apiserver.patching import JSON_PATCH, MERGE, STRATEGIC
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.scalepaths import paths, walk
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import Edit, write_object
from moorage.core.meta import JsonObject, Key, ResourceType
from moorage.core.selectors import text_of
from moorage.schema import invalid as invalid_value

_SCALE = ResourceType("autoscaling", "v1", "Scale", "scales")


def scale_of(served: ServedType, obj: JsonObject) -> JsonObject:
    """The Scale of an object."""
    meta = obj["metadata"]
    wanted = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    places = paths(served)
    status: JsonObject = {"replicas": walk(obj, places["statusReplicasPath"]) or 0}
    selector = _selector(served, obj, places)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in wanted if name in meta},
        "spec": {} if (replicas := walk(obj, places["specReplicasPath"])) is None else {"replicas": replicas},
        "status": status,
    }


def _selector(served: ServedType, obj: JsonObject, places: dict[str, str]) -> str:
    if served.custom:
        found = walk(obj, places["labelSelectorPath"]) if places["labelSelectorPath"] else ""
        return found if isinstance(found, str) else ""
    return text_of(obj["spec"].get("selector"))


async def get_scale(api: Api, request: Request, served: ServedType) -> Response:
    """GET scale.

    Raises:
        StatusError: 404, also when an object has no replicas (where Kubernetes answers 500).
    """
    negotiate(request.headers, request.query)
    entry = api.hub.get(served.storage, str(key_of_target(served, request.target)))
    if entry is None:
        raise not_found(served.resource, request.target.name)
    scale = scale_of(served, api.read(served, entry))
    if served.custom and "replicas" not in scale["spec"]:
        why = f'the spec replicas field "{paths(served)["specReplicasPath"]}" does not exist'
        raise StatusError(404, "NotFound", why)
    return Response(200, encode(scale))


async def put_scale(api: Api, request: Request, served: ServedType) -> Response:
    """PUT scale.

    Raises:
        StatusError: 400, 404, 409, 415, 422.
    """
    sent, _ = decode(request.body, request.headers.get("content-type", ""), "Scale")
    return await _write(api, request, served, lambda _: sent)


async def patch_scale(api: Api, request: Request, served: ServedType) -> Response:
    """PATCH scale.

    Raises:
        StatusError: 400, 404, 409, 415, 422.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media not in (JSON_PATCH, MERGE, STRATEGIC):
        raise unsupported_media_type((JSON_PATCH, MERGE, STRATEGIC))
    try:
        body = parse_json(request.body)
    except ValueError as error:
        raise bad_request(f"error decoding patch: {error}") from error

    def changed(current: JsonObject) -> JsonObject:
        try:
            made: JsonObject = json_patch(current, body) if media == JSON_PATCH else merge_patch(current, body)
            return made
        except PatchError as error:
            raise StatusError(error.code, error.reason, error.message) from error

    return await _write(api, request, served, changed)


async def _write(api: Api, request: Request, served: ServedType, change: Any) -> Response:
    check_write_options(request)
    key = key_of_target(served, request.target)

    def wanted(current: JsonObject | None) -> JsonObject:
        if current is None:
            raise not_found(served.resource, key.name)
        scale = change(scale_of(served, current))
        _check(served, key, scale, current)
        spec_path = [part for part in paths(served)["specReplicasPath"].split(".") if part]
        at = current
        for part in spec_path[:-1]:
            at = at.setdefault(part, {})
        at[spec_path[-1]] = (scale.get("spec") or {}).get("replicas", 0)
        return current

    written = await write_object(api, Edit(served, key, request, wanted, "scale", tracked=not served.custom))
    return Response(200, encode(scale_of(served, api.read(served, written.entry))))


def _not_a_scale(served: ServedType, scale: JsonObject) -> str:
    kind, version = scale["kind"], str(scale.get("apiVersion") or "").rpartition("/")[2]
    if served.custom:
        return f"expected input object type to be Scale, but {kind}"
    head = f'{kind} in version "{version}" cannot be handled as a Scale: '
    return f"{head}converting ({version}.{kind}) to (autoscaling.Scale): unknown conversion"


def _check(served: ServedType, key: Key, scale: JsonObject, current: JsonObject) -> None:
    """Raises 400, 409 or 422 when a Scale does not fit its object."""
    if scale.get("kind") not in (None, "", "Scale"):
        raise bad_request(_not_a_scale(served, scale))
    meta = scale.get("metadata") or {}
    require_name(meta, key)
    version = meta.get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise conflict(served.resource, key.name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal spec.replicas of type int32'
        )
    if replicas < 0 and not served.custom:
        raise invalid(
            _SCALE, key.name, [invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")]
        )
