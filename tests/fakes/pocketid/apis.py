"""APIs, their permissions, and what clients hold on them, as the server keeps them.

Enters: a Call. Leaves: an answer that tells what was applied, which may be less than was sent. Source: spec/pocketid.md 4.8; records 12, 15.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from .exchange import NOTHING, Answer, Call, json_answer
from .listing import bytewise, page
from .model import Api, Client, Grant, Permission
from .reading import Faults, Members, Problem, as_members, bounded, one_of, refused

NOUN = "API"
RESERVED = frozenset({"openid", "profile", "email", "email_verified", "groups", "offline_access"})
_KEY = re.compile(r"[!-~]+")
_RESOURCE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s#]+")


def found(call: Call) -> Api:
    api: Api = one_of(call.store.apis, call.params["id"], NOUN)
    return api


def client_of(call: Call) -> Client:
    client: Client = one_of(call.store.clients, call.params["cid"], "OIDC client")
    return client


def list_all(call: Call) -> Answer:
    columns = {"name": lambda api: bytewise(api.name), "resource": lambda api: bytewise(api.resource)}
    rows = list(call.store.apis.values())
    return json_answer(page(rows, call.query, lambda api: [api.name, api.resource], columns, call.fake.shown.api))


def create(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    name, resource = body.text("name") or "", body.text("resource") or ""
    bounded(faults, "name", name, (1, 50))
    bounded(faults, "resource", resource, (1, 350))
    faults.throw()
    resource = resource.rstrip("/")
    if resource == call.fake.app_url:
        raise refused(("resource", "reserved"))
    if not _RESOURCE.fullmatch(resource) or resource.split(":")[0].lower() in ("javascript", "data"):
        raise refused(("resource", "invalid_format"))
    if any(api.resource == resource for api in call.store.apis.values()):
        raise Problem(409, "already_in_use", property="resource")
    api = Api(unicodedata.normalize("NFC", name), resource, call.now)
    call.store.apis[api.id] = api
    return json_answer(call.fake.shown.api(api, fresh=True), 201)


def read(call: Call) -> Answer:
    return json_answer(call.fake.shown.api(found(call)))


def replace(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    name = body.text("name") or ""
    bounded(faults, "name", name, (1, 50))
    faults.throw()
    api = found(call)
    api.name = unicodedata.normalize("NFC", name)
    return json_answer(call.fake.shown.api(api))


def delete(call: Call) -> Answer:
    call.store.delete_api(found(call).id)
    return NOTHING


# --- permissions


def set_permissions(call: Call) -> Answer:
    """Ids are kept by key; what goes takes its grants with it. New ones come in no order."""
    wanted = as_members(call.json()).objects("permissions") or []
    rows = [tuple(item.text(name) or "" for name in ("key", "name", "description")) for item in wanted]
    _judge(rows)
    api = found(call)
    held = {item.key: item for item in api.permissions}
    kept = []
    for key, name, description in rows:
        item = held.get(key) or Permission(key, name, description)
        item.name, item.description = name, description
        kept.append(item)
    api.permissions = [item for item in kept if item.key in held] + call.fake.shown.shuffled(
        item for item in kept if item.key not in held
    )
    known = {item.id for item in kept}
    for (id, _), grant in call.store.grants.items():
        if id == api.id:
            grant.narrow(known)
    _drop_empty(call)
    return json_answer(call.fake.shown.api(api))


def _judge(rows: list[tuple[str, ...]]) -> None:
    """Lengths of every entry first, then keys; the former are told without their entry's number."""
    faults = Faults()
    for key, name, description in rows:
        bounded(faults, "key", key, (1, 128))
        bounded(faults, "name", name, (1, 50))
        bounded(faults, "description", description or "-", (0, 200))
    faults.throw()
    seen: set[str] = set()
    for index, (key, *_) in enumerate(rows):
        code = (
            "reserved" if key.lower() in RESERVED else "duplicate" if key in seen
            else "invalid_format" if not _KEY.fullmatch(key) or set('"\\') & set(key) else ""
        )  # fmt: skip
        if code:
            raise refused((f"permissions[{index}].key", code))
        seen.add(key)


def set_cimd_access(call: Call) -> Answer:
    body = as_members(call.json())
    enabled, ids = body.flag("enabled"), body.texts("permissionIds") or []
    api = found(call)
    api.cimd = enabled
    for item in api.permissions:
        item.cimd = item.id in ids
    return json_answer(call.fake.shown.api(api))


# --- grants


def list_clients(call: Call) -> Answer:
    api = found(call)
    rows = [(call.store.clients[id], grant) for (key, id), grant in call.store.grants.items() if key == api.id]

    def shown(row: tuple[Client, Grant]) -> dict[str, Any]:
        client, grant = row
        meta = call.fake.shown.meta(client)
        named = {name: meta[name] for name in ("id", "name", "clientType")}
        logos = {name: meta[name] for name in ("hasLogo", "hasDarkLogo")}
        inside = named | {"isPublic": client.public} | logos
        return {"client": inside} | call.fake.shown.access(grant) | call.fake.shown.cimd_access(api, client)

    return json_answer(page(rows, call.query, lambda row: [row[0].settings["name"]], {}, shown))


def list_grants(call: Call) -> Answer:
    client = client_of(call)
    rows = []
    for api in sorted(call.store.apis.values(), key=lambda api: bytewise(api.name)):
        grant = call.store.grants.get((api.id, client.id))
        switch = call.fake.shown.cimd_access(api, client)
        if grant is not None or switch["cimdGrantedAccess"]:
            rows.append({"api": call.fake.shown.api(api)} | call.fake.shown.access(grant or Grant()) | switch)
    return json_answer(rows)


def set_grant(call: Call) -> Answer:
    """Permissions imply access; unknown ones are dropped, and client access of a client that has no secret."""
    wanted = _wanted(as_members(call.json()))
    api, client = found(call), client_of(call)
    known = {item.id for item in api.permissions}
    wanted.user_permissions &= known
    wanted.client_permissions &= known
    if client.public:
        wanted.client, wanted.client_permissions = False, set()
    wanted.user = wanted.user or bool(wanted.user_permissions)
    wanted.client = wanted.client or bool(wanted.client_permissions)
    call.store.grants[api.id, client.id] = wanted
    _drop_empty(call)
    return json_answer(call.fake.shown.access(wanted))


def _wanted(body: Members) -> Grant:
    user, client = body.flag("userDelegatedAccess"), body.flag("clientAccess")
    lists = {name: body.texts(name) or [] for name in ("userDelegatedPermissionIds", "clientPermissionIds")}
    faults = Faults()
    for name, ids in lists.items():
        for index, id in enumerate(ids):
            if not id:
                faults.add(f"{name}[{index}]", "required")
    faults.throw()
    return Grant(user, client, set(lists["userDelegatedPermissionIds"]), set(lists["clientPermissionIds"]))


def remove_grant(call: Call) -> Answer:
    api, client = found(call), client_of(call)
    call.store.grants.pop((api.id, client.id), None)
    return NOTHING


def _drop_empty(call: Call) -> None:
    call.store.grants = {pair: grant for pair, grant in call.store.grants.items() if not grant.empty}
