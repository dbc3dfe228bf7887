"""What Keystone's Identity API refuses, as types.

IdentityError
├── Unreachable      no answer: refused, reset, timed out, no such name
├── Nonsense         an answer that is no Identity API answer (redirect, HTML, too large)
├── Unauthorized     401, also after a fresh login
├── Forbidden        403
├── NotFound         404
├── Conflict         409
├── Refused          another 4xx
└── ServerFailed     5xx

Enters: a status code and a body. Leaves: one exception whose sentence is bounded, one line, and free of secrets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from moorage.core.errors import WireError

SENTENCE_LIMIT: Final = 256
_GAPS: Final = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")


class IdentityError(WireError):
    """Base of all. `status` is the HTTP code, 0 without an answer."""

    code = "identity_error"

    def __init__(self, request: str, why: str, status: int = 0) -> None:
        self.status = status
        super().__init__(request, why)


class Unreachable(IdentityError):
    """Keystone gave no answer."""

    code = "identity_unreachable"


class Nonsense(IdentityError):
    """What answered is not the Identity API."""

    code = "identity_nonsense"


class Unauthorized(IdentityError):
    """The administrator's credentials are refused."""

    code = "identity_unauthorized"


class Forbidden(IdentityError):
    """Keystone forbids it, such as the deletion of an enabled domain."""

    code = "identity_forbidden"


class NotFound(IdentityError):
    """It does not exist (any more)."""

    code = "identity_not_found"


class Conflict(IdentityError):
    """Something of that name or id exists."""

    code = "identity_conflict"


class Refused(IdentityError):
    """Keystone refused the request for another reason."""

    code = "identity_refused"


class ServerFailed(IdentityError):
    """Keystone failed."""

    code = "identity_server_failed"


_BY_STATUS: Final[Mapping[int, type[IdentityError]]] = {
    401: Unauthorized, 403: Forbidden, 404: NotFound, 409: Conflict,
}  # fmt: skip


def error_of(request: str, status: int, body: Any, secrets: Iterable[str]) -> IdentityError:
    """The error for an answer of at least 400.

    Args:
        request: method and path, without query.
        body: the decoded JSON, or None; only Keystone's own sentence is taken from it.
        secrets: texts that must not appear, whatever the server echoes.
    """
    kind = _BY_STATUS.get(status, ServerFailed if status >= 500 else Refused)
    said = body.get("error") if isinstance(body, Mapping) else None
    sentence = clean(str(said.get("message") or ""), secrets) if isinstance(said, Mapping) else ""
    return kind(
        request, f"Keystone answered {status}: {sentence}" if sentence else f"Keystone answered {status}", status
    )


def clean(text: str, secrets: Iterable[str] = ()) -> str:
    """One line of at most 256 characters, secrets blotted out, without a final full stop."""
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    line = _GAPS.sub(" ", text).strip().removesuffix(".")
    return line if len(line) <= SENTENCE_LIMIT else f"{line[: SENTENCE_LIMIT - 1]}…"
