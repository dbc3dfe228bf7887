"""The REST client of a Pocket-ID: one method an operation.

    async with Sessions() as http:
        pocketid = PocketID(http.calls, Server(url, key))
        clients = await pocketid.list_oidc_clients()

Enters: calls, a server and its API key. Leaves: frozen values of `rest_types`, or a typed error of `rest_errors`. It decides nothing and remembers nothing
but its counts and the server's clock. Source: spec/pocketid.md 4, 6.1.
"""

from __future__ import annotations

from .rest_apis import Apis
from .rest_clients import Clients, Side
from .rest_errors import (
    AlreadyExists,
    FieldFault,
    Forbidden,
    LogoRefused,
    Nonsense,
    NotFound,
    PocketIDError,
    RateLimited,
    Refused,
    ServerFailed,
    Unauthorized,
    Unreachable,
)
from .rest_groups import Groups
from .rest_reading import object_of
from .rest_requests import Call, Observer, Result, Server
from .rest_types import (
    CIMD,
    SECRET_CAP,
    STATIC_KEY_OWNER,
    Access,
    Api,
    ApiKey,
    Claim,
    Client,
    ClientSecret,
    Grant,
    Group,
    GroupName,
    MadeApiKey,
    MadeClient,
    MadeSecret,
    Permission,
    ScimProvider,
    User,
    audience,
    nfc,
)
from .rest_users import Users
from .rest_version import Feature, Support, Version, dropped

__all__ = [
    "CIMD", "SECRET_CAP", "STATIC_KEY_OWNER", "Access", "AlreadyExists", "Api", "ApiKey", "Claim", "Client",
    "ClientSecret", "Feature", "FieldFault", "Forbidden", "Grant", "Group", "GroupName", "LogoRefused", "MadeApiKey",
    "MadeClient", "MadeSecret", "Nonsense", "NotFound", "Observer", "Permission", "PocketID", "PocketIDError",
    "RateLimited", "Refused", "Result", "ScimProvider", "Server", "ServerFailed", "Side", "Support", "Unauthorized",
    "Unreachable", "User", "Version", "audience", "dropped", "nfc",
]  # fmt: skip


class PocketID(Clients, Apis, Groups, Users):
    """One Pocket-ID, seen by the owner of an API key."""

    async def get_current_version(self) -> Version:
        """Which version the server says it is; it needs a valid key, so it is also the cheapest look whether the key works."""
        answer = await self.ask(Call("get_current_version", "GET", "/api/version/current"))
        return Version.of(object_of("version", answer, "currentVersion")["currentVersion"])
