"""The discovery document of an OpenID Connect provider, or what stands for it when endpoints are declared.

Enters: bytes that a provider answered, or declared endpoints. Leaves: a Document whose bytes are a function of the content alone (keys
sorted, order of fields and blanks gone), or the Fault that says what is wrong. Whatever it is given, it raises nothing and never
repeats foreign text. Source: OpenID Connect Discovery 1.0, 3 and 4.3; spec/keystone.md 3.5, 4.8; decisions, Keystone 16; case B13.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias
from urllib.parse import urlsplit

from .federation import FLOWS
from .materials import DOCUMENT_LIMIT, Document, Fault
from .types_federation import OidcEndpoints

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"

_REQUIRED: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_OPTIONAL: Final = ("userinfo_endpoint", "end_session_endpoint", "introspection_endpoint")
_CALLED: Final = ("token_endpoint", "jwks_uri", "userinfo_endpoint", "introspection_endpoint")
"""Endpoints that the sidecar itself connects to; a browser goes to the others."""
_URL: Final = re.compile(r"https?://[^\x00-\x20\x7f-\U0010ffff\"<>\\^`{|}]{1,2040}")
_UNICODE: Final = re.compile("[^\\ud800-\\udfff]*")
_INT64: Final = range(-(2**63), 2**63)
_DEPTH: Final = 32
_SUBJECT: Final = "the discovery document"


class _Refused(Exception):
    """Ends the look with the sentence of its fault."""


def parse(content: bytes, issuer: str, *, secure: bool = False) -> Document | Fault:
    """A fetched discovery document.

    Args:
        issuer: of the declaration; the document's own must equal it byte for byte.
        secure: it was fetched by https, so no endpoint that the sidecar connects to may be plain http.
    """
    try:
        members = _members(content)
        if (found := members.get("issuer")) != issuer:
            return Fault("MetadataMismatch", f"the issuer of {_SUBJECT} is not {issuer!r}{_hint(found, issuer)}")
        return _document(members, _SUBJECT, secure=secure)
    except _Refused as refused:
        return Fault("MetadataRefused", str(refused))


def declared(issuer: str, endpoints: OidcEndpoints) -> Document | Fault:
    """The document that declared endpoints stand for."""
    # All flows, since `responseType` chooses: without any the module warns at every request.
    members: dict[str, Json] = {"issuer": issuer, "response_types_supported": [*FLOWS]}
    for name in (*_REQUIRED, *_OPTIONAL):
        if value := getattr(endpoints, name):
            members[name] = value
    try:
        return _document(members, "spec.oidc.endpoints", secure=False)
    except _Refused as refused:
        return Fault("MetadataRefused", str(refused))


def is_same(one: bytes, other: bytes) -> bool:
    """Whether two accepted documents say the same: some providers list what they support in another order each time."""
    return one == other or _unordered(json.loads(one)) == _unordered(json.loads(other))


def _unordered(value: Json) -> object:
    if isinstance(value, dict):
        return {name: _unordered(item) for name, item in value.items()}
    if isinstance(value, list):
        return sorted(json.dumps(item, sort_keys=True) for item in value)
    return value


def _hint(found: object, issuer: str) -> str:
    """What differs, as far as it can be said without repeating what a stranger wrote."""
    if not isinstance(found, str):
        return "; it has none"
    if found == f"{issuer}/":
        return "; it ends in a slash there: write spec.oidc.issuer with it"
    if f"{found}/" == issuer:
        return "; it has no slash at the end there: write spec.oidc.issuer without it"
    return "; only letter case differs" if found.casefold() == issuer.casefold() else ""


def _members(content: bytes) -> dict[str, Json]:
    if len(content) > DOCUMENT_LIMIT:
        raise _Refused(f"{_SUBJECT} has more than {DOCUMENT_LIMIT} bytes")
    try:
        found: Json = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_unique, parse_constant=_no_constant)
        _check_values(found)
    except UnicodeDecodeError:
        raise _Refused(f"{_SUBJECT} is not UTF-8 text") from None
    except RecursionError:
        raise _Refused(f"{_SUBJECT} is nested too deeply") from None
    except ValueError:
        raise _Refused(f"{_SUBJECT} is not JSON") from None
    if not isinstance(found, dict):
        raise _Refused(f"{_SUBJECT} is not a JSON object")
    return found


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _Refused(f"{_SUBJECT} names a member twice")
    return found


def _no_constant(_: str) -> Json:
    raise _Refused(f"{_SUBJECT} holds a number that JSON does not know")


def _check_values(value: Json, depth: int = 0) -> None:
    """What the sidecar's JSON reader would refuse or read as something else."""
    match value:
        case dict() | list() if depth >= _DEPTH:
            raise _Refused(f"{_SUBJECT} is nested too deeply")
        case dict():
            for name, item in value.items():
                _check_values(name)
                _check_values(item, depth + 1)
        case list():
            for item in value:
                _check_values(item, depth + 1)
        case str() if "\x00" in value or not _UNICODE.fullmatch(value):
            raise _Refused(f"{_SUBJECT} holds text that is not Unicode")
        case int() if value not in _INT64:
            raise _Refused(f"{_SUBJECT} holds a number that is too large")
        case float() if abs(value) == float("inf"):
            raise _Refused(f"{_SUBJECT} holds a number that is too large")


def _document(members: Mapping[str, Json], subject: str, *, secure: bool) -> Document:
    for name in _REQUIRED:
        if not members.get(name):
            raise _Refused(f"{subject} names no {name}")
    urls = dict(_urls(members, subject))
    called = [urls[name] for name in _CALLED if name in urls]
    if secure and (plain := [name for name in _CALLED if urls.get(name, "").startswith("http:")]):
        detail = "though it was itself fetched by https: declare spec.oidc.endpoints if that is meant"
        raise _Refused(f"{subject} names {plain[0]} by plain http, {detail}")
    return Document(
        content=f"{json.dumps(members, indent=2, sort_keys=True)}\n".encode(),
        introspection_endpoint=urls.get("introspection_endpoint", ""),
        ports=frozenset(_port(url) for url in called),
    )


def _urls(members: Mapping[str, Json], subject: str) -> Iterator[tuple[str, str]]:
    for name in (*_REQUIRED, *_OPTIONAL):
        value = members.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str) or not _URL.fullmatch(value) or not _port(value):
            raise _Refused(f"{name} of {subject} is not an http or https URL")
        yield name, value


def _port(url: str) -> int:
    """The TCP port of a URL; 0 when there is no host, no such port, or user information, which would be a secret."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return 0
    if not parts.hostname or "@" in parts.netloc:
        return 0
    return (443 if parts.scheme == "https" else 80) if port is None else port
