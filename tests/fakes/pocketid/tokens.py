"""The token endpoint and its neighbours: who authenticates with what, and what he gets.

Enters: a Call with a form. Leaves: OAuth answers. Any active secret of a client authenticates; so does an assertion of an issuer that the client names.
Source: spec/pocketid.md 4.11; records 08, 12, 16, 22, 23.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

from .clock import SECOND
from .exchange import API_HEADERS, Answer, Call
from .federated import JWT_BEARER, asserted
from .jose import Refusal, claims_of, verify
from .model import Client, Grant, User, digest, new_id
from .urls import BAD_PERCENT

IDENTITY_SCOPES = ("openid", "profile", "email", "groups", "offline_access")
REFRESH_LIFE = 43200 * 60


class OAuthProblem(Exception):
    """An OAuth error."""

    def __init__(self, status: int, error: str) -> None:
        self.status, self.error = status, error
        super().__init__(error)


@dataclass(frozen=True)
class Code:
    """An authorization code, or a refresh token: what was agreed."""

    client: str
    user: str
    redirect: str
    scopes: tuple[str, ...]
    end: int
    challenge: str = ""
    method: str = ""
    nonce: str = ""
    resource: str = ""
    amr: tuple[str, ...] = ("otp",)


@dataclass
class Issued:
    """Codes and tokens that are out, by digest."""

    codes: dict[str, Code] = field(default_factory=dict)
    refresh: dict[str, Code] = field(default_factory=dict)
    used_assertions: set[tuple[str, str]] = field(default_factory=set)


def form_of(call: Call) -> dict[str, str]:
    return dict(parse_qsl(call.request.body.decode(errors="replace"), keep_blank_values=True))


def oauth_answer(status: int, body: Mapping[str, Any]) -> Answer:
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        **API_HEADERS,
        "Cache-Control": "no-store",
        "Pragma": "no-cache",
    }
    return Answer(status, dict(body), headers)


def refuse(problem: OAuthProblem) -> Answer:
    return oauth_answer(problem.status, {"error": problem.error, "error_description": problem.error.replace("_", " ")})


async def token(call: Call) -> Answer:
    try:
        form = form_of(call)
        grants = {"client_credentials": _client_credentials, "authorization_code": _code, "refresh_token": _refresh}
        grant = grants.get(form.get("grant_type", ""))
        if grant is None:
            raise OAuthProblem(400, "invalid_request")
        return oauth_answer(200, grant(call, await authenticated(call, form), form))
    except OAuthProblem as problem:
        return refuse(problem)


# --- who asks


async def authenticated(call: Call, form: Mapping[str, str]) -> Client:
    """The client; a public one by its name alone."""
    id, secret = _credentials(call, form)
    if form.get("client_assertion_type") == JWT_BEARER:
        return await _by_assertion(call, form)
    client = call.store.clients.get(id)
    if client is None:
        raise OAuthProblem(401, "invalid_client")
    if client.public:
        return client
    active = (item for item in client.secrets if item.active(call.now))
    if not secret or digest(secret) not in {item.digest for item in active}:
        raise OAuthProblem(401, "invalid_client")
    return client


async def _by_assertion(call: Call, form: Mapping[str, str]) -> Client:
    text = form.get("client_assertion", "")
    try:
        named = claims_of(text)
    except Refusal:
        raise OAuthProblem(401, "invalid_client") from None
    client = call.store.clients.get(form.get("client_id") or str(named.get("sub", "")))
    if client is None or not named.get("iss"):
        raise OAuthProblem(401, "invalid_client")
    if client.public:
        return client
    identity = next((item for item in client.settings["federatedIdentities"] if item["issuer"] == named["iss"]), None)
    if identity is None:
        raise OAuthProblem(400, "invalid_request")
    try:
        await asserted(call.fake, client, identity, text)
    except Refusal:
        raise OAuthProblem(401, "invalid_client") from None
    return client


def _credentials(call: Call, form: Mapping[str, str]) -> tuple[str, str]:
    scheme, _, text = call.request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return form.get("client_id", ""), form.get("client_secret", "")
    try:
        name, _, secret = base64.b64decode(text).decode().partition(":")
    except ValueError:
        raise OAuthProblem(400, "invalid_request") from None
    if BAD_PERCENT.search(name + secret):
        raise OAuthProblem(400, "invalid_request")
    return unquote_plus(name), unquote_plus(secret)


# --- what he gets


def _client_credentials(call: Call, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
    if client.public or client.type == "cimd":
        raise OAuthProblem(400, "invalid_grant")
    wanted = [scope for scope in form.get("scope", "").split() if scope not in IDENTITY_SCOPES]
    audience, held = client.id, set[str]()
    if form.get("resource"):
        audience, held = _held(call, client, form["resource"])
    if not set(wanted) <= held:
        raise OAuthProblem(400, "invalid_scope")
    scopes = wanted or call.fake.shown.shuffled(sorted(held))
    return _machine_token(call, client, audience, scopes)


def _held(call: Call, client: Client, resource: str) -> tuple[str, set[str]]:
    """The audience and the permissions that the client holds on it in its own right."""
    api = next((item for item in call.store.apis.values() if item.resource == resource.rstrip("/")), None)
    if api is None:
        raise OAuthProblem(400, "invalid_target")
    grant = call.store.grants.get((api.id, client.id), Grant())
    if not grant.client:
        raise OAuthProblem(403, "access_denied")
    return api.resource, {item.key for item in api.permissions if item.id in grant.client_permissions}


def _machine_token(call: Call, client: Client, audience: str, scopes: list[str]) -> dict[str, Any]:
    claims = {"sub": f"client-{client.id}", "aud": [audience], "scope": " ".join(scopes), "scp": scopes}
    signed, life = _access(call, client, claims)
    return {"access_token": signed, "expires_in": life, "scope": " ".join(scopes), "token_type": "bearer"}


def _access(call: Call, client: Client, claims: dict[str, Any]) -> tuple[str, int]:
    life = client.settings["accessTokenDurationMinutes"] * 60
    now = call.now // SECOND
    return call.fake.key.jwt({"iss": call.fake.app_url, "iat": now, "exp": now + life, **claims}), life


def _code(call: Call, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
    """A code works once, for its client, its redirect_uri and its verifier."""
    code = call.fake.issued.codes.get(digest(form.get("code", "")))
    if code is None or code.client != client.id or code.redirect != form.get("redirect_uri") or code.end <= call.now:
        raise OAuthProblem(400, "invalid_grant")
    if code.challenge and challenge_of(form.get("code_verifier", ""), code.method) != code.challenge:
        raise OAuthProblem(400, "invalid_grant")
    del call.fake.issued.codes[digest(form["code"])]
    return user_tokens(call, client, code)


def _refresh(call: Call, client: Client, form: Mapping[str, str]) -> dict[str, Any]:
    kept = call.fake.issued.refresh.pop(digest(form.get("refresh_token", "")), None)
    if kept is None or kept.client != client.id or kept.end <= call.now or kept.user not in call.store.users:
        raise OAuthProblem(400, "invalid_grant")
    if not call.store.allowed(client, kept.user):
        raise OAuthProblem(400, "invalid_grant")
    return user_tokens(call, client, kept)


def user_tokens(call: Call, client: Client, code: Code) -> dict[str, Any]:
    user = call.store.users[code.user]
    scope, now = " ".join(code.scopes), call.now // SECOND
    claims = {"sub": user.id, "aud": [client.id, call.fake.app_url], "scope": scope, "scp": list(code.scopes)}
    access, life = _access(call, client, claims)
    refresh = secrets.token_urlsafe(32)
    end = call.now + client.settings["refreshTokenDurationMinutes"] * 60 * SECOND
    call.fake.issued.refresh[digest(refresh)] = Code(client.id, user.id, code.redirect, code.scopes, end)
    whole = {
        "access_token": access,
        "expires_in": life,
        "refresh_token": refresh,
        "scope": scope,
        "token_type": "bearer",
    }
    if "openid" in code.scopes:
        told = user_claims(call, user, code.scopes) | {
            "iss": call.fake.app_url, "aud": [client.id], "iat": now, "exp": now + life, "auth_time": now, "rat": now, "jti": new_id(),
            "amr": list(code.amr), "type": "id-token", "at_hash": _half(access),
        }  # fmt: skip
        whole["id_token"] = call.fake.key.jwt(told | ({"nonce": code.nonce} if code.nonce else {}))
    return whole


def _half(access: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(access.encode()).digest()[:16]).decode().rstrip("=")


def challenge_of(verifier: str, method: str) -> str:
    """What a PKCE verifier answers to."""
    hashed = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    return hashed if method == "S256" else verifier


def user_claims(call: Call, user: User, scopes: tuple[str, ...]) -> dict[str, Any]:
    """What the scopes tell of a user. Claims of the user win over those of groups."""
    settings, groups = user.settings, call.store.groups_of(user.id)
    told: dict[str, Any] = {"sub": user.id}
    if "profile" in scopes:
        for group in groups:
            told |= dict(group.claims)
        told |= dict(user.claims) | {
            "given_name": settings["firstName"], "family_name": settings["lastName"],
            "name": f"{settings['firstName']} {settings['lastName']}".strip(), "display_name": settings["displayName"],
            "preferred_username": settings["username"],
            "picture": f"{call.fake.app_url}/api/users/{user.id}/profile-picture.png",
        }  # fmt: skip
    if "email" in scopes:
        told |= {"email": settings["email"], "email_verified": settings["emailVerified"]}
    if "groups" in scopes or "profile" in scopes:
        told["groups"] = call.fake.shown.shuffled(sorted(group.name for group in groups))
    return told


# --- the neighbours


def _checked(call: Call, text: str) -> dict[str, Any] | None:
    try:
        claims = verify(text, [call.fake.key.jwk])
    except Refusal:
        return None
    return claims if claims.get("exp", 0) * SECOND > call.now else None


def userinfo(call: Call) -> Answer:
    claims = _checked(call, call.request.bearer)
    if claims is None:
        return refuse(OAuthProblem(401, "request_unauthorized"))
    user = call.store.users.get(claims["sub"])
    if user is None or "openid" not in claims.get("scp", ()):
        return refuse(OAuthProblem(403, "access_denied"))
    return oauth_answer(200, user_claims(call, user, tuple(claims["scp"])))


async def introspect(call: Call) -> Answer:
    form = form_of(call)
    try:
        if not call.request.headers.get("authorization"):
            raise OAuthProblem(401, "request_unauthorized")
        asking = await authenticated(call, form)
    except OAuthProblem as problem:
        return refuse(problem)
    claims = _checked(call, form.get("token", ""))
    if claims is None:
        return oauth_answer(200, {"active": False})
    told = {name: claims[name] for name in ("aud", "exp", "iat", "sub")}
    return oauth_answer(200, {"active": True, "client_id": asking.id, "username": claims["sub"], **told})
