"""The scale subresource: autoscaling/v1 Scale over Deployments, ReplicaSets and custom resources that declare it."""

from __future__ import annotations

from typing import Any

from moorage.apiserver.api import Api
from moorage.apiserver.codec import decode, negotiate, parse_json
from moorage.apiserver.errors import StatusError, bad_request, conflict, invalid, not_found, unsupported_media_type
from moorage.apiserver.hub import encode
from moorage.apiserver.options import check_write_options
from moorage.apiserver.patch import PatchError, json_patch, merge_patch
from moorage.apiserver.patching import JSON_PATCH, MERGE, STRATEGIC
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.write import Edit, write_object
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import invalid as invalid_value

_SCALE = ResourceType("autoscaling", "v1", "Scale", "scales")


def scale_of(served: ServedType, obj: JsonObject) -> JsonObject:
    """The Scale of an object."""
    meta = obj["metadata"]
    wanted = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    paths = _paths(served)
    status: JsonObject = {"replicas": _walk(obj, paths["statusReplicasPath"]) or 0}
    selector = _selector(served, obj, paths)
    if selector:
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: meta[name] for name in wanted if name in meta},
        "spec": {"replicas": _walk(obj, paths["specReplicasPath"]) or 0} if _has_spec(obj, paths) else {},
        "status": status,
    }


def _paths(served: ServedType) -> dict[str, str]:
    given = (served.version.get("subresources") or {}).get("scale") or {}
    defaults = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ""}
    return {name: given.get(name, default) for name, default in defaults.items()}


def _has_spec(obj: JsonObject, paths: dict[str, str]) -> bool:
    return _walk(obj, paths["specReplicasPath"]) is not None


def _walk(obj: Any, path: str) -> Any:
    for part in filter(None, path.split(".")):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def _selector(served: ServedType, obj: JsonObject, paths: dict[str, str]) -> str:
    if served.custom:
        found = _walk(obj, paths["labelSelectorPath"]) if paths["labelSelectorPath"] else ""
        return found if isinstance(found, str) else ""
    selector = obj["spec"].get("selector") or {}
    terms = [f"{name}={value}" for name, value in sorted((selector.get("matchLabels") or {}).items())]
    for item in selector.get("matchExpressions") or ():
        values = ",".join(sorted(item.get("values") or ()))
        terms.append(
            {
                "In": f"{item['key']} in ({values})",
                "NotIn": f"{item['key']} notin ({values})",
                "Exists": item["key"],
                "DoesNotExist": f"!{item['key']}",
            }[item["operator"]]
        )
    return ",".join(terms)


async def get_scale(api: Api, request: Request, served: ServedType) -> Response:
    """GET scale.

    Raises:
        StatusError: 404.
    """
    negotiate(request.headers, request.query)
    entry = api.hub.get(served.storage, str(key_of_target(served, request.target)))
    if entry is None:
        raise not_found(served.resource, request.target.name)
    return Response(200, encode(scale_of(served, api.read(served, entry))))


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
        _check(served, key.name, scale, current)
        spec_path = [part for part in _paths(served)["specReplicasPath"].split(".") if part]
        at = current
        for part in spec_path[:-1]:
            at = at.setdefault(part, {})
        at[spec_path[-1]] = (scale.get("spec") or {}).get("replicas", 0)
        return current

    written = await write_object(api, Edit(served, key, request, wanted, "scale"))
    return Response(200, encode(scale_of(served, api.read(served, written.entry))))


def _check(served: ServedType, name: str, scale: JsonObject, current: JsonObject) -> None:
    """Raises 400, 409 or 422 when a Scale does not fit its object."""
    if scale.get("kind") not in (None, "", "Scale"):
        raise bad_request(f"expected input object type to be Scale, but {scale.get('kind')}")
    meta = scale.get("metadata") or {}
    if meta.get("name") not in (None, "", name):
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
    version = meta.get("resourceVersion")
    if version and version != current["metadata"]["resourceVersion"]:
        raise conflict(served.resource, name)
    replicas = (scale.get("spec") or {}).get("replicas", 0)
    if isinstance(replicas, bool) or not isinstance(replicas, int):
        raise bad_request(
            'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal spec.replicas of type int32'
        )
    if replicas < 0:
        raise invalid(_SCALE, name, [invalid_value("spec.replicas", replicas, "must be greater than or equal to 0")])
