"""The OpenID Connect half: discovery, authorization code flow, password grant, introspection, user info, logout.

Enters: a realm, its issuer URL, a request. Leaves: an answer. Sources: OpenID Connect Core 1.0, Discovery 1.0, RFC 6749, RFC 7662.
"""

from __future__ import annotations

import base64
import json
import secrets
from typing import Any

from tests.fakes.exchange import Answer, Request, login_page, redirect
from tests.fakes.idp.model import Client, Realm, User, now

KEEP = ("client_id", "redirect_uri", "response_type", "scope", "state", "nonce")


def discovery(issuer: str) -> dict[str, Any]:
    """The provider's metadata."""
    return {
        "issuer": issuer,
        "authorization_endpoint": f"{issuer}/authorize",
        "token_endpoint": f"{issuer}/token",
        "jwks_uri": f"{issuer}/keys",
        "userinfo_endpoint": f"{issuer}/userinfo",
        "introspection_endpoint": f"{issuer}/introspect",
        "end_session_endpoint": f"{issuer}/logout",
        "registration_endpoint": f"{issuer}/register",
        "response_types_supported": ["code"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["RS256"],
    }


def keys(realm: Realm) -> Answer:
    """The JSON Web Key Set."""
    return Answer(200, {"keys": [realm.key.jwk]})


def authorize(realm: Realm, request: Request) -> Answer:
    """The login form, and what follows when it comes back filled in."""
    asked = {**request.query, **request.form}
    client = realm.client(asked.get("client_id", ""))
    if client is None or asked.get("redirect_uri") not in client.redirect_uris:
        return Answer(400, "unknown client, or a redirect URI that is not registered")
    keep = {name: asked[name] for name in KEEP if name in asked}
    if "username" not in request.form:
        return login_page(realm.name, keep)
    user = realm.user(request.form["username"], request.form.get("password", ""))
    if user is None:
        return login_page(realm.name, keep, "Invalid user name or password.")
    code = secrets.token_urlsafe(16)
    realm.codes[code] = {"user": user, "client": client, "keep": keep}
    return redirect(keep["redirect_uri"], code=code, state=keep.get("state", ""))


def token(realm: Realm, issuer: str, request: Request) -> Answer:
    """Tokens for a code, or for a password."""
    client = realm.client(*request.credentials)
    if client is None:
        return Answer(401, {"error": "invalid_client"})
    if request.form.get("grant_type") == "password":
        user = realm.user(request.form.get("username", ""), request.form.get("password", ""))
        return _granted(realm, issuer, client, user, {}) if user else Answer(400, {"error": "invalid_grant"})
    code = realm.codes.pop(request.form.get("code", ""), None)
    if code is None or code["client"] != client or code["keep"]["redirect_uri"] != request.form.get("redirect_uri"):
        return Answer(400, {"error": "invalid_grant"})
    return _granted(realm, issuer, client, code["user"], code["keep"])


def _granted(realm: Realm, issuer: str, client: Client, user: User, keep: dict[str, str]) -> Answer:
    access = access_token(realm, issuer, client, user)
    body = {"access_token": access, "token_type": "Bearer", "expires_in": int(realm.lifetime)}
    claims = {**_times(realm, issuer), **user.claims, "aud": client.id, "azp": client.id}
    if "nonce" in keep:
        claims["nonce"] = keep["nonce"]
    return Answer(200, {**body, "id_token": realm.key.jwt(claims)})


def _times(realm: Realm, issuer: str) -> dict[str, Any]:
    return {"iss": issuer, "iat": now(), "auth_time": now(), "exp": now() + int(realm.lifetime)}


def access_token(realm: Realm, issuer: str, client: Client, user: User) -> str:
    """A bearer token of a person by way of a client."""
    claims = {**_times(realm, issuer), **user.claims, "aud": [client.id, *client.audience], "azp": client.id}
    return realm.key.jwt({**claims, "jti": secrets.token_hex(8), "typ": "Bearer", "scope": "openid email profile"})


def _claims(realm: Realm, text: str) -> dict[str, Any] | None:
    """The claims of a token of ours that still counts."""
    try:
        head, body, _ = text.split(".")
        claims: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=="))
        kid = json.loads(base64.urlsafe_b64decode(head + "=="))["kid"]
    except (ValueError, KeyError):
        return None
    fresh = kid == realm.key.kid and claims.get("exp", 0) > now() and text not in realm.revoked
    return claims if fresh and realm.key.jwt(claims) == text else None


def introspect(realm: Realm, request: Request) -> Answer:
    """RFC 7662: active only for the audience that asks."""
    client = realm.client(*request.credentials)
    if client is None:
        return Answer(401, {"error": "invalid_client"})
    claims = _claims(realm, request.form.get("token", ""))
    if claims is None or client.id not in claims["aud"]:
        return Answer(200, {"active": False})
    return Answer(200, {**claims, "active": True, "client_id": claims["azp"], "username": claims["preferred_username"]})


def userinfo(realm: Realm, request: Request) -> Answer:
    """The person of a bearer token."""
    claims = _claims(realm, request.bearer)
    if claims is None:
        return Answer(401, {"error": "invalid_token"})
    return Answer(200, {name: claims[name] for name in ("sub", "preferred_username", "email", "groups")})


def logout(request: Request) -> Answer:
    """Ends nothing, for there is no session here; sends the browser back."""
    back = request.query.get("post_logout_redirect_uri", "")
    return redirect(back) if back else Answer(200, "<p>Signed out.</p>")
