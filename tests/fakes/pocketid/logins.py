"""The authorization endpoint and its interactions: how a user of a browser, or of a test, gets a code.

Enters: a Call with a session, or none. Leaves: redirects. Source: spec/pocketid.md 5.5; records 16, 24, 25.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from .clients import apply_document, written
from .clock import SECOND
from .exchange import Answer, Call, json_answer, see
from .model import Client, User, digest, new_id
from .reading import Faults, Members, Problem, one_of, refused
from .tokens import IDENTITY_SCOPES, Code, OAuthProblem, authenticated, form_of, oauth_answer, refuse, user_claims
from .urls import accepts, is_loopback

CODE_LIFE, PAR_LIFE = 60, 90
REQUEST_URI = "urn:ietf:params:oauth:request_uri:"
STEPS = ("authenticate", "select_account", "consent", "reauthenticate")
DEFAULT_SCOPE = "openid"


@dataclass
class Interaction:
    """An authorization under way. `done` are the steps that the user has taken."""

    id: str
    asked: Mapping[str, str]
    client: str
    done: set[str]


def authorize(call: Call) -> Answer:
    under_way = call.fake.interactions.get(call.query.get("interaction", ""))
    asked = under_way.asked if under_way else _asked(call)
    client = _client(call, asked.get("client_id", ""))
    redirect = asked.get("redirect_uri", "")
    if client is None or not any(accepts(pattern, redirect) for pattern in client.settings["callbackURLs"]):
        return see("/interaction/error?" + urlencode({"error": "The client or its callback URL is not known"}))
    if problem := _problem(call, client, asked):
        told = {"error": problem, "error_description": problem.replace("_", " "), "state": asked.get("state", "")}
        return see(_with(redirect, told), 303)
    return _decided(call, client, asked, under_way)


def _asked(call: Call) -> Mapping[str, str]:
    """The request's own parameters, or those that were pushed; what was pushed counts once."""
    pushed = call.fake.pushed.pop(call.query.get("request_uri", ""), None)
    return call.query if pushed is None else {**pushed, "pushed": "yes"}


def _client(call: Call, id: str) -> Client | None:
    """A client of the store; one of a metadata document is made at its first authorization, if its URL may."""
    client = call.store.clients.get(id)
    document = call.fake.documents.get(id)
    if client is None and document is not None and call.fake.config["cimdUrlAllowlist"] != "[]":
        settings = written(call, Members([("name", id[:50])]), Faults())
        client = call.store.clients[id] = Client(id, settings, type="cimd")
        apply_document(client, document)
    return client


def _problem(call: Call, client: Client, asked: Mapping[str, str]) -> str:
    """What is wrong with a request whose redirect_uri is right."""
    redirect, settings = asked.get("redirect_uri", ""), client.settings
    if len(asked.get("state", "")) < 8:
        return "invalid_state"
    if redirect.startswith("http:") and not call.fake.insecure_callbacks and not is_loopback(redirect):
        return "invalid_request"
    if settings["requiresPushedAuthorizationRequests"] and "pushed" not in asked:
        return "error"
    if settings["pkceEnabled"] and not asked.get("code_challenge"):
        return "invalid_request"
    return "" if asked.get("response_type", "code") == "code" else "unsupported_response_type"


def _decided(call: Call, client: Client, asked: Mapping[str, str], under_way: Interaction | None) -> Answer:
    if asked.get("code_challenge") and not client.settings["pkceEnabled"]:
        client.pkce_supported = True
    user, done = call.user, under_way.done if under_way else set[str]()
    if user is not None and not call.store.allowed(client, user.id):
        return see("/interaction/error?" + urlencode({"error": "You are not allowed to access this service"}))
    if user is None or _steps(client, user, scopes_of(asked), done):
        found = under_way or Interaction(new_id(), asked, client.id, done)
        call.fake.interactions[found.id] = found
        return see(f"/interaction?interaction={found.id}")
    if under_way:
        del call.fake.interactions[under_way.id]
    scopes = scopes_of(asked)
    client.consents.setdefault(user.id, set()).update(scopes)
    text = secrets.token_urlsafe(24)
    call.fake.issued.codes[digest(text)] = Code(
        client.id, user.id, asked["redirect_uri"], scopes, call.now + CODE_LIFE * SECOND, asked.get("code_challenge", ""),
        asked.get("code_challenge_method", "plain"), asked.get("nonce", ""),
    )  # fmt: skip
    return see(_with(asked["redirect_uri"], {"code": text, "scope": " ".join(scopes), "state": asked["state"]}), 303)


def scopes_of(asked: Mapping[str, str]) -> tuple[str, ...]:
    """Scopes that the server knows; others are dropped."""
    return tuple(scope for scope in asked.get("scope", DEFAULT_SCOPE).split() if scope in IDENTITY_SCOPES)


def _steps(client: Client, user: User, scopes: tuple[str, ...], done: set[str]) -> list[str]:
    """What the user still has to do."""
    needed = []
    if client.settings["requiresReauthentication"] and "reauthenticate" not in done:
        needed.append("reauthenticate")
    agreed = client.settings["skipConsent"] or set(scopes) <= client.consents.get(user.id, set())
    return needed + ([] if agreed or "consent" in done else ["consent"])


def _with(redirect: str, told: Mapping[str, str]) -> str:
    return f"{redirect}{'&' if '?' in redirect else '?'}{urlencode(sorted(told.items()))}"


def read_interaction(call: Call) -> Answer:
    found = one_of(call.fake.interactions, call.params["iid"], "Interaction")
    client = call.store.clients[found.client]
    known = next(iter(client.consents), "")
    user = call.user or call.store.users.get(known) or User("", {})
    steps = _steps(client, user, scopes_of(found.asked), found.done) or ["authenticate"]
    return json_answer({
        "id": found.id, "scopes": list(scopes_of(found.asked)), "scopeInfo": [], "client": call.fake.shown.meta(client),
        "currentStep": steps[0], "requiredSteps": steps,
    })  # fmt: skip


def complete_interaction(call: Call) -> Answer:
    body = call.json()
    step = body.text("step") if isinstance(body, Members) else None
    found = one_of(call.fake.interactions, call.params["iid"], "Interaction")
    if step not in STEPS:
        raise refused()
    if step == "reauthenticate":
        raise refused(("reauthenticationToken", "required"))
    found.done.add(step)
    return json_answer({"redirectUrl": f"/authorize?interaction={found.id}"})


async def push(call: Call) -> Answer:
    """Pushed authorization requests."""
    form = form_of(call)
    try:
        client = await authenticated(call, form)
    except OAuthProblem as problem:
        return refuse(problem)
    uri = REQUEST_URI + secrets.token_urlsafe(16)
    call.fake.pushed[uri] = {**form, "client_id": client.id}
    return oauth_answer(201, {"request_uri": uri, "expires_in": PAR_LIFE})


def preview(call: Call) -> Answer:
    """What a user would get from a client."""
    client: Client = one_of(call.store.clients, call.params["id"], "OIDC client")
    user = call.store.users.get(call.params["u"])
    if user is None:
        raise Problem(404, "user_not_found")
    if not call.store.allowed(client, user.id):
        raise Problem(403, "oidc_access_denied")
    scopes = scopes_of({"scope": call.query.get("scopes", DEFAULT_SCOPE)})
    told = user_claims(call, user, scopes)
    now = call.now // SECOND
    end = now + client.settings["accessTokenDurationMinutes"] * 60
    life: dict[str, Any] = {
        "iss": call.fake.app_url,
        "iat": now,
        "exp": end,
        "rat": now,
        "auth_time": now,
        "jti": new_id(),
    }
    return json_answer({
        "idToken": told | life | {"aud": [client.id], "type": "id-token"},
        "accessToken": life | {"sub": user.id, "aud": [client.id, call.fake.app_url], "scp": list(scopes)},
        "userInfo": told | {"type": "id-token"},
    })  # fmt: skip


def end_session(call: Call) -> Answer:
    return see(f"{call.fake.app_url}/logout")
