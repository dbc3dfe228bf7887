"""The snapshot of one pass over a user, and the plans that change the world.

Enters: what `observe.py` read. Leaves: frozen values that decide and report look at; login codes and tokens as `SecretText`.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, TypeAlias

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText
from moorage.pocketid.powers import birthmark, first_name
from moorage.pocketid.rest_types import Claim, MadeApiKey, User, nfc
from moorage.pocketid.sibling import SharedPlan, Sibling

from .keys import Shelf, encoded, secret
from .types import DATA_SUFFIX, PocketIDUser

PLACEHOLDER: Final = "placeholder.local"
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)
_IDS: Final = uuid.UUID("6f1d1c5e-5d0b-4c1e-9d86-6a0f9b7b8a11")
"""Space of the ids that are made from the uid of a resource, which nobody can choose or foresee: a lost answer's user is known again."""


@dataclass(frozen=True, slots=True)
class Values:
    """What is declared of a person; None for what is not."""

    username: str
    first_name: str | None = None
    last_name: str | None = None
    email: str | None = None
    display_name: str | None = None


@dataclass(frozen=True, slots=True)
class Create:
    """Create the user with this id, or adopt the one that has the name or address."""

    id: str
    reason: str = "APIClientError"


@dataclass(frozen=True, slots=True)
class Update:
    """Bring these members to their declared values."""

    id: str
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SetClaims:
    """Exactly these claims."""

    id: str
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class MakeLink:
    """Have a login code made that is good until then."""

    id: str
    until: str


@dataclass(frozen=True, slots=True)
class WriteData:
    """Write the Secret with what the user is."""

    with_link: bool


@dataclass(frozen=True, slots=True)
class MakeKey:
    """Have an API key made."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class WriteKeys:
    """Write a Secret with keys, or delete it when none is left. `names` is what changes, so that each write is its own."""

    secret: str
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DropKey:
    """Delete an API key at the server."""

    user: str
    id: str


@dataclass(frozen=True, slots=True)
class Delete:
    """Delete the user at the server."""

    id: str


Plan: TypeAlias = (
    SharedPlan | Create | Update | SetClaims | MakeLink | WriteData | MakeKey | WriteKeys | DropKey | Delete
)


@dataclass(frozen=True)
class Seen(Sibling[PocketIDUser, User]):
    """One pass.

    Args:
        values: what is declared of the person; None: `fault` says which Secret is missing.
        data: the Secret with what the user is; `foreign` names Secrets that are to be written and belong to others.
        shelves: Secrets with keys, declared and held, by name.
        link: a login code that was made in this pass.
        made: keys that were made in this pass, by name; `dropped`: ids that were deleted.
    """

    now: datetime = _BEGINNING
    values: Values | None = None
    fault: str = ""
    data: JsonObject | None = field(default=None, repr=False)
    foreign: tuple[str, ...] = ()
    shelves: Mapping[str, Shelf] = field(default_factory=dict)
    link: SecretText | None = None
    made: Mapping[str, MadeApiKey] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    @cached_property
    def wanted_id(self) -> str:
        """The id that a user which we create gets."""
        return self.resource.spec.user_id or str(uuid.uuid5(_IDS, self.resource.metadata.uid))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """The claims, in the order of their keys."""
        declared = self.resource.spec.custom_claims or ()
        return tuple(sorted((Claim(item.key, item.value) for item in declared), key=lambda item: item.key))

    @cached_property
    def managed(self) -> dict[str, Any]:
        """Members of the write that are declared, as the server keeps them; what is not declared stays as it is."""
        values, spec = self.values, self.resource.spec
        if values is None:
            return {}
        declared: dict[str, Any] = {
            "username": nfc(values.username), "email": values.email, "firstName": values.first_name, "lastName": values.last_name,
            "displayName": values.display_name or _joined(values), "locale": spec.locale,
        }  # fmt: skip
        kept = {name: nfc(value) for name, value in declared.items() if value is not None}
        if self.found is not None and self.found.display_name == birthmark(self):
            kept.setdefault("displayName", kept["username"])
        return {**kept, "isAdmin": spec.admin, "disabled": spec.disabled}

    @cached_property
    def fresh_body(self) -> dict[str, Any]:
        """The write that creates the user."""
        name = self.managed["username"]
        blank = {"firstName": "", "lastName": "", "displayName": name, "email": f"{name}@{PLACEHOLDER}"}
        body = {**blank, "emailVerified": False, **self.managed, "id": self.wanted_id}
        declared = self.resource.spec.user_id is not None
        return body | ({"displayName": first_name(self, body["displayName"])} if declared else {})

    @property
    def link_until(self) -> datetime | None:
        """When the login link ends that is to be there, or that is on its way; None for no link."""
        stored = self.resource.status.one_time_login_expires_at
        end = datetime.fromisoformat(stored) if stored else None
        return end if end is not None and end > self.now else None

    @property
    def stored_link(self) -> str:
        """The end of the link that the Secret holds, base64 as on the wire; "" for none."""
        return str(((self.data or {}).get("data") or {}).get("oneTimeLoginExpiresAt", ""))

    def wanted_data(self) -> JsonObject:
        """The Secret with what the user is; a link that is good yet stays in it, or comes into it."""
        user, end = self.found, self.link_until
        assert user is not None
        plain = [
            ("userID", user.id), ("username", user.username), ("email", user.email or ""), ("firstName", user.first_name),
            ("lastName", user.last_name), ("displayName", user.display_name),
        ]  # fmt: skip
        until = "" if end is None else end.strftime("%Y-%m-%dT%H:%M:%SZ")
        data = encoded(plain)
        if until and self.link is not None:
            code = self.link.reveal()
            url = f"{self.bond.issuer}/lc/{code}"
            data |= encoded([("oneTimeLoginToken", code), ("oneTimeLoginURL", url), ("oneTimeLoginExpiresAt", until)])
        elif until and self.stored_link in encoded([("x", until)]).values():
            stored = (self.data or {}).get("data") or {}
            data |= {name: value for name, value in stored.items() if name.startswith("oneTimeLogin")}
        return secret(self.resource, f"{self.resource.metadata.name}{DATA_SUFFIX}", data, {})


def _joined(values: Values) -> str | None:
    """The name that people see, when only its parts are declared."""
    return " ".join(filter(None, (values.first_name, values.last_name))) or None
