"""Defaulting and validation of PocketIDOIDCClient: what bounds and CEL of `types.py` cannot say.

Enters: an object, its stored form and its siblings. Leaves: the completed object, or a verdict. Pure; no message prints key material.
Source: spec/pocketid.md 1.1 to 1.8; decisions, Admission 1, 4, 5; cases B73, B74.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from moorage.core import cron, names
from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, is_terminating
from moorage.pocketid.judgement import Check, Finding, admission, asked_by, limit, lines, one_line, selector, twice
from moorage.pocketid.oidcclient.addresses import addresses
from moorage.pocketid.oidcclient.sizes import excess
from moorage.pocketid.oidcclient.types import KIND, REFRESH, REGENERATE, SECRET_SUFFIX, PocketIDOIDCClient
from moorage.pocketid.oidcclient.types_secret import SecretKeys
from moorage.pocketid.references import MANAGED_BY, OPERATOR
from moorage.pocketid.selection import same_instance
from moorage.schema.fielderror import ErrorType, FieldError, duplicate, forbidden, invalid
from moorage.schema.review import Review

PRIVATE: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""Members of a JWK that hold private or symmetric key material."""
NAME_LIMIT: Final = 50
"""Characters of a client's name that Pocket-ID admits."""
_MEMBERS: Final = {"EC": ("crv", "x", "y"), "RSA": ("n", "e"), "OKP": ("crv", "x")}
"""Members of a public JWK: RFC 7518 6.2, 6.3; RFC 8037 2."""
_KEY_LIMIT: Final = 253
_ORDINARY_ID: Final = re.compile(r"[A-Za-z0-9._-]+")


def server_limits(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """What only the server refuses is told at once and fails in the pass (decisions, Admission 4)."""
    spec = client.spec
    yield from lines("spec.description", spec.description)
    if not spec.is_document:
        path = "metadata.name" if spec.name is None else "spec.name"
        yield from limit(path, spec.name or client.metadata.name, NAME_LIMIT)
        yield from one_line("spec.name", spec.name)
        if spec.client_id and not _ORDINARY_ID.fullmatch(spec.client_id):
            yield "spec.clientID: Pocket-ID admits letters, digits, `.`, `_` and `-` only: the server will refuse it; recreate this resource with another one"


def size(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """What is declared leaves room for the status, and for the clients of others in the list that they share."""
    if (found := excess(client.spec)) is not None:
        yield FieldError(found.path, ErrorType.TOO_LONG, found.why)


def keys(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """No two values share a key of the credentials Secret, and every key fits into one."""
    spec, chosen = client.spec, client.spec.credentials.key_names
    fields = [(info.alias, getattr(chosen, name)) for name, info in SecretKeys.model_fields.items()]
    taken = [(f".{field}", name) for field, name in fields]
    yield from twice("spec.secret.keys", taken, "is the name of")
    for field, name in fields:
        yield from (invalid(f"spec.secret.keys.{field}", name, why) for why in names.config_key(name))
    given = {name: f"secret.keys.{field}" for field, name in fields}
    for index, access in enumerate(spec.api_access or ()):
        path = f"spec.apiAccess[{index}].apiRef.name"
        for prefix in (chosen.resource, chosen.scopes):
            key = f"{prefix}_{access.api_ref.name}"
            if len(key) > _KEY_LIMIT:
                detail = f"gives the Secret key {prefix}_<name> more than {_KEY_LIMIT} characters"
                yield invalid(path, access.api_ref.name, detail)
            if key in given:
                yield duplicate(path, access.api_ref.name, f"its Secret key {key} is that of {given[key]}")


def apis(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """One name in two namespaces would be one key of the Secret (seed 004, Requesting a Token)."""
    here = client.metadata.namespace
    found: dict[str, str] = {}
    for index, access in enumerate(client.spec.api_access or ()):
        name, space = access.api_ref.name, access.api_ref.namespace or here
        if found.setdefault(name, space) != space:
            detail = f"is granted from namespace {found[name]} already; both would be one key of the credentials Secret"
            yield duplicate(f"spec.apiAccess[{index}].apiRef.name", name, detail)


def secret(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """The credentials Secret can be written, and is not the source of what it holds."""
    spec, wanted, name = client.spec, client.spec.credentials, client.secret_name
    if spec.client_secret_ref is not None and spec.client_secret_ref.name == name:
        detail = "is the credentials Secret of this client; the declared secret must come from another one"
        yield invalid("spec.clientSecretRef.name", name, detail)
    if wanted.name is None and wanted.enabled and names.dns1123_subdomain(name):
        detail = f"with {SECRET_SUFFIX} appended it is no name of a Secret; set spec.secret.name"
        yield invalid("metadata.name", client.metadata.name, detail)
    for key, value in (wanted.additional_labels or {}).items():
        path = f"spec.secret.additionalLabels[{key}]"
        yield from (invalid(path, value, why) for why in (*names.qualified_name(key), *names.label_value(value)))
    for key, value in (wanted.additional_annotations or {}).items():
        path = f"spec.secret.additionalAnnotations[{key}]"
        yield from (invalid(path, value, why) for why in names.qualified_name(key))
    if (wanted.additional_labels or {}).get(MANAGED_BY, OPERATOR) != OPERATOR:
        yield f"spec.secret.additionalLabels[{MANAGED_BY}]: the label stays {OPERATOR}"


def rotation(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """Cron and time zone can be read (decisions, Admission 4); settings that change nothing are told."""
    spec = client.spec
    schedule = spec.client_secret_rotation
    if schedule is not None and schedule.window is not None:
        try:
            cron.read(schedule.window.opens)
        except InputError as error:
            yield invalid("spec.clientSecretRotation.window.opens", schedule.window.opens, str(error))
    if schedule is not None and schedule.enabled and not spec.credentials.enabled:
        yield "spec.clientSecretRotation: nothing is rotated while secret.enabled is false"
    if spec.client_secret_overlap is not None and spec.is_document:
        yield "spec.clientSecretOverlap: a client with a metadata document has no secret, so there is no overlap"
    references = {
        "clientSecretRef": spec.client_secret_ref,
        "scim.tokenSecretRef": spec.scim.token_secret_ref if spec.scim else None,
    }
    for field, ref in references.items():
        if ref is not None and ref.optional:
            yield f"spec.{field}.optional: has no effect, a Secret or key that is missing is always an error"


def identities(client: PocketIDOIDCClient, _review: Review) -> Iterator[Finding]:
    """Whose assertions are taken is plain to see; an inline key is one public JWK, and a complaint names its members and never shows it."""
    for index, identity in enumerate(client.spec.federated_identities or ()):
        for field in ("issuer", "subject", "audience", "jwks"):
            yield from one_line(f"spec.federatedIdentities[{index}].{field}", getattr(identity, field))
        for at, entry in enumerate(identity.public_keys or ()):
            if entry.value is None:
                continue
            path = f"spec.federatedIdentities[{index}].publicKeys[{at}].value"
            if found := sorted(PRIVATE & _members(entry.value)):
                detail = (
                    f"holds private or symmetric key material ({', '.join(found)}); only public keys may stand here"
                )
                yield forbidden(path, detail)
            elif "keys" in entry.value:
                yield forbidden(
                    path, "must be one JWK; a whole JWKS document goes into a ConfigMap or Secret (valueFrom)"
                )
            else:
                yield from _doubts(path, entry.value)


def _doubts(path: str, key: Mapping[str, Any]) -> Iterator[str]:
    if not key.get("kid"):
        yield f"{path}: Pocket-ID wants a kid in every key: the server will refuse it"
    if missing := [name for name in _MEMBERS.get(str(key.get("kty")), ("kty",)) if not isinstance(key.get(name), str)]:
        quoted = '; write "y" with its quotes, kubectl reads a bare y as true' if "y" in missing else ""
        yield f"{path}: {', '.join(missing)} must be there, as text: the server will refuse it{quoted}"


def _members(value: Any) -> set[str]:
    """Names of members at any depth."""
    if isinstance(value, dict):
        return set(value).union(*(_members(item) for item in value.values()))
    return set().union(*map(_members, value)) if isinstance(value, list) else set()


def siblings(client: PocketIDOIDCClient, review: Review) -> Iterator[Finding]:
    """Two resources never claim one client or one Secret (B74); the later one is told."""
    for other in review.siblings:
        if is_terminating(other):
            continue
        name, spec = other["metadata"]["name"], other["spec"]
        if _secret_name(other) == client.secret_name:
            path = "spec.secret.name" if client.spec.credentials.name else "metadata.name"
            yield duplicate(path, client.secret_name, f"is the credentials Secret of PocketIDOIDCClient {name}")
        if not same_instance(review.object, other):
            continue
        if client.spec.client_id is not None and spec.get("clientID") == client.spec.client_id:
            yield duplicate("spec.clientID", client.spec.client_id, f"is claimed by PocketIDOIDCClient {name} already")
        elif _shown_name(review.object) == _shown_name(other) and not (client.spec.client_id or spec.get("clientID")):
            yield f"spec.name: PocketIDOIDCClient {name} has this name too; a client is looked up by its name, so only one of them gets it"


def meets(obj: JsonObject) -> Iterator[str]:
    """The credentials Secret, and the declared id; the name of clients without one."""
    yield f"secret/{_secret_name(obj)}"
    yield f"id/{obj['spec']['clientID']}" if obj["spec"].get("clientID") else f"name/{_shown_name(obj)}"


def _secret_name(obj: JsonObject) -> str:
    return (obj["spec"].get("secret") or {}).get("name") or f"{obj['metadata']['name']}{SECRET_SUFFIX}"


def _shown_name(obj: JsonObject) -> str:
    return str(obj["spec"].get("name") or obj["metadata"]["name"])


CHECKS: Final[tuple[Check[PocketIDOIDCClient], ...]] = (
    addresses,
    server_limits,
    size,
    keys,
    apis,
    secret,
    rotation,
    identities,
    asked_by(REGENERATE, REFRESH),
    selector,
    siblings,
)
ADMISSION: Final = admission(KIND, CHECKS, meets)
