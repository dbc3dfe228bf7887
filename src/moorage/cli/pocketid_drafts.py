"""The words of an export, and the specs of users, groups and APIs: what is there, in the words of a manifest.

Enters: frozen values of the REST client. Leaves: a Draft, or the reason why there is none. Pure. Defaults are left out. Users and groups of a directory are
not drafted: whatever changes there would be a difference here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from moorage.core.meta import JsonObject
from moorage.pocketid.rest import Api, Claim, Group, Permission, User
from moorage.pocketid.user.types import KIND as USER
from moorage.pocketid.user.types import UUID

Refs: TypeAlias = Mapping[tuple[str, str], JsonObject]
"""(kind, id at the server) -> the reference to its resource, exported or there already."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A key of a Secret that a manifest names and that a person makes."""

    secret: str
    key: str
    why: str

    def __str__(self) -> str:
        return f"Secret {self.secret}, key {self.key}: {self.why}"


@dataclass(frozen=True, slots=True)
class Draft:
    """A spec, and Secrets that it names."""

    spec: JsonObject
    needed: tuple[Needed, ...] = ()


@dataclass(frozen=True, slots=True)
class Undeclarable:
    """Why no manifest can say what is there, and what to do about it."""

    why: str


@dataclass(frozen=True, slots=True)
class Owned:
    """Somebody declares it already: a resource, or the directory."""

    owner: str


Drafted: TypeAlias = Draft | Undeclarable | Owned
DIRECTORY: Final = Owned("the directory (LDAP)")


def present(**members: Any) -> JsonObject:
    """The members that say something: no default, nothing empty."""
    return {name: value for name, value in members.items() if value not in (None, "", [], {}, False)}


def user_draft(user: User, name: str) -> Drafted:
    """A user with everything but API keys, which only their owners see."""
    if user.ldap_id:
        return DIRECTORY
    joined = " ".join(filter(None, (user.first_name, user.last_name)))
    if joined and not user.display_name:
        return Undeclarable(
            "has a first or last name but no display name, so that one would be made; give it one first"
        )
    spec = present(
        userID=user.id if re.fullmatch(UUID, user.id) else None,
        username=_value(user.username, name),
        firstName=_value(user.first_name),
        lastName=_value(user.last_name),
        displayName=_value(user.display_name, joined),
        email=_value(user.email),
        admin=user.is_admin,
        disabled=user.disabled,
        locale=user.locale,
        customClaims=_claims(user.claims),
    )
    return Draft(spec)


def _value(text: str | None, default: str = "") -> JsonObject | None:
    return None if not text or text == default else {"value": text}


def group_draft(group: Group, name: str, users: Mapping[str, User], refs: Refs) -> Drafted:
    """A group with its members: by their resources where there are any, else by name."""
    if group.ldap_id:
        return DIRECTORY
    members = sorted(group.users or ())
    spec = present(
        name=None if group.name == name else group.name,
        friendlyName=None if group.friendly_name == group.name else group.friendly_name,
        customClaims=_claims(group.claims),
        users=present(
            userRefs=_sorted(refs[USER.kind, id] for id in members if (USER.kind, id) in refs),
            usernames=sorted(users[id].username for id in members if (USER.kind, id) not in refs and id in users),
        ),
    )
    return Draft({**spec, "deletionPolicy": "Retain"})


def api_draft(api: Api, name: str) -> Draft:
    """An API with its permissions; the switch for metadata-document clients is said even where it is off."""
    spec = present(
        resource=api.resource,
        name=None if api.name == name else api.name,
        permissions=[_permission(item) for item in sorted(api.permissions, key=lambda item: item.key)],
    )
    return Draft({**spec, "cimdAccess": api.allow_cimd, "deletionPolicy": "Retain"})


def _permission(item: Permission) -> JsonObject:
    return present(key=item.key, name=item.name, description=item.description, cimdAccess=item.allowed_for_cimd)


def _claims(claims: Iterable[Claim]) -> list[JsonObject]:
    return [{"key": item.key, "value": item.value} for item in sorted(claims, key=lambda item: item.key)]


def _sorted(refs: Iterable[JsonObject]) -> list[JsonObject]:
    return sorted(refs, key=lambda ref: (ref.get("namespace", ""), ref["name"]))
