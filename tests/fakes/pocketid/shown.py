"""Rows as the API shows them.

Enters: rows, the store, the clock. Leaves: JSON objects with the server's own member names. Groups, members and permissions come in no stable order, as they do
from the server. Source: spec/pocketid.md 4.2 to 4.9.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

from .clock import Clock
from .model import Api, Client, Grant, Group, Permission, Provider, Secret, Store, User

WRITE = (
    "callbackURLs", "logoutCallbackURLs", "isPublic", "pkceEnabled", "requiresPushedAuthorizationRequests", "skipConsent",
)  # fmt: skip


class Shown:
    """Everything that an answer can hold. `level` is the server's version as numbers: newer ones show more."""

    def __init__(self, store: Store, clock: Clock, level: tuple[int, int], seed: int = 0) -> None:
        self.store, self.clock, self.level = store, clock, level
        self._random = random.Random(seed)

    def shuffled(self, items: Iterable[Any]) -> list[Any]:
        listed = list(items)
        self._random.shuffle(listed)
        return listed

    # --- clients

    def meta(self, client: Client) -> dict[str, Any]:
        """What anybody may see of a client."""
        settings = client.settings
        return {
            "id": client.id, "name": settings["name"], "description": settings["description"],
            "hasLogo": "light" in client.logos, "hasDarkLogo": "dark" in client.logos, "launchURL": settings["launchURL"],
            "requiresReauthentication": settings["requiresReauthentication"], "clientType": client.type,
        }  # fmt: skip

    def _client(self, client: Client) -> dict[str, Any]:
        settings = client.settings
        whole = self.meta(client) | {name: settings[name] for name in WRITE}
        if self.level >= (2, 17):
            whole["backchannelLogoutURL"] = settings["backchannelLogoutURL"]
        identities = [self._identity(item) for item in settings["federatedIdentities"]]
        credentials = ({"federatedIdentities": identities} if identities else {}) | {"secrets": self.secrets(client)}
        whole |= {"credentials": credentials, "isGroupRestricted": settings["isGroupRestricted"]}
        if client.pkce_supported:
            whole["pkceSupported"] = True
        return whole | {
            "accessTokenDurationMinutes": settings["accessTokenDurationMinutes"],
            "refreshTokenDurationMinutes": settings["refreshTokenDurationMinutes"],
        }

    def client(self, client: Client, groups_fresh: bool = False) -> dict[str, Any]:
        """With its groups; in the answer to a write their times are not their own."""
        moment = self.clock.fresh(self.clock.now()) if groups_fresh else ""
        groups = [self.group_inside(self.store.groups[id], moment) for id in self.shuffled(client.groups)]
        return self._client(client) | {"allowedUserGroups": groups}

    def client_without_groups(self, client: Client) -> dict[str, Any]:
        return self._client(client)

    def client_of_list(self, client: Client) -> dict[str, Any]:
        return self._client(client) | {"allowedUserGroupsCount": len(client.groups)}

    def _identity(self, item: dict[str, Any]) -> dict[str, Any]:
        named = {name: item[name] for name in ("subject", "audience", "jwks") if item[name]}
        keys = {"publicKeys": item["publicKeys"]} if self.level >= (2, 15) and item["publicKeys"] else {}
        return {"issuer": item["issuer"]} | named | keys | {"replayProtection": item["replayProtection"]}

    def secrets(self, client: Client) -> list[dict[str, Any]]:
        return [self.secret(item) for item in client.secrets]

    def secret(self, item: Secret) -> dict[str, Any]:
        """One that an upgrade carried over was read back, so it has no fraction."""
        created = self.clock.fresh(item.created) if item.prefix else self.clock.stored(item.created)
        active = item.active(self.clock.now())
        return {
            "id": item.id,
            "prefix": item.prefix,
            "createdAt": created,
            "expiresAt": item.expires,
            "isActive": active,
        }

    # --- groups and users

    def group_inside(self, group: Group, moment: str = "") -> dict[str, Any]:
        """Inside a client or a user: the count is always 0, claims are left out."""
        return {
            "id": group.id, "friendlyName": group.friendly, "name": group.name, "customClaims": [], "userCount": 0,
            "ldapId": group.ldap_id, "createdAt": moment or self.clock.stored(group.created),
        }  # fmt: skip

    def group_of_list(self, group: Group) -> dict[str, Any]:
        return self.group_inside(group) | {"customClaims": claims(group.claims), "userCount": len(group.users)}

    def group(self, group: Group, fresh: bool = False) -> dict[str, Any]:
        users = [self.user(self.store.users[id], groups=False) for id in self.shuffled(group.users)]
        clients = [self.meta(client) for client in self.store.clients.values() if group.id in client.groups]
        created = self.clock.fresh(group.created) if fresh else self.clock.stored(group.created)
        return {
            "id": group.id, "friendlyName": group.friendly, "name": group.name, "customClaims": claims(group.claims),
            "ldapId": group.ldap_id, "createdAt": created, "users": users, "allowedOidcClients": clients,
        }  # fmt: skip

    def user(self, user: User, groups: bool = True, moment: str = "") -> dict[str, Any]:
        inside = [self.group_inside(group, moment) for group in self.store.groups_of(user.id)] if groups else []
        settings = user.settings
        named = ("username", "email", "emailVerified", "firstName", "lastName", "displayName", "isAdmin", "locale")
        return {"id": user.id} | {name: settings[name] for name in named} | {
            "customClaims": claims(user.claims) if groups else [], "userGroups": self.shuffled(inside), "ldapId": user.ldap_id,
            "disabled": settings["disabled"],
        }  # fmt: skip

    # --- APIs and SCIM

    def api(self, api: Api, fresh: bool = False) -> dict[str, Any]:
        created = self.clock.fresh(api.created) if fresh else self.clock.stored(api.created)
        return {
            "id": api.id, "name": api.name, "resource": api.resource, "createdAt": created,
            "permissions": [self._permission(item) for item in api.permissions], "allowCimdClients": api.cimd,
        }  # fmt: skip

    def _permission(self, item: Permission) -> dict[str, Any]:
        told = {"description": item.description} if item.description else {}
        return {"id": item.id, "key": item.key, "name": item.name} | told | {"allowedForCimdClients": item.cimd}

    def access(self, grant: Grant) -> dict[str, Any]:
        return {
            "userDelegatedAccess": grant.user, "clientAccess": grant.client,
            "userDelegatedPermissionIds": self.shuffled(grant.user_permissions),
            "clientPermissionIds": self.shuffled(grant.client_permissions),
        }  # fmt: skip

    def cimd_access(self, api: Api, client: Client) -> dict[str, Any]:
        """What the API's switch gives the client."""
        given = api.cimd and client.type == "cimd"
        ids = [item.id for item in api.permissions if item.cimd] if given else []
        return {"cimdGrantedAccess": given, "cimdGrantedPermissionIds": ids}

    def provider(self, provider: Provider, fresh: bool = False) -> dict[str, Any]:
        shell = {
            "id": "", "name": "", "description": "", "hasLogo": False, "hasDarkLogo": False, "launchURL": None,
            "requiresReauthentication": False, "clientType": "",
        }  # fmt: skip
        created = self.clock.fresh(provider.created) if fresh else self.clock.stored(provider.created)
        return {
            "id": provider.id, "endpoint": provider.endpoint, "token": provider.token, "lastSyncedAt": None,
            "oidcClient": shell, "createdAt": created,
        }  # fmt: skip


def claims(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    """Custom claims."""
    return [{"key": key, "value": value} for key, value in pairs]
