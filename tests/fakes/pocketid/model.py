"""What the fake Pocket-ID holds: rows in order of creation, in memory.

Enters: nothing. Leaves: mutable rows. Of a secret only a hash and its first four characters are kept. Times are nanoseconds since 1970.
"""

from __future__ import annotations

import hashlib
import uuid
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

STATIC_OWNER = "00000000-0000-0000-0000-000000000000"


def new_id() -> str:
    """A UUID as the server makes them."""
    return str(uuid.uuid4())


def digest(text: str) -> str:
    """What is kept of a secret, a key, a code."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass
class Secret:
    """A client secret; `prefix` is "" for one that an upgrade carried over."""

    digest: str
    prefix: str
    created: int
    expires: str | None = None
    id: str = field(default_factory=new_id)

    def active(self, now: int) -> bool:
        return self.expires is None or datetime.fromisoformat(self.expires).timestamp() * 1e9 > now


@dataclass
class Client:
    """An OIDC client; `settings` are the members of the write DTO by their JSON names."""

    id: str
    settings: dict[str, Any]
    type: str = "standard"
    secrets: list[Secret] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)
    logos: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    pkce_supported: bool = False
    consents: dict[str, set[str]] = field(default_factory=dict)
    refreshed: int = 0

    @property
    def public(self) -> bool:
        return bool(self.settings["isPublic"])


@dataclass
class Group:
    name: str
    friendly: str
    created: int
    claims: list[tuple[str, str]] = field(default_factory=list)
    users: set[str] = field(default_factory=set)
    ldap_id: str | None = None
    id: str = field(default_factory=new_id)


@dataclass
class User:
    """`settings` are the members of the write DTO by their JSON names."""

    id: str
    settings: dict[str, Any]
    claims: list[tuple[str, str]] = field(default_factory=list)
    ldap_id: str | None = None


@dataclass
class ApiKey:
    owner: str
    digest: str
    name: str
    description: str | None
    expires: str
    created: int
    id: str = field(default_factory=new_id)


@dataclass
class Permission:
    key: str
    name: str
    description: str
    cimd: bool = False
    id: str = field(default_factory=new_id)


@dataclass
class Api:
    name: str
    resource: str
    created: int
    permissions: list[Permission] = field(default_factory=list)
    cimd: bool = False
    id: str = field(default_factory=new_id)


@dataclass
class Grant:
    """What a client holds on an API, by flow: whether at all, and which permissions."""

    user: bool = False
    client: bool = False
    user_permissions: set[str] = field(default_factory=set)
    client_permissions: set[str] = field(default_factory=set)

    def narrow(self, known: set[str]) -> None:
        """Permissions went: who held none but those loses the flow's access with them."""
        for flow in ("user", "client"):
            held: set[str] = getattr(self, f"{flow}_permissions")
            if held and not held & known:
                setattr(self, flow, False)
            held &= known

    @property
    def empty(self) -> bool:
        return not (self.user or self.client)


@dataclass
class Provider:
    endpoint: str
    token: str
    client: str
    created: int
    id: str = field(default_factory=new_id)


@dataclass
class Store:
    """All rows. Deleting one takes with it what hangs on it."""

    clients: dict[str, Client] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    users: dict[str, User] = field(default_factory=dict)
    keys: dict[str, ApiKey] = field(default_factory=dict)
    apis: dict[str, Api] = field(default_factory=dict)
    grants: dict[tuple[str, str], Grant] = field(default_factory=dict)
    providers: dict[str, Provider] = field(default_factory=dict)
    login_codes: dict[str, tuple[str, int]] = field(default_factory=dict)

    def delete_client(self, id: str) -> None:
        del self.clients[id]
        self.grants = {pair: grant for pair, grant in self.grants.items() if pair[1] != id}
        self.providers = {key: item for key, item in self.providers.items() if item.client != id}

    def delete_group(self, id: str) -> None:
        del self.groups[id]
        for client in self.clients.values():
            client.groups.discard(id)

    def delete_user(self, id: str) -> None:
        del self.users[id]
        self.keys = {key: item for key, item in self.keys.items() if item.owner != id}
        for group in self.groups.values():
            group.users.discard(id)

    def delete_api(self, id: str) -> None:
        del self.apis[id]
        self.grants = {pair: grant for pair, grant in self.grants.items() if pair[0] != id}

    def groups_of(self, user: str) -> list[Group]:
        return [group for group in self.groups.values() if user in group.users]

    def allowed(self, client: Client, user: str) -> bool:
        """Whether that user may use the client."""
        return not client.settings["isGroupRestricted"] or any(
            group.id in client.groups for group in self.groups_of(user)
        )
