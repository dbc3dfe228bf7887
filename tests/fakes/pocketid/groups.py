"""User groups and custom claims, as the server keeps them.

Enters: a Call. Leaves: an answer. Source: spec/pocketid.md 4.6; records 06, 10.
"""

from __future__ import annotations

import unicodedata

from .exchange import NOTHING, Answer, Call, json_answer
from .listing import bytewise, page
from .model import Group
from .reading import Faults, Problem, as_members, bounded, claims_in, one_of, refused
from .shown import claims

NOUN = "User group"
RESERVED_CLAIMS = frozenset({
    "given_name", "family_name", "name", "email", "email_verified", "preferred_username", "display_name", "picture", "groups", "sub",
    "iss", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "azp", "nbf", "jti", "type",
})  # fmt: skip


def found(call: Call) -> Group:
    group: Group = one_of(call.store.groups, call.params["id"], NOUN)
    return group


def written(call: Call) -> tuple[str, str]:
    """Name and friendly name of a write."""
    body, faults = as_members(call.json()), Faults()
    name, friendly = body.text("name") or "", body.text("friendlyName") or ""
    bounded(faults, "name", name, (2, 255))
    bounded(faults, "friendlyName", friendly, (2, 50))
    faults.throw()
    return unicodedata.normalize("NFC", name), unicodedata.normalize("NFC", friendly)


def free(call: Call, name: str, but: str = "") -> None:
    """Names are unique, letter case counts."""
    if any(group.name == name and group.id != but for group in call.store.groups.values()):
        raise Problem(409, "already_in_use", property="name")


def list_all(call: Call) -> Answer:
    columns = {
        "name": lambda group: bytewise(group.name),
        "friendlyName": lambda group: bytewise(group.friendly),
        "userCount": lambda group: len(group.users),
        "createdAt": lambda group: group.created,
    }
    rows = list(call.store.groups.values())
    return json_answer(page(rows, call.query, lambda group: [group.name], columns, call.fake.shown.group_of_list))


def create(call: Call) -> Answer:
    name, friendly = written(call)
    free(call, name)
    group = Group(name, friendly, call.now)
    call.store.groups[group.id] = group
    return json_answer(call.fake.shown.group(group, fresh=True), 201)


def read(call: Call) -> Answer:
    return json_answer(call.fake.shown.group(found(call)))


def replace(call: Call) -> Answer:
    name, friendly = written(call)
    group = found(call)
    _writable(group)
    free(call, name, but=group.id)
    group.name, group.friendly = name, friendly
    return json_answer(call.fake.shown.group(group))


def delete(call: Call) -> Answer:
    group = found(call)
    _writable(group)
    call.store.delete_group(group.id)
    return NOTHING


def _writable(group: Group) -> None:
    if group.ldap_id:
        raise Problem(403, "ldap_user_group_update")


def set_users(call: Call) -> Answer:
    ids = as_members(call.json()).texts("userIds")
    if ids is None:
        raise refused(("userIds", "required"))
    group = found(call)
    _writable(group)
    group.users = {id for id in ids if id in call.store.users}
    return json_answer(call.fake.shown.group(group))


def set_clients(call: Call) -> Answer:
    ids = as_members(call.json()).texts("oidcClientIds")
    if ids is None:
        raise refused(("oidcClientIds", "required"))
    group = found(call)
    for client in call.store.clients.values():
        (client.groups.add if client.id in ids else client.groups.discard)(group.id)
    return json_answer(call.fake.shown.group(group))


def set_claims(call: Call) -> Answer:
    pairs = claims_in(call.json())
    group = found(call)
    judge_claims(pairs)
    group.claims = pairs
    return json_answer(claims(pairs))


def judge_claims(pairs: list[tuple[str, str]]) -> None:
    """Reserved and repeated keys are refused; nothing is written then."""
    seen: set[str] = set()
    for key, _ in pairs:
        code = "reserved" if key in RESERVED_CLAIMS else "duplicate" if key in seen else ""
        if code:
            field = {"field": "key", "code": code, "message": "not possible"}
            raise Problem(400, f"{code}_claim", fields=[field], key=key)
        seen.add(key)
