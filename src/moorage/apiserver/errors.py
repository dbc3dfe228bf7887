"""The answers that say no: metav1.Status, worded as kube-apiserver words them.

StatusError carries an HTTP code, a reason, a sentence and details; the functions below build each kind of refusal.
Source: apimachinery `api/errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError


class StatusError(Exception):
    """A refusal that the client gets as metav1.Status."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: JsonObject | None = None,
        *,
        metadata: JsonObject | None = None,
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details
        self.metadata = metadata or {}

    def to_wire(self) -> JsonObject:
        wire: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            wire["reason"] = self.reason
        if self.details:
            wire["details"] = self.details
        wire["code"] = self.code
        return wire


@dataclass(frozen=True, slots=True)
class Subject:
    """What a refusal is about: a name within a group and plural (or kind, for Invalid)."""

    name: str
    group: str
    word: str

    @staticmethod
    def of(resource: ResourceType, name: str) -> Subject:
        return Subject(name, resource.group, resource.plural)

    @property
    def qualified(self) -> str:
        return f"{self.word}.{self.group}" if self.group else self.word

    @property
    def details(self) -> JsonObject:
        found: JsonObject = {}
        for key, value in (("name", self.name), ("group", self.group), ("kind", self.word)):
            if value:
                found[key] = value
        return found


class NoSuchPage(StatusError):
    """404 in plain text, as Kubernetes answers for paths that nothing of its own serves."""

    def __init__(self) -> None:
        super().__init__(404, "NotFound", "404 page not found")


def not_found(resource: ResourceType, name: str) -> StatusError:
    """404 for an object."""
    about = Subject.of(resource, name)
    return StatusError(404, "NotFound", f'{about.qualified} "{name}" not found', about.details)


def no_such_resource() -> StatusError:
    """404 for a path below a built-in group that names no served resource."""
    return StatusError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: ResourceType, name: str) -> StatusError:
    """409 for a create."""
    about = Subject.of(resource, name)
    return StatusError(409, "AlreadyExists", f'{about.qualified} "{name}" already exists', about.details)


MODIFIED = "the object has been modified; please apply your changes to the latest version and try again"


def conflict(resource: ResourceType, name: str, why: str = MODIFIED) -> StatusError:
    """409 for a write that lost a race or whose precondition does not hold."""
    about = Subject.of(resource, name)
    message = f'Operation cannot be fulfilled on {about.qualified} "{name}": {why}'
    return StatusError(409, "Conflict", message, about.details)


def bad_request(message: str) -> StatusError:
    """400."""
    return StatusError(400, "BadRequest", message)


def forbidden(resource: ResourceType, name: str, why: str) -> StatusError:
    """403 for a request on a resource."""
    about = Subject.of(resource, name)
    return StatusError(403, "Forbidden", f'{about.qualified} "{name}" is forbidden: {why}', about.details)


def invalid(resource: ResourceType, name: str, errors: Sequence[FieldError]) -> StatusError:
    """422 with one cause per violation; several are joined as Kubernetes joins an aggregate."""
    about = Subject(name, resource.group, resource.kind)
    unique = list(dict.fromkeys(error.message for error in errors))
    text = unique[0] if len(unique) == 1 else f"[{', '.join(unique)}]"
    details = {**about.details, "causes": [error.cause() for error in errors]}
    return StatusError(422, "Invalid", f'{about.qualified} "{name}" is invalid: {text}', details)


def unauthorized() -> StatusError:
    """401."""
    return StatusError(401, "Unauthorized", "Unauthorized")


def method_not_allowed() -> StatusError:
    """405."""
    return StatusError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})


def not_supported(resource: ResourceType, verb: str) -> StatusError:
    """405 for a verb that a custom resource, or its subresource, does not have."""
    about = Subject.of(resource, "")
    text = f'{verb} is not supported on resources of kind "{about.qualified}"'
    return StatusError(405, "MethodNotAllowed", text, about.details)


def not_acceptable(accepted: Sequence[str]) -> StatusError:
    """406 naming the media types that would do."""
    text = ", ".join(accepted)
    return StatusError(406, "NotAcceptable", f"406: Not Acceptable\n\nAvailable representations: {text}")


def no_such_form(accepted: Sequence[str]) -> StatusError:
    """406: the media type would do, what is asked of it (`as`, `v`, `g`) would not."""
    return StatusError(406, "NotAcceptable", f"only the following media types are accepted: {', '.join(accepted)}")


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    """415 naming the media types that would do."""
    text = ", ".join(accepted)
    message = f"the body of the request was in an unknown format - accepted media types include: {text}"
    return StatusError(415, "UnsupportedMediaType", message)


def too_large(what: str) -> StatusError:
    """413."""
    return StatusError(413, "RequestEntityTooLarge", what)


def rv_too_large(requested: int, current: int) -> StatusError:
    """504: the resourceVersion lies ahead of this server."""
    message = f"Timeout: Too large resource version: {requested}, current: {current}"
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    return StatusError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})


def internal(message: str) -> StatusError:
    """500."""
    details = {"causes": [{"message": message}]}
    return StatusError(500, "InternalError", f"Internal error occurred: {message}", details)


def too_many(message: str) -> StatusError:
    """429."""
    return StatusError(429, "TooManyRequests", message, {"retryAfterSeconds": 1})


def storage_refused(full: bool, why: str) -> StatusError:
    """507 when the disk is full, 503 when it cannot be written; reads go on."""
    if full:
        message = f"the disk that holds the store is full ({why}): reads go on, writes work again when space is freed"
        return StatusError(507, "InsufficientStorage", message)
    message = f"the store cannot be written ({why}): reads go on, writes work again when the disk is writable"
    return StatusError(503, "ServiceUnavailable", message, {"retryAfterSeconds": 1})


def success(details: dict[str, Any]) -> JsonObject:
    """metav1.Status of a deletion that is complete."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": details,
    }
