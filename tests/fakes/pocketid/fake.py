"""The fake Pocket-ID: its state, its switches, and what a test may do to it behind the API's back.

    fake = Fake(version="2.14.0")
    with running(fake) as url: ...

Enters: switches. Leaves: one object that the handlers share. It reproduces what a server 2.14 answered (records/pocketid) and, by version, what is known of newer
ones. It is a fake: no passkeys, no e-mail, no LDAP, no device flow, no SCIM synchronisation.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tests.fakes.idp.keys import kept

from .clock import SECOND, Clock
from .configuration import DEFAULTS
from .faults import Faults, Journal
from .jose import Refusal, verify
from .limiter import Limiter
from .model import STATIC_OWNER, ApiKey, Client, Secret, Store, User, digest, new_id
from .shown import Shown
from .tokens import Issued

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .exchange import Request
    from .logins import Interaction

API_KEY = "fake-static-api-key-0123456789"
NEWEST = (2, 17)
_VERSION = re.compile(r"v?(\d+)\.(\d+)")


class Fake:
    """One server.

    Args:
        version: what it says it is; what it can do follows, the newest when that cannot be read.
        level: what it can do, when it is not what it says.
        zone_minutes: its time zone.
        limited: the rate limiter is on.
    """

    def __init__(
        self,
        version: str = "2.14.0",
        *,
        level: tuple[int, int] | None = None,
        api_key: str = API_KEY,
        app_url: str = "",
        zone_minutes: int = 0,
        limited: bool = False,
        config: Mapping[str, str] | None = None,
        seed: int = 0,
    ) -> None:
        self.api_key, self.app_url = api_key, app_url
        self.store, self.clock, self.key = Store(), Clock(zone_minutes), kept()
        self.shown = Shown(self.store, self.clock, NEWEST, seed)
        self.faults, self.journal, self.limiter, self.issued = Faults(), Journal(), Limiter(limited), Issued()
        self.config = {**DEFAULTS, "autoCreateOidcClientSecret": "true", **(config or {})}
        self.ui_config_disabled = False
        self.insecure_callbacks = True
        self.logos: dict[str, str] = {}
        """What a download of a URL comes to; see `logos`."""
        self.downloads: list[str] = []
        """URLs that the server was told to download."""
        self.documents: dict[str, dict[str, Any]] = {}
        """Client metadata documents by URL."""
        self.told: dict[str, list[str]] = {}
        """Every secret that was ever sent or told, by client: for proofs that what was retired fails. The store holds hashes only."""
        self.forced_prefixes: deque[str] = deque()
        """How the next generated secrets begin."""
        self.refuse_first = 0
        """Requests with the static key that are still answered 401, as parallel first ones may be."""
        self.interactions: dict[str, Interaction] = {}
        self.pushed: dict[str, Mapping[str, str]] = {}
        self._suffix = new_id()[:6]
        self.upgrade(version, level)

    def upgrade(self, version: str, level: tuple[int, int] | None = None) -> None:
        """Another version in place of this one; rows stay."""
        found = _VERSION.match(version)
        self.version = version
        self.level = level or ((int(found[1]), int(found[2])) if found else NEWEST)
        self.shown.level = self.level

    def config_keys(self) -> tuple[str, ...]:
        """The configuration's keys at this version."""
        return tuple(DEFAULTS) + (("autoCreateOidcClientSecret",) if self.level >= (2, 17) else ())

    # --- who asks

    def identify(self, request: Request) -> tuple[User | None, str]:
        """Who asks, and by what: `static`, `key`, `session`; (None, "") for nobody."""
        key = request.headers.get("x-api-key", "")
        if key and key == self.api_key:
            if self.refuse_first:
                self.refuse_first -= 1
                return None, ""
            return self._static_owner(), "static"
        held = next((item for item in self.store.keys.values() if item.digest == digest(key)), None) if key else None
        if held is not None:
            return self.store.users.get(held.owner), "key"
        return self._by_session(request.bearer)

    def _static_owner(self) -> User:
        """Made at the first use of the key."""
        if STATIC_OWNER not in self.store.users:
            named = {"username": f"static-api-user-{self._suffix}", "firstName": "Static API User", "lastName": ""}
            settings = named | {
                "displayName": "Static API User", "email": None, "locale": None, "isAdmin": True, "disabled": False, "emailVerified": False,
            }  # fmt: skip
            self.store.users[STATIC_OWNER] = User(STATIC_OWNER, settings)
        return self.store.users[STATIC_OWNER]

    def _by_session(self, token: str) -> tuple[User | None, str]:
        try:
            claims = verify(token, [self.key.jwk])
        except Refusal:
            return None, ""
        if claims.get("type") != "session" or claims["exp"] * SECOND <= self.clock.now():
            return None, ""
        return self.store.users.get(claims["sub"]), "session"

    def session_token(self, user: User) -> str:
        """A session of an hour."""
        now = self.clock.now() // SECOND
        return self.key.jwt({
            "sub": user.id, "iss": self.app_url, "aud": [self.app_url], "iat": now, "exp": now + 3600, "jti": new_id(), "amr": ["otp"],
            "type": "session",
        })  # fmt: skip

    # --- behind the API's back

    def place_legacy_secret(self, client: str, value: str) -> str:
        """A secret as the migration from the single column leaves it: no prefix. Its id."""
        secret = Secret(digest(value), "", self.clock.now())
        self.store.clients[client].secrets.append(secret)
        self.told.setdefault(client, []).append(value)
        return secret.id

    def place_cimd_client(self, url: str, name: str, callbacks: list[str], description: str = "") -> None:
        """A client as its first authorization leaves it."""
        plain = {
            "name": name, "description": description, "callbackURLs": callbacks, "logoutCallbackURLs": [], "isPublic": True,
            "pkceEnabled": True, "requiresReauthentication": False, "requiresPushedAuthorizationRequests": False, "skipConsent": False,
            "launchURL": None, "isGroupRestricted": False, "accessTokenDurationMinutes": 60, "refreshTokenDurationMinutes": 43200,
            "backchannelLogoutURL": "", "federatedIdentities": [],
        }  # fmt: skip
        self.store.clients[url] = Client(url, plain, type="cimd")

    def plain_key(self) -> str:
        """A valid API key of a user who is no administrator."""
        user, token = User(new_id(), {**self._static_owner().settings, "username": "plain", "isAdmin": False}), new_id()
        key = ApiKey(user.id, digest(token), "plain", None, "2099-01-01T00:00:00Z", self.clock.now())
        self.store.users[user.id], self.store.keys[key.id] = user, key
        return token

    def authenticates(self, client: str, value: str) -> bool:
        """Whether the value is an active secret of the client, asked without a request."""
        held = self.store.clients.get(client)
        now = self.clock.now()
        return held is not None and any(item.digest == digest(value) and item.active(now) for item in held.secrets)

    def age_secret(self, client: str, id: str, seconds: float) -> None:
        """Make a secret older than it is."""
        held = self.store.clients[client].secrets
        held[:] = [
            replace(item, created=item.created - int(seconds * SECOND)) if item.id == id else item for item in held
        ]
