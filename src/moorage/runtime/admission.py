"""AdmissionReview v1: defaulting and validation of our kinds, as answers to an API server.

Enters: a decoded AdmissionReview, the rooms' Admissions, the siblings as a callable. Leaves: an AdmissionReview with all
violations in one answer, worded as kube-apiserver words an invalid object. Terminating objects always pass, and so does
what is stored already: a complaint that the stored object earns as well does not block an update (decisions Keystone 17,
case B79). It reads no cluster and never logs an object.
Source: k8s.io/api/admission/v1.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Literal, Protocol

import structlog

from moorage.calling import wire
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema.fielderror import FieldError
from moorage.schema.review import Admission, Review, Verdict

from .diff import json_patch

Handler = Callable[[JsonObject], Awaitable[JsonObject]]

_log = structlog.get_logger("moorage.admission")


class Malformed(Exception):
    """The body is no AdmissionReview v1; the sentence says why."""


class Siblings(Protocol):
    """The objects of a kind in a namespace, as last seen; () when that is not known.

    `shared`: only those that have one of these values (`Admission.meets`); None means all.
    """

    def __call__(
        self, rt: ResourceType, namespace: str, shared: Collection[str] | None = None, /
    ) -> Sequence[JsonObject]: ...


def no_siblings(_rt: ResourceType, _namespace: str, _shared: Collection[str] | None = None, /) -> Sequence[JsonObject]:
    """For places where no other objects are known."""
    return ()


def utc_now() -> datetime:
    """The time, aware."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Webhooks:
    """The webhooks of all kinds by URL path."""

    admissions: Sequence[Admission]
    siblings: Siblings = no_siblings
    now: Callable[[], datetime] = utc_now

    def handlers(self) -> Mapping[str, Handler]:
        """A coroutine function for each path, for an API server in the same process."""
        return {path: _async(answer) for path, answer in self.answers().items()}

    def answers(self) -> Mapping[str, Callable[[JsonObject], JsonObject]]:
        """A function for each path: AdmissionReview in, AdmissionReview out. Raises Malformed."""
        found: dict[str, Callable[[JsonObject], JsonObject]] = {}
        for item in self.admissions:
            found[item.mutate_path] = self._answer("mutate", item)
            found[item.validate_path] = self._answer("validate", item)
        return found

    def _answer(self, mode: Literal["mutate", "validate"], admission: Admission) -> Callable[[JsonObject], JsonObject]:
        def answer(body: JsonObject) -> JsonObject:
            request = _request_of(body)
            try:
                decided = (
                    mutate(request, admission)
                    if mode == "mutate"
                    else validate(request, admission, self.siblings, self.now())
                )
            except Exception:  # noqa: BLE001  a bug in a rule is an answer of its own, not a broken connection
                _log.exception("bug in admission", kind=admission.kind.kind, mode=mode)
                decided = _denied(500, "InternalError", "a rule failed unexpectedly; see the log of moorage")
            return {
                "apiVersion": "admission.k8s.io/v1",
                "kind": "AdmissionReview",
                "response": {"uid": request["uid"], **decided},
            }

        return answer


def _async(answer: Callable[[JsonObject], JsonObject]) -> Handler:
    async def handle(body: JsonObject) -> JsonObject:
        return answer(body)

    return handle


def _request_of(body: Any) -> JsonObject:
    if not isinstance(body, dict) or body.get("kind") != "AdmissionReview":
        raise Malformed("the body is not an AdmissionReview")
    if body.get("apiVersion") != "admission.k8s.io/v1":
        raise Malformed("apiVersion must be admission.k8s.io/v1")
    request = body.get("request")
    if not isinstance(request, dict) or not isinstance(request.get("uid"), str) or not request["uid"]:
        raise Malformed("request.uid is missing")
    if request.get("operation") in ("CREATE", "UPDATE") and not _is_object(request.get("object")):
        raise Malformed("request.object is missing or has no metadata")
    if request.get("operation") == "UPDATE" and not _is_object(request.get("oldObject")):
        raise Malformed("request.oldObject is missing or has no metadata")
    return request


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("metadata"), dict)


def _passes(request: JsonObject) -> bool:
    """Deletions, connections and terminating objects are never ours to refuse."""
    if request.get("operation") not in ("CREATE", "UPDATE") or request.get("subResource"):
        return True
    return bool(request["object"]["metadata"].get("deletionTimestamp"))


def mutate(request: JsonObject, admission: Admission) -> JsonObject:
    """The response (without uid) of the defaulting webhook: allowed, with a JSON patch when something is filled in."""
    if _passes(request):
        return {"allowed": True}
    before = request["object"]
    after = admission.complete(wire.loads(wire.dumps(before)), request.get("oldObject"))
    operations = list(json_patch(before, after))
    if not operations:
        return {"allowed": True}
    patch = base64.b64encode(wire.dumps(operations)).decode()
    return {"allowed": True, "patchType": "JSONPatch", "patch": patch}


def validate(request: JsonObject, admission: Admission, siblings: Siblings, now: datetime) -> JsonObject:
    """The response (without uid) of the validating webhook: allowed or all violations, with warnings either way."""
    if _passes(request):
        return {"allowed": True}
    verdict = _judge(request, admission, siblings, now)
    response: JsonObject = {"allowed": True}
    if verdict.errors:
        response = _invalid(request, admission, verdict.errors)
    if verdict.warnings:
        response["warnings"] = list(verdict.warnings)
    return response


def _judge(request: JsonObject, admission: Admission, siblings: Siblings, now: datetime) -> Verdict:
    obj, operation = request["object"], request["operation"]
    old = request["oldObject"] if operation == "UPDATE" else None
    others = _others(obj, request, admission, siblings)
    return admission.judge(Review(operation, obj, old, others, now, _parent(obj, request, admission, siblings)))


def _others(obj: JsonObject, request: JsonObject, admission: Admission, siblings: Siblings) -> tuple[JsonObject, ...]:
    namespace, name = request.get("namespace", ""), request.get("name") or obj["metadata"].get("name", "")
    shared = _shared(request, admission) if admission.meets else None
    found = siblings(admission.kind.resource, namespace, shared)
    return tuple([item for item in found if item["metadata"].get("name") != name])


def _shared(request: JsonObject, admission: Admission) -> frozenset[str]:
    """What the object and its stored form, which is judged beside it, may have in common with siblings."""
    assert admission.meets is not None
    try:
        return frozenset(
            chain.from_iterable(admission.meets(obj) for obj in (request["object"], request.get("oldObject")) if obj)
        )
    except (KeyError, TypeError, AttributeError):
        return frozenset()  # it does not fit its schema; `validate` says so, whatever its siblings are


def _parent(obj: JsonObject, request: JsonObject, admission: Admission, siblings: Siblings) -> JsonObject | None:
    named = admission.parent(obj) if admission.parent else None
    if named is None:
        return None
    found = siblings(named[0], request.get("namespace", ""))
    return next((item for item in found if item["metadata"].get("name") == named[1]), None)


def _invalid(request: JsonObject, admission: Admission, errors: Sequence[FieldError]) -> JsonObject:
    kind = admission.kind
    name = str(request.get("name") or request["object"]["metadata"].get("name", ""))
    messages = list(dict.fromkeys(error.message for error in errors))
    joined = messages[0] if len(messages) == 1 else f"[{', '.join(messages)}]"
    denied = _denied(422, "Invalid", f'{kind.kind}.{kind.group} "{name}" is invalid: {joined}')
    causes = [error.cause() for error in errors]
    denied["status"]["details"] = {"name": name, "group": kind.group, "kind": kind.kind, "causes": causes}
    return denied


def _denied(code: int, reason: str, message: str) -> JsonObject:
    status = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure"}
    return {"allowed": False, "status": {**status, "code": code, "reason": reason, "message": message}}
