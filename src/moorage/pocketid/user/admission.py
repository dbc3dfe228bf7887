"""Defaulting and validation of PocketIDUser: what bounds and CEL of `types.py` cannot say.

Enters: an object, its stored form, its siblings and the time. Leaves: the completed object, or a verdict. Pure.
Source: spec/pocketid.md 2.4, 4.7; decisions, Admission 1, 4, 5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.pocketid.judgement import Check, Finding, admission, asked_by, beside, claims, one_line, selector
from moorage.pocketid.user.types import DATA_SUFFIX, DELETE, KIND, PocketIDUser
from moorage.schema.fielderror import duplicate, invalid
from moorage.schema.review import Review

_USERNAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.@-]*[A-Za-z0-9])?")
"""What Pocket-ID takes as username."""


def secrets(user: PocketIDUser, _review: Review) -> Iterator[Finding]:
    """Every Secret that is written has a name of its own, and is not one that is read."""
    data = f"{user.metadata.name}{DATA_SUFFIX}"
    source = user.spec.user_info_secret_ref
    if source is not None and source.name == data:
        yield invalid("spec.userInfoSecretRef.name", data, "is the Secret that is written for this user")
    taken: dict[tuple[str, str], str] = {}
    for index, key in enumerate(user.spec.api_keys or ()):
        path, ref = f"spec.apiKeys[{index}]", key.secret_ref
        name, entry = (ref.name, ref.key) if ref else (f"{user.metadata.name}-{key.name}-key", "token")
        if names.dns1123_subdomain(name):
            yield invalid(f"{path}.name", key.name, f"gives {name}, which is no name of a Secret; set secretRef")
        at = f"{path}.secretRef" if ref else f"{path}.name"
        if name == data:
            yield invalid(at, name, "is the Secret that is written for the user's data")
        if (name, entry) in taken:
            yield duplicate(at, name, f"is the Secret of the key {taken[name, entry]} already")
        taken.setdefault((name, entry), key.name)


def doubts(user: PocketIDUser, review: Review) -> Iterator[Finding]:
    """What only the server refuses is told at once (decisions, Admission 4)."""
    email = user.spec.email
    if email is not None and email.value is not None and "@" not in email.value.strip("@"):
        yield f"spec.email.value: {email.value!r} is no mail address: the server will refuse it; write one such as ada@example.org"
    name = user.spec.username.value if user.spec.username is not None else None
    if name is not None and not _USERNAME.fullmatch(name):
        yield f"spec.username.value: Pocket-ID admits letters a to z, digits and `_.@-` between them, not {name!r}: the server will refuse it"
    yield from claims(user.spec.custom_claims)
    for field, value in (
        ("username", user.spec.username),
        ("firstName", user.spec.first_name),
        ("lastName", user.spec.last_name),
        ("displayName", user.spec.display_name),
        ("email", email),
    ):
        yield from one_line(f"spec.{field}.value", value.value if value is not None else None)
    for index, key in enumerate(user.spec.api_keys or ()):
        yield from one_line(f"spec.apiKeys[{index}].name", key.name)
        if key.expires_at is not None and datetime.fromisoformat(key.expires_at) <= review.now:
            yield f"spec.apiKeys[{index}].expiresAt: {key.expires_at} has passed: the server will refuse it; set a later time"


def siblings(user: PocketIDUser, review: Review) -> Iterator[Finding]:
    """Two resources never claim one user; the later one is told."""
    for other in beside(review):
        name, user_id = other["metadata"]["name"], user.spec.user_id
        if user_id is not None and other["spec"].get("userID") == user_id:
            yield duplicate("spec.userID", user_id, f"is claimed by PocketIDUser {name} already")
        mine, theirs = _username(review.object), _username(other)
        if mine is not None and theirs is not None and mine.lower() == theirs.lower():
            path = "spec.username.value" if user.spec.username else "metadata.name"
            yield duplicate(path, mine, f"is claimed by PocketIDUser {name} already (letter case does not count)")


def meets(obj: JsonObject) -> Iterator[str]:
    """The declared id, and the user name without letter case."""
    if user_id := obj["spec"].get("userID"):
        yield f"id/{user_id}"
    if (username := _username(obj)) is not None:
        yield f"name/{username.lower()}"


def _username(obj: JsonObject) -> str | None:
    """The user name, None when a Secret keeps it."""
    spec = obj["spec"]
    if spec.get("username"):
        value = spec["username"].get("value")
        return None if value is None else str(value)
    return None if spec.get("userInfoSecretRef") else str(obj["metadata"]["name"])


CHECKS: Final[tuple[Check[PocketIDUser], ...]] = (secrets, doubts, asked_by(DELETE), selector, siblings)
ADMISSION: Final = admission(KIND, CHECKS, meets)
