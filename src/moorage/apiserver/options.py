"""Query parameters and bodies that steer a request: resourceVersion rules, dry run, DeleteOptions. Pure.

Source: API concepts, "Resource versions"; `metav1.ListOptions` and `DeleteOptions` validation.
"""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from moorage.apiserver.codec import decode, go_json_error
from moorage.apiserver.errors import StatusError, bad_request, invalid
from moorage.apiserver.request import Request
from moorage.core.meta import JsonObject, ResourceType
from moorage.schema import FieldError, forbidden, not_supported, too_long
from moorage.schema import invalid as invalid_value

_META = ResourceType("meta.k8s.io", "v1", "ListOptions", "listoptions")
_DELETE = ResourceType("meta.k8s.io", "v1", "DeleteOptions", "deleteoptions")
_WRITE = {
    "post": ResourceType("meta.k8s.io", "v1", "CreateOptions", "createoptions"),
    "put": ResourceType("meta.k8s.io", "v1", "UpdateOptions", "updateoptions"),
    "patch": ResourceType("meta.k8s.io", "v1", "PatchOptions", "patchoptions"),
}
_POLICIES = ("Foreground", "Background", "Orphan", "nil")
_VALIDATIONS = ("", "Ignore", "Warn", "Strict")


def read_version(text: str) -> int:
    """The number of a resourceVersion; 0 for none.

    Raises:
        StatusError: 400, no number.
    """
    if not text:
        return 0
    if not text.isascii() or not text.isdecimal():
        why = f'strconv.ParseUint: parsing "{text}": invalid syntax'
        raise bad_request(f'resourceVersion: Invalid value: "{text}": {why}')
    return int(text)


@dataclass(frozen=True, slots=True)
class ListOptions:
    """What a list asks for. `version` 0 with `match` empty means the newest."""

    version: int
    match: str
    limit: int
    start: str = ""


def list_options(request: Request) -> ListOptions:
    """The paging and version of a list.

    Raises:
        StatusError: 422 for combinations that Kubernetes refuses, 400 for values that cannot be read.
    """
    query = request.query
    version, match = query.get("resourceVersion", ""), query.get("resourceVersionMatch", "")
    token, limit = query.get("continue", ""), _number(query.get("limit", ""))
    errors = _match_errors(version, match, token)
    if "sendInitialEvents" in query:
        errors.append(forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    if errors:
        raise invalid(_META, "", errors)
    if token:
        if version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        at, start = read_token(token)
        return ListOptions(at, "Exact" if at else "", limit, start)
    try:
        return ListOptions(read_version(version), match, limit)
    except StatusError as error:
        raise bad_request(f"invalid resource version: {error.message}") from None


def _match_errors(version: str, match: str, token: str) -> list[FieldError]:
    path = "resourceVersionMatch"
    if not match:
        return []
    found = []
    if not version:
        found.append(forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if token:
        found.append(forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    if match not in ("Exact", "NotOlderThan"):
        found.append(not_supported(path, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and version == "0":
        found.append(forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return found


def _number(text: str) -> int:
    if not text:
        return 0
    try:
        return int(text)
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def make_token(version: int, start: str) -> str:
    """A continue token: the revision of the first page and the key to go on from."""
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": start}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def read_token(token: str) -> tuple[int, str]:
    """Revision (-1: go on inconsistently, at the newest) and key of a continue token.

    Raises:
        StatusError: 400, no token of ours.
    """
    try:
        text = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode("latin-1")
        found = json.loads(text)
        if not isinstance(found, dict) or found.get("v") != "meta.k8s.io/v1":
            shown = found.get("v", "") if isinstance(found, dict) else ""
            raise ValueError(f'server does not recognize this encoded version "{shown}"')
        version, start = int(found["rv"]), str(found["start"])
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        why = go_json_error(error) if isinstance(error, ValueError) else str(error)
        raise bad_request(f"invalid continue token: continue key is not valid: {why}") from error
    return (0 if version < 0 else version), start


def check_write_options(request: Request) -> None:
    """Raises 422 for write parameters that Kubernetes refuses."""
    query, errors = request.query, []
    dry_run = query.get("dryRun")
    if dry_run is not None and dry_run != "All":
        errors.append(not_supported("dryRun", [dry_run], ("All",)))
    mode = query.get("fieldValidation", "")
    if mode not in _VALIDATIONS:
        errors.append(not_supported("fieldValidation", mode, ("", "Ignore", "Strict", "Warn")))
    manager = query.get("fieldManager", "")
    if len(manager) > 128:
        errors.append(too_long("fieldManager", manager, 128))
    elif not manager.isprintable():
        errors.append(invalid_value("fieldManager", manager, _unprintable(manager)))
    if errors:
        raise invalid(_WRITE.get(request.method.lower(), _DELETE), "", errors)


def _unprintable(text: str) -> str:
    at = next(at for at, sign in enumerate(text) if not sign.isprintable())
    return f"invalid character U+{ord(text[at]):04X} (at position {at})"


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """What a delete asks for."""

    policy: str = ""
    uid: str | None = None
    version: str | None = None
    grace: int | None = None
    dry_run: bool = False


def delete_options(request: Request) -> DeleteOptions:
    """DeleteOptions from body or query.

    Raises:
        StatusError: 400, 415, 422.
    """
    body: JsonObject = {}
    if request.body:
        body, _ = decode(request.body, request.headers.get("content-type", ""), "DeleteOptions")
        if body.get("kind") not in (None, "", "DeleteOptions"):
            raise bad_request(
                f"the object provided is unrecognized (must be of type DeleteOptions): {body.get('kind')}"
            )
    policy = body.get("propagationPolicy") or request.query.get("propagationPolicy", "")
    orphan = body.get("orphanDependents")
    if orphan is None and request.query.get("orphanDependents"):
        orphan = request.query["orphanDependents"] == "true"
    grace = body.get("gracePeriodSeconds")
    if grace is None and request.query.get("gracePeriodSeconds"):
        grace = _number(request.query["gracePeriodSeconds"])
    dry_run = body.get("dryRun") or ([request.query["dryRun"]] if request.query.get("dryRun") else [])
    _check_delete(policy, orphan, dry_run)
    if orphan is not None:
        policy = "Orphan" if orphan else "Background"
    conditions = body.get("preconditions") or {}
    return DeleteOptions(policy, conditions.get("uid"), conditions.get("resourceVersion"), grace, bool(dry_run))


def _check_delete(policy: str, orphan: bool | None, dry_run: list[str]) -> None:
    errors: list[FieldError] = []
    if policy and orphan is not None:
        errors.append(
            invalid_value("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy and policy not in _POLICIES[:-1]:
        errors.append(not_supported("propagationPolicy", policy, _POLICIES))
    if dry_run not in ([], ["All"]):
        errors.append(not_supported("dryRun", dry_run, ("All",)))
    if errors:
        raise invalid(_DELETE, "", errors)


def timeout_of(request: Request, default: float) -> float:
    """Seconds that a watch may last."""
    text = request.query.get("timeoutSeconds", "")
    seconds = _number(text)
    return float(seconds) if seconds > 0 else default
