"""Which path meets which handler, and who may ask.

Enters: a method and a decoded path. Leaves: a route and the path's parameters. A client's id may come as `~` and the base64url of an URL. Source: spec/pocketid.md 4.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import Enum

from . import apis, clients, configuration, groups, logins, logos, scim, secrets, tokens, users
from .exchange import Answer, Call
from .jose import unb64

Handler = Callable[[Call], Answer | Awaitable[Answer]]
_OIDC, _GROUP, _USER, _API = "/api/oidc/clients", "/api/user-groups", "/api/users", "/api/apis"


class Who(Enum):
    """Who may ask."""

    ANYBODY = "anybody"
    USER = "user"
    SESSION = "session"
    ADMIN = "admin"


@dataclass(frozen=True)
class Route:
    """One row of the table."""

    method: str
    template: str
    handler: Handler
    who: Who = Who.ADMIN

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.template))


TABLE = [
    Route("GET", "/healthz", configuration.health, Who.ANYBODY),
    Route("GET", "/.well-known/openid-configuration", configuration.discovery, Who.ANYBODY),
    Route("GET", "/.well-known/oauth-authorization-server", configuration.discovery, Who.ANYBODY),
    Route("GET", "/.well-known/jwks.json", configuration.jwks, Who.ANYBODY),
    Route("GET", "/api/version/current", configuration.version, Who.USER),
    Route("GET", "/api/application-configuration", configuration.read_public, Who.ANYBODY),
    Route("GET", "/api/application-configuration/all", configuration.read_all),
    Route("PUT", "/api/application-configuration", configuration.replace),
    Route("GET", _OIDC, clients.list_all),
    Route("POST", _OIDC, clients.create),
    Route("GET", f"{_OIDC}/{{id}}", clients.read),
    Route("PUT", f"{_OIDC}/{{id}}", clients.replace),
    Route("DELETE", f"{_OIDC}/{{id}}", clients.delete),
    Route("GET", f"{_OIDC}/{{id}}/meta", clients.read_meta, Who.ANYBODY),
    Route("POST", f"{_OIDC}/{{id}}/refresh", clients.refresh),
    Route("PUT", f"{_OIDC}/{{id}}/allowed-user-groups", clients.set_groups),
    Route("GET", f"{_OIDC}/{{id}}/secrets", secrets.read_all),
    Route("POST", f"{_OIDC}/{{id}}/secrets", secrets.create),
    Route("DELETE", f"{_OIDC}/{{id}}/secrets/{{sid}}", secrets.delete),
    Route("GET", f"{_OIDC}/{{id}}/logo", logos.read, Who.ANYBODY),
    Route("POST", f"{_OIDC}/{{id}}/logo", logos.upload),
    Route("DELETE", f"{_OIDC}/{{id}}/logo", logos.delete),
    Route("GET", f"{_OIDC}/{{id}}/preview/{{u}}", logins.preview),
    Route("GET", f"{_OIDC}/{{id}}/scim-service-provider", scim.read_of_client),
    Route("POST", "/api/scim/service-provider", scim.create),
    Route("PUT", "/api/scim/service-provider/{id}", scim.replace),
    Route("DELETE", "/api/scim/service-provider/{id}", scim.delete),
    Route("POST", "/api/scim/service-provider/{id}/sync", scim.sync),
    Route("GET", _GROUP, groups.list_all),
    Route("POST", _GROUP, groups.create),
    Route("GET", f"{_GROUP}/{{id}}", groups.read),
    Route("PUT", f"{_GROUP}/{{id}}", groups.replace),
    Route("DELETE", f"{_GROUP}/{{id}}", groups.delete),
    Route("PUT", f"{_GROUP}/{{id}}/users", groups.set_users),
    Route("PUT", f"{_GROUP}/{{id}}/allowed-oidc-clients", groups.set_clients),
    Route("PUT", "/api/custom-claims/user-group/{id}", groups.set_claims),
    Route("PUT", "/api/custom-claims/user/{id}", users.set_claims),
    Route("GET", _USER, users.list_all),
    Route("POST", _USER, users.create),
    Route("GET", f"{_USER}/me", users.read_me, Who.USER),
    Route("GET", f"{_USER}/{{id}}", users.read),
    Route("PUT", f"{_USER}/{{id}}", users.replace),
    Route("DELETE", f"{_USER}/{{id}}", users.delete),
    Route("PUT", f"{_USER}/{{id}}/user-groups", users.set_groups),
    Route("POST", f"{_USER}/{{id}}/one-time-access-token", users.make_login_code),
    Route("POST", "/api/one-time-access-token/{token}", users.exchange_login_code, Who.ANYBODY),
    Route("POST", "/api/signup/setup", users.set_up, Who.ANYBODY),
    Route("GET", "/api/api-keys", users.list_keys, Who.USER),
    Route("POST", "/api/api-keys", users.make_key, Who.SESSION),
    Route("DELETE", "/api/api-keys/{id}", users.delete_key, Who.SESSION),
    Route("GET", _API, apis.list_all),
    Route("POST", _API, apis.create),
    Route("GET", f"{_API}/{{id}}", apis.read),
    Route("PUT", f"{_API}/{{id}}", apis.replace),
    Route("DELETE", f"{_API}/{{id}}", apis.delete),
    Route("PUT", f"{_API}/{{id}}/permissions", apis.set_permissions),
    Route("PUT", f"{_API}/{{id}}/cimd-access", apis.set_cimd_access),
    Route("GET", f"{_API}/{{id}}/clients", apis.list_clients),
    Route("PUT", f"{_API}/{{id}}/clients/{{cid}}", apis.set_grant),
    Route("DELETE", f"{_API}/{{id}}/clients/{{cid}}", apis.remove_grant),
    Route("GET", "/api/api-access/{cid}/apis", apis.list_grants),
    Route("GET", "/authorize", logins.authorize, Who.ANYBODY),
    Route("GET", "/api/oidc/interactions/{iid}", logins.read_interaction, Who.ANYBODY),
    Route("POST", "/api/oidc/interactions/{iid}/complete", logins.complete_interaction, Who.SESSION),
    Route("POST", "/api/oidc/token", tokens.token, Who.ANYBODY),
    Route("POST", "/api/oidc/par", logins.push, Who.ANYBODY),
    Route("POST", "/api/oidc/introspect", tokens.introspect, Who.ANYBODY),
    Route("GET", "/api/oidc/userinfo", tokens.userinfo, Who.ANYBODY),
    Route("POST", "/api/oidc/userinfo", tokens.userinfo, Who.ANYBODY),
    Route("GET", "/api/oidc/end-session", logins.end_session, Who.ANYBODY),
]
_COMPILED = [(route, route.pattern) for route in TABLE]


def route_of(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The route; HEAD goes where GET goes."""
    wanted = "GET" if method == "HEAD" else method
    for route, pattern in _COMPILED:
        if route.method == wanted and (found := pattern.fullmatch(path)):
            return route, {name: _id(value) for name, value in found.groupdict().items()}
    return None


def _id(text: str) -> str:
    """`~` and unpadded base64url of an URL, or the id as it is."""
    if not text.startswith("~"):
        return text
    try:
        return unb64(text[1:]).decode() if re.fullmatch(r"[A-Za-z0-9_-]+", text[1:]) else text
    except ValueError:
        return text
