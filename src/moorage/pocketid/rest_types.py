"""What a Pocket-ID holds, as frozen values.

Enters: nothing; `rest_reading` makes them from answers. Leaves: values for the pure doors. No I/O, and no text of a secret that could be printed: secrets are
`SecretText`, and raw JSON is stripped of them. Times are aware, at most microseconds fine. Source: spec/pocketid.md 4.2 to 4.10.
"""

from __future__ import annotations

import copy
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

STATIC_KEY_OWNER: Final = "00000000-0000-0000-0000-000000000000"
"""Id of the user that owns the server's static API key; it stands in user lists."""
SECRET_CAP: Final = 20
"""Secrets that a client may hold, expired ones included."""
CIMD: Final = "cimd"
"""`client_type` of a client that a metadata document describes."""
_SERVER_OWNED: Final = (
    "id",
    "hasLogo",
    "hasDarkLogo",
    "clientType",
    "pkceSupported",
    "allowedUserGroups",
    "allowedUserGroupsCount",
)


def nfc(text: str) -> str:
    """A name as the server stores it; exact comparison is of this form."""
    return unicodedata.normalize("NFC", text)


def audience(resource: str) -> str:
    """The resource of an API as the server stores it: without trailing slashes."""
    return resource.rstrip("/")


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """A secret as the server lists it: its first four characters, never its value. `prefix` is "" for one that an upgrade carried over."""

    id: str
    prefix: str = field(repr=False)
    created_at: datetime
    expires_at: datetime | None
    is_active: bool


@dataclass(frozen=True, slots=True)
class MadeSecret:
    """A secret just created: the only time its value is seen."""

    secret: ClientSecret
    value: SecretText


@dataclass(frozen=True, slots=True)
class GroupName:
    """A group as it stands inside a client or a user."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Client:
    """An OIDC client. `raw` is the server's own JSON without secrets; `groups` is None where the answer does not tell (lists, the answer to a set of groups).

    `whole`: False where a list kept no more of it than what it is known by, since it was too much.
    """

    id: str
    name: str
    client_type: str
    is_group_restricted: bool
    secrets: tuple[ClientSecret, ...]
    groups: tuple[GroupName, ...] | None
    group_count: int
    has_logo: bool
    has_dark_logo: bool
    pkce_supported: bool
    raw: JsonObject = field(repr=False)
    whole: bool = True

    def sketch(self) -> Client:
        """What it is known by; everything else is to be asked for."""
        return replace(self, secrets=(), groups=None, raw={}, whole=False)

    @property
    def is_public(self) -> bool:
        """It has no secret of its own."""
        return bool(self.raw.get("isPublic"))

    @property
    def federated_identities(self) -> tuple[JsonObject, ...]:
        """Its federated identities, in order, as the server re-encoded them."""
        return tuple(dict(item) for item in (self.raw.get("credentials") or {}).get("federatedIdentities") or ())

    @property
    def group_ids(self) -> frozenset[str] | None:
        """Ids of the groups that may use it, None where the answer does not tell."""
        return None if self.groups is None else frozenset(item.id for item in self.groups)

    def body(self, managed: Mapping[str, Any] | None = None) -> JsonObject:
        """The write that changes nothing but `managed` (members of the write DTO by their JSON names).

        What the server alone owns is left out; members that we do not know go back as they came. Source: decisions, Pocket-ID 2.
        """
        kept = {name: copy.deepcopy(value) for name, value in self.raw.items() if name not in _SERVER_OWNED}
        credentials = kept.get("credentials")
        if isinstance(credentials, dict):
            credentials.pop("secrets", None)
        return kept | dict(managed or {})


@dataclass(frozen=True, slots=True)
class MadeClient:
    """A client just created, and the secret that a newer server makes with it."""

    client: Client
    secret: MadeSecret | None


@dataclass(frozen=True, slots=True)
class Claim:
    """One custom claim."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Group:
    """A user group. `users` and `client_ids` are None in lists, which tell `user_count` only."""

    id: str
    name: str
    friendly_name: str
    claims: tuple[Claim, ...]
    ldap_id: str
    created_at: datetime | None
    user_count: int
    users: frozenset[str] | None
    client_ids: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class User:
    """A user. `raw` is the server's own JSON, for an update that leaves alone what it does not manage."""

    id: str
    username: str
    email: str | None
    email_verified: bool
    first_name: str
    last_name: str
    display_name: str
    is_admin: bool
    disabled: bool
    locale: str | None
    claims: tuple[Claim, ...]
    groups: tuple[GroupName, ...]
    ldap_id: str
    raw: JsonObject = field(repr=False)

    def body(self, managed: Mapping[str, Any] | None = None) -> JsonObject:
        """The write that changes nothing but `managed`; an update of a user is a full replacement."""
        owned = ("id", "customClaims", "userGroups", "ldapId")
        return {name: copy.deepcopy(value) for name, value in self.raw.items() if name not in owned} | dict(
            managed or {}
        )


@dataclass(frozen=True, slots=True)
class Permission:
    """A permission of an API. `id` is "" in what is sent: the server keeps ids by key."""

    key: str
    name: str
    description: str = ""
    id: str = ""
    allowed_for_cimd: bool = False


@dataclass(frozen=True, slots=True)
class Api:
    """An API: an audience and its permissions. `resource` has no trailing slash."""

    id: str
    name: str
    resource: str
    permissions: tuple[Permission, ...] = ()
    allow_cimd: bool = False
    created_at: datetime | None = None

    def permission_ids(self) -> dict[str, str]:
        """Ids by key."""
        return {item.key: item.id for item in self.permissions}


@dataclass(frozen=True, slots=True)
class Access:
    """What a client may do with one API, in each flow."""

    user_delegated: bool = False
    client: bool = False
    user_delegated_permissions: frozenset[str] = frozenset()
    client_permissions: frozenset[str] = frozenset()

    @property
    def grants_anything(self) -> bool:
        """False when the server would not list it."""
        return self.user_delegated or self.client


@dataclass(frozen=True, slots=True)
class Grant:
    """What one client holds on one API: by its own grant, and by the API's switch for metadata-document clients."""

    api: Api
    access: Access
    cimd_granted: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """A client that holds something on an API by a grant of its own. `id` and `name` are the client's."""

    id: str
    name: str
    access: Access


@dataclass(frozen=True, slots=True)
class ScimProvider:
    """Where users of a client are provisioned to. `token` is empty when there is none."""

    id: str
    endpoint: str
    token: SecretText


@dataclass(frozen=True, slots=True)
class ApiKey:
    """An API key of a user; its token is seen once."""

    id: str
    name: str
    expires_at: datetime | None
    description: str = ""


@dataclass(frozen=True, slots=True)
class MadeApiKey:
    """An API key just created."""

    key: ApiKey
    token: SecretText
