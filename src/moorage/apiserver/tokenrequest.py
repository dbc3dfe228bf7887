"""POST serviceaccounts/token: a TokenRequest answered with a signed token."""

from __future__ import annotations

from datetime import UTC, datetime

from moorage.apiserver.api import Api
from moorage.apiserver.apply import TypeMap, track_update
from moorage.apiserver.codec import decode, negotiate
from moorage.apiserver.errors import conflict, invalid, not_found
from moorage.apiserver.hub import encode
from moorage.apiserver.registry import key_of_target
from moorage.apiserver.request import Request, Response
from moorage.apiserver.served import ServedType
from moorage.apiserver.tokens import ISSUER, Claim
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import invalid as invalid_value

_REQUEST = ResourceType("authentication.k8s.io", "v1", "TokenRequest", "tokenrequests")
_POD = ResourceType("", "v1", "Pod", "pods")
_SECRET = ResourceType("", "v1", "Secret", "secrets")
_SCHEMA = "io.k8s.api.authentication.v1.TokenRequest"
_SHORTEST, _USUAL, _LONGEST = 600, 3600, 1 << 32


async def create_token(api: Api, request: Request, served: ServedType) -> Response:
    """A token for the ServiceAccount of the request's name.

    Raises:
        StatusError: 400, 404, 409, 415, 422.
    """
    negotiate(request.headers, request.query)
    body, _ = decode(request.body, request.headers.get("content-type", ""), "TokenRequest")
    key = key_of_target(served, request.target)
    entry = api.hub.get(served.storage, str(key))
    if entry is None:
        raise not_found(served.resource, key.name)
    spec = dict(body.get("spec") or {})
    seconds = spec.get("expirationSeconds") or _USUAL
    _check(seconds)
    audiences = tuple(spec.get("audiences") or (ISSUER,))
    bound = _bound(api, key.namespace, spec.get("boundObjectRef"))
    account = entry.parse()["metadata"]
    claim = Claim(key.namespace, key.name, account["uid"], audiences, seconds, bound)
    dry = bool(request.query.get("dryRun"))
    token, expires = api.tokens.issue(claim)
    ends = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    answer: JsonObject = {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "uid": account["uid"],
            "creationTimestamp": api.now(),
        },
        "spec": {
            "audiences": list(audiences),
            "expirationSeconds": seconds,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": "" if dry else token, "expirationTimestamp": ends},
    }
    schema = api.registry.definitions.get(_SCHEMA)
    if schema is not None:
        answer = _owned(api, request, schema, answer)
    return Response(201, encode(answer))


def _owned(api: Api, request: Request, schema: JsonObject, answer: JsonObject) -> JsonObject:
    """The answer with the fields that its writer owns."""
    types = TypeMap.of(schema, api.registry.definitions)
    spec = {name: value for name, value in answer["spec"].items() if value is not None}
    sent = {**answer, "metadata": {}, "spec": spec}
    sent.pop("status")
    made = track_update(None, sent, manager=request.manager, types=types, now=api.now(), subresource="token")
    return {**answer, "metadata": {**answer["metadata"], "managedFields": made["metadata"].get("managedFields")}}


def _check(seconds: int) -> None:
    path, errors = "spec.expirationSeconds", []
    if seconds < _SHORTEST:
        errors.append(invalid_value(path, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST:
        errors.append(invalid_value(path, seconds, "may not specify a duration larger than 2^32 seconds"))
    if errors:
        raise invalid(_REQUEST, "", errors)


def _bound(api: Api, namespace: str, ref: JsonObject | None) -> JsonObject | None:
    if not ref:
        return None
    rt = {"Pod": _POD, "Secret": _SECRET}.get(ref.get("kind", ""))
    if rt is None:
        why = f"cannot bind token to object of kind {ref.get('kind')}"
        raise invalid(_REQUEST, "", [invalid_value("spec.boundObjectRef", ref, why)])
    entry = api.hub.get(rt.plural, f"{namespace}/{ref.get('name')}")
    if entry is None:
        raise not_found(rt, ref.get("name", ""))
    uid = entry.parse()["metadata"]["uid"]
    if ref.get("uid") and ref["uid"] != uid:
        why = f"the UID in the bound object reference ({ref['uid']}) does not match the UID in record. The object might have been deleted and then recreated"
        raise conflict(rt, ref["name"], why)
    return {"kind": rt.kind, "name": ref["name"], "uid": uid}
