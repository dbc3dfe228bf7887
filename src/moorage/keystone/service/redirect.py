"""What may be asked of the OIDC redirect URI: answers of attached providers, logins at them, and the way out.

Enters: issuers of the providers that are served. Leaves: lines of httpd that decide before mod_auth_openidc looks at a request. Everybody can
reach this path, and the module alone would fetch what a stranger names there (discovery, WebFinger, registration, request objects) and
give out what belongs to sessions. Source: spec/keystone.md 7 (S6); mod_auth_openidc 2.4.12, `oidc_handle_redirect_uri_request`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import quote

from moorage.keystone.backend.federation import REDIRECT_PATH
from moorage.render import apache

_COMMANDS: Final = (
    "disc_user", "auth_request_params", "scopes", "login_hint", "jwks", "session", "refresh", "request_uri", "remove_at_cache",
    "revoke_session", "info", "dpop", "metrics", "status",
)  # fmt: skip
"""Parameters by which the module does more than a login needs; `logout` stays, and its target is bounded by OIDCRedirectURLsAllowed."""
_ISSUER: Final = "iss"
_PLAIN: Final = frozenset("-_~")
"""What no encoder changes, besides letters and digits."""
_LITERAL: Final = frozenset(":/?@!$'()*,;=")
"""What encoders leave as it is, or do not."""


def redirect_uri(issuers: Iterable[str]) -> apache.Lines:
    """The section that protects it.

    Raises:
        UnsafeText: an issuer cannot be written.
    """
    known = (_query("=~", f"{_named(_ISSUER)}{_spelled(issuer)}(?:&|$)") for issuer in issuers)
    lines = (
        apache.directive("AuthType", "openid-connect"),
        # Another spelling of the path is none of the module's, which would show everybody the list of providers.
        apache.directive("OIDCUnAuthAction", "401"),
        "<RequireAll>",
        "    " + _query("!~", _named("|".join(_COMMANDS))),
        "    " + _query("!~", f"{_named(_ISSUER)}.*&{_ISSUER}="),
        "    <RequireAny>",
        *(f"        {line}" for line in (_query("!~", _named(_ISSUER)), *known)),
        "    </RequireAny>",
        "    " + apache.directive("Require", "valid-user"),
        "</RequireAll>",
    )
    return apache.section("Location", REDIRECT_PATH, lines)


def weight(issuer: str) -> int:
    """Bytes that one more issuer adds."""
    return 64 + len(_spelled(issuer))


def _query(operator: str, pattern: str) -> str:
    return apache.directive("Require", "expr", f"%{{QUERY_STRING}} {operator} m#{pattern}#")


def _named(name: str) -> str:
    """A parameter of the query as the module finds it: names are compared as they were sent."""
    return f"(?:^|&)(?:{name})="


def _spelled(issuer: str) -> str:
    """The issuer in every encoding that a provider or browser uses; there is no backslash, `${` or quote in it."""
    return "".join(_character(character) for character in issuer)


def _character(character: str) -> str:
    if character in _PLAIN or (character.isascii() and character.isalnum()):
        return character
    if character == ".":
        return "[.]"
    hidden = f"(?i:{quote(character, safe='')})"
    return f"(?:[{character}]|{hidden})" if character in _LITERAL else hidden
