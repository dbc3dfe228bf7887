"""What a Pocket-ID refuses, as types.

PocketIDError
├── Unreachable      no answer: refused, reset, timed out, no such name; a write may have happened all the same
├── Nonsense         an answer that is no Pocket-ID answer (redirect, HTML, no envelope)
│   ├── TooLarge     it is larger than may be read; fewer rows at once may do
│   └── TooMuch      the whole list would take more memory than it may, whatever is left out of it
├── Unauthorized     the API key is refused (401)
├── Forbidden        the key's owner may not, or is disabled; LDAP manages the object; the configuration is fixed (403)
├── NotFound         the object does not exist, by code
├── AlreadyExists    the id or a unique property is taken (409)
├── RateLimited      too many requests (429); `retry_after` says how long to wait
├── Refused          another 4xx; `fields` name what was refused
│   └── LogoRefused  the server would not take the logo; the rest of the write is committed
└── ServerFailed     5xx; a write may have happened all the same

Enters: a status code and an error envelope. Leaves: one exception whose sentence is one bounded line, the same for the same refusal, and free of secrets and of
the values that were sent. The envelope's code decides before the status. Source: spec/pocketid.md 3.14, 4.1.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from moorage.core.errors import WireError

SENTENCE_LIMIT: Final = 256
SHORTEST_WAIT: Final = 5.0
"""Fewest seconds that a server which limits the rate is left alone."""
LONGEST_WAIT: Final = 300.0
"""Most seconds, whatever it asks for."""
ECHO_LENGTH: Final = 8
"""A value of a request that is at least this long is blotted out of the server's sentence; shorter ones would eat its own words."""
_GAPS: Final = re.compile("[\\s\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_CODE: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_FIELD: Final = re.compile(r"[A-Za-z0-9_.\[\]-]{1,128}")


@dataclass(frozen=True, slots=True)
class FieldFault:
    """One field of a request that the server refused, such as `callbackURLs[0]`, and its code, such as `too_long`."""

    field: str
    code: str

    def __str__(self) -> str:
        return f"{self.field} ({self.code})"


class PocketIDError(WireError):
    """Base of all. `status` is the HTTP code (0 without an answer), `reason` the envelope's code ("" without one)."""

    code = "pocketid_error"

    def __init__(self, request: str, why: str, status: int = 0, reason: str = "") -> None:
        self.status, self.reason = status, reason
        super().__init__(request, why)


class Unreachable(PocketIDError):
    """Pocket-ID gave no answer; whether a write happened is unknown."""

    code = "pocketid_unreachable"


class Nonsense(PocketIDError):
    """What answered is not the API of a Pocket-ID."""

    code = "pocketid_nonsense"


class TooLarge(Nonsense):
    """The answer is larger than it may be, or would be once it is decoded."""

    code = "pocketid_too_large"


class TooMuch(Nonsense):
    """All rows together take more memory than they may."""

    code = "pocketid_too_much"


class Unauthorized(PocketIDError):
    """The API key is refused."""

    code = "pocketid_unauthorized"


class Forbidden(PocketIDError):
    """The key is known and may not do this."""

    code = "pocketid_forbidden"


class NotFound(PocketIDError):
    """The object does not exist (any more)."""

    code = "pocketid_not_found"


class AlreadyExists(PocketIDError):
    """Something has that id, or that unique property. `property` names it, "" when the server does not."""

    code = "pocketid_already_exists"
    property = ""


class RateLimited(PocketIDError):
    """Too many requests. `retry_after` is in seconds, as the server said it."""

    code = "pocketid_rate_limited"
    retry_after = 0.0

    @property
    def wait(self) -> float:
        """Seconds that it is worth to wait."""
        return min(max(self.retry_after, SHORTEST_WAIT), LONGEST_WAIT)


class Refused(PocketIDError):
    """The request is refused as it is. `fields` is empty when the refusal is not about one field."""

    code = "pocketid_refused"
    fields: tuple[FieldFault, ...] = ()


class LogoRefused(Refused):
    """A logo was refused; everything else of the write is committed."""

    code = "pocketid_logo_refused"


class ServerFailed(PocketIDError):
    """Pocket-ID failed; whether a write happened is unknown."""

    code = "pocketid_server_failed"


_BY_REASON: Final[Mapping[str, type[PocketIDError]]] = {
    "not_signed_in": Unauthorized, "no_api_key_provided": Unauthorized, "invalid_api_key": Unauthorized,
    "token_invalid_or_expired": Unauthorized,
    "forbidden": Forbidden, "user_disabled": Forbidden, "api_key_auth_not_allowed": Forbidden, "ui_config_disabled": Forbidden,
    "ldap_user_update": Forbidden, "ldap_user_group_update": Forbidden, "oidc_access_denied": Forbidden,
    "not_found": NotFound, "user_not_found": NotFound, "image_not_found": NotFound,
    "client_id_already_exists": AlreadyExists, "already_in_use": AlreadyExists, "setup_already_completed": AlreadyExists,
    "validation_failed": Refused, "invalid_request_body": Refused, "reserved_claim": Refused, "duplicate_claim": Refused,
    "file_too_large": Refused, "file_type_not_supported": Refused,
    "logo_download_failed": LogoRefused, "logo_type_not_supported": LogoRefused, "logo_too_large": LogoRefused,
    "rate_limited": RateLimited, "internal_error": ServerFailed, "request_timeout": ServerFailed,
}  # fmt: skip
_BY_STATUS: Final[Mapping[int, type[PocketIDError]]] = {
    401: Unauthorized, 403: Forbidden, 408: ServerFailed, 409: AlreadyExists, 429: RateLimited,
}  # fmt: skip
_REMEDIES: Final[Mapping[str, str]] = {
    "validation_failed": "correct in the resource what is sent as these fields",
    "reserved_claim": "Pocket-ID sets that claim by itself: take it out of customClaims, or rename it",
    "duplicate_claim": "keep one of the claims of that name",
    "already_in_use": "something else in Pocket-ID has it: choose another one, or remove it there",
    "user_disabled": "enable the owner of the API key in Pocket-ID, or use another key",
    "not_signed_in": "give it a valid API key of an administrator: in the Secret that spec.external.apiKeySecretRef of the instance names, or in the file of --api-key-file",
}
"""What a person does about a refusal whose own words do not tell."""
_LOGO_FIELDS: Final = frozenset({"logoUrl", "darkLogoUrl"})


def error_of(
    request: str, status: int, body: Any, *, hidden: Iterable[str] = (), retry_after: float = 0.0
) -> PocketIDError:
    """The error for an answer of at least 400.

    Args:
        request: method and path, without query and without anything secret.
        body: the decoded JSON, or None.
        hidden: texts that must not appear, whatever the server echoes: secrets and values sent.
        retry_after: seconds to wait when the server limits the rate.
    """
    envelope = body if isinstance(body, Mapping) else {}
    reason = _plain(envelope.get("code"), _CODE)
    details = envelope.get("details") if isinstance(envelope.get("details"), Mapping) else {}
    fields = _fields(details)
    kind = _kind(status, reason, fields)
    error = kind(
        request, _sentence(status, reason, fields, clean(str(envelope.get("error") or ""), hidden)), status, reason
    )
    match error:
        case Refused():
            error.fields = fields
        case RateLimited():
            error.retry_after = retry_after
        case AlreadyExists():
            error.property = _plain(details.get("property"), _CODE) if isinstance(details, Mapping) else ""
    return error


def _kind(status: int, reason: str, fields: tuple[FieldFault, ...]) -> type[PocketIDError]:
    """The code decides; a status alone says less, and a 404 without an envelope is a route that is missing, not an object."""
    known = _BY_REASON.get(reason)
    if known is Refused and fields and {item.field for item in fields} <= _LOGO_FIELDS:
        return LogoRefused
    if known is not None:
        return known
    if status == 404:
        return NotFound if reason.endswith("not_found") else Nonsense
    return _BY_STATUS.get(status, ServerFailed if status >= 500 else Refused)


def _sentence(status: int, reason: str, fields: tuple[FieldFault, ...], said: str) -> str:
    head = f"Pocket-ID answered {status}" + (f" {reason}" if reason else "")
    if status == 404 and not reason:
        return f"{head} without its error envelope: no such route, or no Pocket-ID behind this address"
    named = ", ".join(map(str, fields[:8]))
    sentence = ": ".join(filter(None, (head, named or said)))
    return "; ".join(filter(None, (sentence, _REMEDIES.get(reason, ""))))


def _fields(details: Any) -> tuple[FieldFault, ...]:
    listed = details.get("fields") if isinstance(details, Mapping) else None
    items = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return tuple(
        FieldFault(_plain(item.get("field"), _FIELD) or "?", _plain(item.get("code"), _CODE) or "?") for item in items
    )


def _plain(text: Any, shape: re.Pattern[str]) -> str:
    """A word of the server's vocabulary; anything else is not repeated."""
    return text if isinstance(text, str) and shape.fullmatch(text) else ""


def clean(text: str, hidden: Iterable[str] = ()) -> str:
    """One line of at most 256 characters, what is hidden blotted out, without a final full stop."""
    for secret in sorted(filter(None, hidden), key=len, reverse=True):
        text = text.replace(secret, "***")
    line = _GAPS.sub(" ", text).strip().removesuffix(".")
    return line if len(line) <= SENTENCE_LIMIT else f"{line[: SENTENCE_LIMIT - 1]}…"
