"""Users, login codes and API keys, as the server keeps them.

Enters: a Call. Leaves: an answer. Source: spec/pocketid.md 4.7, 5.4; records 11, 17.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from datetime import datetime
from typing import Any

from .clock import SECOND
from .exchange import NOTHING, Answer, Call, json_answer
from .groups import judge_claims
from .listing import bytewise, page
from .model import STATIC_OWNER, ApiKey, User, digest, new_id
from .reading import Faults, Members, Problem, as_members, bounded, claims_in, missing, refused, unreadable
from .secrets import ALPHABET
from .shown import claims

_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.@-]*[A-Za-z0-9])?")
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_DURATION = re.compile(r"([+-]?)((?:\d+(?:\.\d*)?(?:ns|us|ms|s|m|h))+)")
_PIECE = re.compile(r"(\d+(?:\.\d*)?)(ns|us|ms|s|m|h)")
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
SHORT_LIFE, LONGEST = 900.0, 744 * 3600.0
SESSION = 3600


def found(call: Call) -> User:
    """The user that the path names."""
    user = call.store.users.get(call.params["id"])
    if user is None:
        raise Problem(404, "user_not_found")
    return user


def written(call: Call, body: Members, faults: Faults) -> dict[str, Any]:
    """The settings that a write says; what it leaves out is reset."""
    settings: dict[str, Any] = {
        name: unicodedata.normalize("NFC", body.text(name) or "")
        for name in ("username", "firstName", "lastName", "displayName")
    } | {name: body.flag(name) for name in ("isAdmin", "disabled", "emailVerified")}
    settings |= {"email": body.text("email"), "locale": body.text("locale")}
    name, email = settings["username"], settings["email"]
    bounded(faults, "username", name, (1, 50))
    if name and len(name) <= 50 and not _NAME.fullmatch(name):
        faults.add("username", "invalid_format")
    if email is None and call.fake.config["requireUserEmail"] == "true":
        faults.add("email", "required")
    if email is not None and not _EMAIL.fullmatch(email):
        faults.add("email", "invalid_format")
    return settings


def free(call: Call, settings: dict[str, Any], but: str = "") -> None:
    """Username, whatever its letter case, and email are unique."""
    for name in ("username", "email"):
        taken = {
            str(user.settings[name]).lower()
            for user in call.store.users.values()
            if user.id != but and user.settings[name]
        }
        if str(settings[name] or "").lower() in taken:
            raise Problem(409, "already_in_use", property=name)


def list_all(call: Call) -> Answer:
    named = ("username", "email", "firstName", "lastName", "displayName")
    columns = {name: (lambda user, name=name: bytewise(user.settings[name])) for name in named}
    rows = list(call.store.users.values())
    return json_answer(
        page(
            rows, call.query, lambda user: [user.settings[name] or "" for name in named], columns, call.fake.shown.user
        )
    )


def create(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    id = body.text("id") or ""
    settings = written(call, body, faults)
    if id and not _UUID.fullmatch(id):
        faults.add("id", "uuid")
    groups = body.texts("userGroupIds") or []
    faults.throw()
    free(call, settings)
    if id in call.store.users:
        raise Problem(500, "internal_error")
    user = User(id or new_id(), settings)
    call.store.users[user.id] = user
    _join(call, user, groups)
    return json_answer(call.fake.shown.user(user), 201)


def _join(call: Call, user: User, groups: list[str]) -> None:
    for group in call.store.groups.values():
        (group.users.add if group.id in groups else group.users.discard)(user.id)


def read(call: Call) -> Answer:
    return json_answer(call.fake.shown.user(found(call)))


def read_me(call: Call) -> Answer:
    assert call.user is not None
    return json_answer(call.fake.shown.user(call.user))


def replace(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    settings = written(call, body, faults)
    faults.throw()
    user = found(call)
    if user.ldap_id:
        raise Problem(403, "ldap_user_update")
    free(call, settings, but=user.id)
    user.settings = settings
    return json_answer(call.fake.shown.user(user))


def delete(call: Call) -> Answer:
    call.store.delete_user(found(call).id)
    return NOTHING


def set_groups(call: Call) -> Answer:
    ids = as_members(call.json()).texts("userGroupIds")
    if ids is None:
        raise refused(("userGroupIds", "required"))
    user = found(call)
    _join(call, user, ids)
    return json_answer(call.fake.shown.user(user, moment=call.fake.clock.fresh(call.now)))


def set_claims(call: Call) -> Answer:
    pairs = claims_in(call.json())
    user = found(call)
    judge_claims(pairs)
    user.claims = pairs
    return json_answer(claims(pairs))


# --- coming in


def make_login_code(call: Call) -> Answer:
    life = _life(as_members(call.json()))
    if not 1.0 < life <= LONGEST:
        raise refused(("ttl", "ttl"))
    user = found(call)
    code = "".join(secrets.choice(ALPHABET) for _ in range(12 if life > SHORT_LIFE else 6))
    call.store.login_codes[digest(code)] = (user.id, call.now + int(life * SECOND))
    return json_answer({"token": code}, 201)


def _life(body: Members) -> float:
    """Seconds: a number, or a duration as Go writes it; left out or 0 is a quarter of an hour."""
    if not body.has("ttl"):
        return SHORT_LIFE
    value = body.get("ttl")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value) or SHORT_LIFE
    parts = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if parts is None:
        raise unreadable()
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(parts[2]))
    return (-seconds if parts[1] == "-" else seconds) or SHORT_LIFE


def exchange_login_code(call: Call) -> Answer:
    """A code is good once; its user comes in with a session."""
    if not call.fake.limiter.login():
        raise Problem(429, "rate_limited")
    id, end = call.store.login_codes.get(digest(call.params["token"]), ("", 0))
    user = call.store.users.get(id)
    if user is None or end <= call.now:
        raise Problem(401, "token_invalid_or_expired")
    if user.settings["disabled"]:
        raise Problem(403, "user_disabled")
    del call.store.login_codes[digest(call.params["token"])]
    return _entered(call, user)


def set_up(call: Call) -> Answer:
    """The first human user becomes the administrator."""
    if any(id != STATIC_OWNER for id in call.store.users):
        raise Problem(409, "setup_already_completed")
    body, faults = as_members(call.json()), Faults()
    settings = written(call, body, faults)
    faults.throw()
    shown_name = " ".join(filter(None, (settings["firstName"], settings["lastName"])))
    user = User(new_id(), settings | {"isAdmin": True, "displayName": settings["displayName"] or shown_name})
    call.store.users[user.id] = user
    return _entered(call, user)


def _entered(call: Call, user: User) -> Answer:
    token = call.fake.session_token(user)
    cookie = f"access_token={token}; Path=/; Max-Age={SESSION}; HttpOnly; Secure; SameSite=Lax"
    answer = json_answer(call.fake.shown.user(user, groups=False))
    return Answer(200, answer.body, {**answer.headers, "Set-Cookie": cookie})


# --- API keys


def _shown_key(call: Call, key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id, "name": key.name, "description": key.description, "expiresAt": key.expires, "lastUsedAt": None,
        "createdAt": call.fake.clock.fresh(key.created), "expirationEmailSent": False,
    }  # fmt: skip


def list_keys(call: Call) -> Answer:
    assert call.user is not None
    rows = [key for key in call.store.keys.values() if key.owner == call.user.id]
    columns = {"name": lambda key: bytewise(key.name)}
    return json_answer(page(rows, call.query, lambda key: [key.name], columns, lambda key: _shown_key(call, key)))


def make_key(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    name, expires = body.text("name") or "", body.text("expiresAt")
    bounded(faults, "name", name, (3, 50))
    try:
        moment = datetime.fromisoformat(expires) if expires else None
    except ValueError:
        raise unreadable() from None
    if moment is None:
        faults.add("expiresAt", "required")
    faults.throw()
    if moment is not None and moment.timestamp() * SECOND <= call.now:
        raise refused(("expiresAt", "invalid_value"))
    assert call.user is not None
    assert expires is not None
    token = "".join(secrets.choice(ALPHABET) for _ in range(32))
    key = ApiKey(call.user.id, digest(token), name, body.text("description"), expires, call.now)
    call.store.keys[key.id] = key
    return json_answer({"apiKey": _shown_key(call, key), "token": token}, 201)


def delete_key(call: Call) -> Answer:
    key = call.store.keys.get(call.params["id"])
    if key is None or call.user is None or key.owner != call.user.id:
        raise missing("API key")
    del call.store.keys[key.id]
    return NOTHING
