"""Reviews that are answered and never stored: who is this, may they."""

from __future__ import annotations

from moorage.apiserver.access import Access
from moorage.apiserver.api import Api
from moorage.apiserver.apply import track_update
from moorage.apiserver.codec import decode, negotiate
from moorage.apiserver.errors import bad_request, invalid
from moorage.apiserver.hub import encode
from moorage.apiserver.registry import check_gvk
from moorage.apiserver.request import Request, Response, Target, User
from moorage.apiserver.served import ServedType
from moorage.apiserver.tokens import ISSUER, Tokens
from moorage.apiserver.write import type_map
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError
from moorage.schema import invalid as invalid_value
from moorage.schema.fielderror import Verbatim, go_json


class Reviews:
    """Answers TokenReview, SelfSubjectReview and the four access reviews."""

    def __init__(self, tokens: Tokens, access: Access) -> None:
        self._tokens, self._access = tokens, access

    async def create(self, api: Api, request: Request, served: ServedType) -> Response:
        """The review of the body with its status.

        Raises:
            StatusError: 400, 415, 422.
        """
        negotiate(request.headers, request.query)
        body, _ = decode(request.body, request.headers.get("content-type", ""), served.resource.kind)
        check_gvk(served, body)
        spec = body.get("spec") or {}
        if not isinstance(spec, dict):
            raise bad_request("spec must be an object")
        answers = {
            "TokenReview": self._token,
            "SelfSubjectReview": self._self,
            "SubjectAccessReview": self._subject,
            "LocalSubjectAccessReview": self._subject,
            "SelfSubjectAccessReview": self._self_access,
            "SelfSubjectRulesReview": self._rules,
        }
        status = answers[served.resource.kind](request, served, spec)
        meta = body.get("metadata") or {}
        answer: JsonObject = {"kind": served.resource.kind, "apiVersion": served.resource.api_version, "metadata": meta}
        if served.resource.kind != "SelfSubjectReview":
            answer["spec"] = spec
            types = type_map(api, served)
            answer = track_update(None, answer, manager=request.manager, types=types, now=api.now())
        else:
            meta["creationTimestamp"] = api.now()
        return Response(201, encode({**answer, "status": status}))

    def _token(self, _request: Request, _served: ServedType, spec: JsonObject) -> JsonObject:
        token, wanted = spec.get("token") or "", tuple(spec.get("audiences") or (ISSUER,))
        if not token:
            raise bad_request("token is required for TokenReview in authentication")
        known = self._tokens.audiences(token)
        user = self._tokens.user(token, wanted) if known else self._tokens.user(token)
        if user is None:
            error = "invalid bearer token"
            if known and not set(known) & set(wanted):
                lists = [" ".join(f'"{name}"' for name in names) for names in (known, wanted)]
                error = f"[{error}, token audiences [{lists[0]}] is invalid for the target audiences [{lists[1]}]]"
            return {"user": {}, "error": error}
        met = [name for name in wanted if name in known] if known else list(wanted)
        return {"authenticated": True, "user": user_wire(user), "audiences": met}

    def _self(self, request: Request, _served: ServedType, _spec: JsonObject) -> JsonObject:
        return {"userInfo": user_wire(request.user)}

    def _subject(self, request: Request, served: ServedType, spec: JsonObject) -> JsonObject:
        errors = _attribute_errors(spec)
        if not spec.get("user") and not spec.get("groups"):
            errors.append(invalid_value("spec.user", "", "at least one of user or group must be specified"))
        if errors:
            raise invalid(_nameless(served), "", errors)
        resource = spec.get("resourceAttributes") or {}
        if served.resource.namespaced and resource.get("namespace") != request.target.namespace:
            path, why = "spec.resourceAttributes.namespace", "must match metadata.namespace"
            raise invalid(_nameless(served), "", [invalid_value(path, resource.get("namespace") or "", why)])
        extra = {key: tuple(values) for key, values in (spec.get("extra") or {}).items()}
        user = User(spec.get("user", ""), tuple(spec.get("groups") or ()), spec.get("uid", ""), extra)
        return self._decide(user, spec)

    def _self_access(self, request: Request, served: ServedType, spec: JsonObject) -> JsonObject:
        if errors := _attribute_errors(spec):
            raise invalid(_nameless(served), "", errors)
        return self._decide(request.user, spec)

    def _decide(self, user: User, spec: JsonObject) -> JsonObject:
        resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
        if resource:
            target = Target(
                "", resource.get("verb", ""), resource.get("group", ""), resource.get("version", ""),
                resource.get("namespace", ""), resource.get("resource", ""), resource.get("name", ""),
                resource.get("subresource", ""),
            )  # fmt: skip
        else:
            target = Target((path or {}).get("path", ""), (path or {}).get("verb", ""))
        allowed, why = self._access.decide(user, target)
        return {"allowed": allowed, **({"reason": why} if why else {})}

    def _rules(self, request: Request, _served: ServedType, spec: JsonObject) -> JsonObject:
        namespace = spec.get("namespace") or ""
        if not namespace:
            raise bad_request("no namespace on request")
        resource, path = self._access.rules(request.user, namespace)
        return {"resourceRules": resource, "nonResourceRules": path, "incomplete": False}


def user_wire(user: User) -> JsonObject:
    """authentication/v1 UserInfo."""
    wire: JsonObject = {"username": user.name}
    if user.uid:
        wire["uid"] = user.uid
    if user.groups:
        wire["groups"] = list(user.groups)
    if user.extra:
        wire["extra"] = {key: list(values) for key, values in user.extra.items()}
    return wire


def _nameless(served: ServedType) -> ResourceType:
    """How refusals name a review: by its group alone."""
    return ResourceType(served.resource.group, served.resource.version, "", served.resource.plural)


def _attribute_errors(spec: JsonObject) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    if resource and path:
        shown = Verbatim(go_json({"Path": path.get("path", ""), "Verb": path.get("verb", "")}))
        why = "cannot be specified in combination with resourceAttributes"
        return [invalid_value("spec.nonResourceAttributes", shown, why)]
    return [] if resource or path else [invalid_value("spec.resourceAttributes", resource, why)]
