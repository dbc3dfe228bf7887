"""The part of the sidecar's configuration that all backends make together: proxy.conf.

Enters: what each backend hands over, header names, the public address, the passphrase. Leaves: text that holds secrets, never printed. What
no backend protects is denied, and nothing that a client claims of itself reaches Keystone. Source: spec/keystone.md 3.4, 7 (S2, S9);
decisions, Keystone 10, 18, 21; cases B16, B17, B21, B22, B26.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from moorage.keystone.backend.federation import FOLDER, NOBODY, REDIRECT_PATH, Base, Part, spellings
from moorage.render import apache

from .conf import trusted_dashboard
from .redirect import redirect_uri

SOCKET: Final = "/run/keystone/keystone.sock"
"""Where uWSGI listens, in a folder that both containers share."""
AUTHORITIES: Final = f"{FOLDER}/metadata/ca-bundle.pem"
"""CA bundles of all providers; certificates of the image's own /etc/ssl/certs stay trusted beside it."""
ABSENT: Final = f"/v3/OS-FEDERATION/identity_providers/{NOBODY}/protocols/mapped/auth"
"""A provider that nobody has. Its path reaches Keystone, whose 404 shows that the database answers: the health check asks there, without a
token."""
_UPSTREAM: Final = "http://localhost/"
_EXCHANGES: Final = "^/+v3/+auth/+OS-FEDERATION/+saml2(/+ecp)?/*$"
"""Where Keystone gives its own assertions, by POST."""
_FEDERATED: Final = (
    "(?i)^/+v3/+(auth/+)?OS-FEDERATION/+(identity_providers/+[^/]+/+protocols/+[^/]+/+(auth|websso)|websso/+[^/]+)/*$"
)
_SESSIONS: Final = {"client-cookie-persistent": "client-cookie:persistent"}
"""Session types that the module calls otherwise (C1)."""
_ALWAYS: Final = frozenset(
    f"{module}-{claim}"
    for module, claims in {
        "OIDC": "ISS SUB AUD AZP EMAIL EMAIL-VERIFIED NAME GIVEN-NAME FAMILY-NAME PREFERRED-USERNAME GROUPS ROLES"
        " ACCESS-TOKEN ACCESS-TOKEN-EXPIRES ID-TOKEN REFRESH-TOKEN",
        "MELLON": "IDP NAME-ID GROUPS USERNAME EMAIL SESSION",
    }.items()
    for claim in claims.split()
)
"""Claims that no client may bring, whoever is attached."""
_ORIGIN: Final = (
    "X-FORWARDED-PROTO",
    "X-FORWARDED-HOST",
    "X-FORWARDED-PORT",
    "X-FORWARDED-PREFIX",
    "X-FORWARDED-SERVER",
)
_FOR: Final = "X-FORWARDED-FOR"
_PATIENCE: Final = "10"
"""Seconds that a provider has for an answer; the module's own 60 are long enough to hold every worker."""


@dataclass(frozen=True, slots=True)
class Assembly:
    """What proxy.conf is made from.

    Args:
        parts: of the backends that are served, by name.
        stripped: headers, spelled with dashes, of every attached backend, also of those that are not served.
        base: the public address, None while it is unusable: then nothing is served.
        dashboards: URLs that may receive a browser.
        passphrase: of session cookies; needed with an OIDC part.
    """

    parts: tuple[Part, ...]
    stripped: frozenset[str]
    base: Base | None
    dashboards: tuple[str, ...] = ()
    passphrase: str = field(default="", repr=False)

    @property
    def oidc(self) -> tuple[Part, ...]:
        """The OIDC parts."""
        return tuple(part for part in self.parts if part.type == "OIDC")


def proxy_conf(given: Assembly) -> str:
    """proxy.conf. Sections follow each other from the general to the particular, since the last one that fits a path decides.

    Raises:
        UnsafeText: a value cannot be written.
    """
    return apache.text(
        (
            apache.PREAMBLE,
            tuple(_module(given)),
            tuple(_strip(given.stripped | _ALWAYS)),
            tuple(_origin(given.base)),
            _hop(),
            apache.section("LocationMatch", _FEDERATED, (apache.directive("Require", "all", "denied"),)),
            apache.section("Location", ABSENT, (apache.directive("Require", "all", "granted"),)),
            # Keystone 30 drops the connection of a GET there (an assertion of its own fails), which people would see as a broken gateway.
            apache.section("LocationMatch", _EXCHANGES, (apache.directive("AllowMethods", "POST", "OPTIONS"),)),
            *((part.fragment,) for part in given.parts),
            redirect_uri(part.remote_id for part in given.oidc) if given.oidc else (),
            *((part.alone,) for part in _alone(given.parts)),
        )
    )


def _module(given: Assembly) -> Iterator[str]:
    """mod_auth_openidc as a whole."""
    if not given.oidc or given.base is None:
        return
    shared = given.oidc[0].shared
    yield apache.exact("OIDCCryptoPassphrase", given.passphrase)
    yield apache.directive("OIDCMetadataDir", f"{FOLDER}/metadata")
    yield apache.directive("OIDCRedirectURI", REDIRECT_PATH)
    yield apache.directive("OIDCClaimPrefix", "OIDC-")
    yield apache.directive("OIDCClaimDelimiter", ";")
    yield apache.directive("OIDCSessionType", _SESSIONS.get(shared["sessionType"], shared["sessionType"]))
    yield apache.directive("OIDCStateInputHeaders", shared["stateInputHeaders"])
    yield apache.directive("OIDCStateMaxNumberOfCookies", "7", "true")
    yield apache.directive("OIDCCookieSameSite", "On")
    yield apache.directive("OIDCCacheEncrypt", "On")
    yield apache.directive("OIDCOAuthTokenIntrospectionInterval", "-1")
    # A provider that keeps silent holds a worker, and there are as many for all of Keystone as httpd-base.conf says.
    yield apache.directive("OIDCHTTPTimeoutLong", _PATIENCE)
    yield apache.directive("OIDCHTTPTimeoutShort", _PATIENCE)
    yield apache.directive("OIDCRedirectURLsAllowed", *_allowed(given.base, given.dashboards))
    if given.base.scheme == "https":
        yield apache.directive("OIDCXForwardedHeaders", "X-Forwarded-Host", "X-Forwarded-Proto")
    if any(part.authorities for part in given.oidc):
        yield apache.directive("OIDCCABundlePath", AUTHORITIES)


def _allowed(base: Base, dashboards: Iterable[str]) -> tuple[str, ...]:
    """Where a browser may be sent: anywhere on the Keystone's own host, and to these very addresses."""
    own = f"^{re.escape(base.url)}/"
    return (own, *(f"^{re.escape(trusted_dashboard(url))}$" for url in dashboards))


def _strip(headers: frozenset[str]) -> Iterator[str]:
    """A WSGI server folds dashes, underscores and case, so each spelling goes; and PAOS, which would start another kind of login."""
    for header in sorted(headers | {"PAOS"}):
        for name in spellings(header):
            yield apache.directive("RequestHeader", "unset", name, "early")


def _origin(base: Base | None) -> Iterator[str]:
    """Where the client came from and by which address: said by the sidecar, from the declared address and the connection (S9)."""
    yield apache.directive("RequestHeader", "unset", "FORWARDED", "early")
    # mod_proxy takes away what the client's Connection header names, and would take what the sidecar says of person and origin.
    yield apache.directive("RequestHeader", "unset", "CONNECTION", "early")
    yield apache.directive("RequestHeader", "unset", "CONNECTION")
    for header in _ORIGIN:
        for name in spellings(header):
            yield apache.directive("RequestHeader", "unset", name, "early")
    for name in spellings(_FOR):
        if name != _FOR:
            yield apache.directive("RequestHeader", "unset", name, "early")
    # mod_auth_openidc may be told to look at what the gateway put here, so it is replaced late only.
    yield apache.directive("RequestHeader", "set", "X-Forwarded-For", "expr=%{REMOTE_ADDR}")
    if base is not None:
        yield apache.directive("RequestHeader", "set", "X-Forwarded-Proto", base.scheme, "early")
    if base is not None and base.scheme == "https":
        yield apache.directive("RequestHeader", "set", "X-Forwarded-Host", base.authority, "early")


def _hop() -> apache.Lines:
    """Everything goes to Keystone through the socket. httpd adds no header of its own: what a hop is told is written above."""
    return (
        apache.directive("ProxyPreserveHost", "On"),
        apache.directive("ProxyAddHeaders", "Off"),
        apache.directive("ProxyPass", "/", f"unix:{SOCKET}|{_UPSTREAM}", "disablereuse=on"),
        apache.directive("ProxyPassReverse", "/", _UPSTREAM),
    )


def _alone(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Those whose protocol nobody else uses: a protocol alone says which provider is meant."""
    used = Counter(part.protocol for part in parts)
    return tuple(part for part in parts if used[part.protocol] == 1)
