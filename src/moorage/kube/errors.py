"""What an API server refuses, as types.

ConnectionFailed        no answer: refused, reset, timed out, or no TLS
ApiError                an APIStatus of kind Failure
├── BadRequest          400
├── Unauthorized        401
├── Forbidden           403
├── NotFound            404
├── MethodNotSupported  405
├── Conflict            409
│   └── AlreadyExists   409, reason AlreadyExists
├── Expired             410, or an ERROR event of a watch: list again
├── TooLarge            413
├── Invalid             422
├── TooManyRequests     429
└── ServerError         5xx

Enters: a status code and a body. Leaves: one exception with code, reason, message, details; never a request body.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.core.errors import WireError


class ConnectionFailed(WireError):
    """The server could not be reached, or the connection broke before the answer."""

    code = "connection_failed"


class ApiError(WireError):
    """The server answered with a failure.

    Args:
        status: HTTP code.
        reason: machine word such as `AlreadyExists`; empty when the server gave none.
        message: the server's sentence.
        details: `details` of the APIStatus (name, kind, causes, retryAfterSeconds).
    """

    code = "api_error"

    def __init__(self, status: int, reason: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        self.status, self.reason, self.message = status, reason, message
        self.details: Mapping[str, Any] = details or {}
        super().__init__(message or f"the API server answered {status} {reason}".rstrip())

    @property
    def causes(self) -> tuple[Mapping[str, Any], ...]:
        """`details.causes`: reason, message and field of each complaint."""
        return tuple(self.details.get("causes") or ())

    @property
    def namespace_ends(self) -> bool:
        """Whether the namespace is being deleted, so that nothing new is admitted to it."""
        return any(cause.get("reason") == "NamespaceTerminating" for cause in self.causes)

    @property
    def retry_after(self) -> float | None:
        """Seconds that the server asks us to wait, from the body."""
        seconds = self.details.get("retryAfterSeconds")
        return float(seconds) if seconds else None


class BadRequest(ApiError):
    """The request could not be understood."""

    code = "bad_request"


class Unauthorized(ApiError):
    """The credentials are missing, wrong or expired."""

    code = "unauthorized"


class Forbidden(ApiError):
    """The credentials do not allow this."""

    code = "forbidden"


class NotFound(ApiError):
    """The object, or its type, does not exist."""

    code = "not_found"


class MethodNotSupported(ApiError):
    """The resource does not serve this verb."""

    code = "method_not_supported"


class Conflict(ApiError):
    """The object changed meanwhile, a precondition failed, or another manager owns the field."""

    code = "conflict"


class AlreadyExists(Conflict):
    """An object of that name exists."""

    code = "already_exists"


class Expired(ApiError):
    """The resourceVersion or continue token is too old; only a fresh list helps."""

    code = "expired"


class TooLarge(ApiError):
    """The request or the object is larger than the server stores."""

    code = "too_large"


class Invalid(ApiError):
    """The object breaks its schema, a rule or an admission webhook."""

    code = "invalid"


class TooManyRequests(ApiError):
    """The server is busy or a disruption budget forbids it now."""

    code = "too_many_requests"


class ServerError(ApiError):
    """The server failed."""

    code = "server_error"


_BY_STATUS: dict[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    405: MethodNotSupported,
    409: Conflict,
    410: Expired,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
}


def error_of(status: int, body: Any) -> ApiError:
    """The error for an answer of at least 400; `body` is the decoded JSON, or text when it was none."""
    fields: Mapping[str, Any] = body if isinstance(body, Mapping) else {}
    reason = str(fields.get("reason") or "")
    message = str(fields.get("message") or (body if isinstance(body, str) else ""))[:4096]
    found = _BY_STATUS.get(status, ServerError if status >= 500 else ApiError)
    if reason == "AlreadyExists":
        found = AlreadyExists
    elif reason in ("Expired", "Gone"):
        found = Expired
    return found(status, reason, message.strip(), fields.get("details"))
