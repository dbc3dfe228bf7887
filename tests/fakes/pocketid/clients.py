"""OIDC clients and their groups, as the server keeps them.

Enters: a Call. Leaves: an answer; rows change at once, so a fault after it loses the answer only. Source: spec/pocketid.md 4.2, 4.5; records 02 to 06, 14, 15.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from .exchange import NOTHING, Answer, Call, json_answer
from .keysets import known_keys
from .listing import bytewise, page
from .logos import fetch_logos
from .model import Client, new_id
from .reading import Faults, Members, Problem, as_members, bounded, missing, one_of, refused
from .secrets import minted
from .urls import is_callback, is_url

NOUN = "OIDC client"
_ID = re.compile(r"[A-Za-z0-9._-]+")
MOST_MINUTES = 525600
OWNED_BY_ADMIN = (
    "description", "requiresReauthentication", "requiresPushedAuthorizationRequests", "skipConsent", "launchURL",
    "isGroupRestricted", "accessTokenDurationMinutes", "refreshTokenDurationMinutes",
)  # fmt: skip


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def found(call: Call) -> Client:
    """The client that the path names."""
    client: Client = one_of(call.store.clients, call.params["id"], NOUN)
    return client


def written(call: Call, body: Members, faults: Faults) -> dict[str, Any]:
    """The settings that a write says, everything left out at its default; what is wrong goes into `faults`."""
    name, description = body.text("name") or "", body.text("description") or ""
    public = body.flag("isPublic")
    settings = {
        "name": nfc(name), "description": nfc(description),
        "callbackURLs": body.texts("callbackURLs") or [], "logoutCallbackURLs": body.texts("logoutCallbackURLs") or [],
        "isPublic": public, "pkceEnabled": body.flag("pkceEnabled") or public,
        "requiresReauthentication": body.flag("requiresReauthentication"),
        "requiresPushedAuthorizationRequests": body.flag("requiresPushedAuthorizationRequests"),
        "skipConsent": body.flag("skipConsent"), "launchURL": body.text("launchURL"),
        "isGroupRestricted": body.flag("isGroupRestricted"),
        "accessTokenDurationMinutes": body.integer("accessTokenDurationMinutes") or 60,
        "refreshTokenDurationMinutes": body.integer("refreshTokenDurationMinutes") or 43200,
        "backchannelLogoutURL": (body.text("backchannelLogoutURL") or "") if call.fake.level >= (2, 17) else "",
        "federatedIdentities": [_identity(call, item) for item in body.object("credentials").objects("federatedIdentities") or []],
    }  # fmt: skip
    bounded(faults, "name", name, (1, 50))
    bounded(faults, "description", description or "-", (0, 150))
    _check_urls(settings, faults)
    for field in ("accessTokenDurationMinutes", "refreshTokenDurationMinutes"):
        if not 1 <= settings[field] <= MOST_MINUTES:
            faults.add(field, "token_duration")
    for index, identity in enumerate(settings["federatedIdentities"]):
        if identity["publicKeys"] is None or (identity["publicKeys"] and identity["jwks"]):
            faults.add(f"credentials.federatedIdentities[{index}].publicKeys", "invalid_value")
    return settings


def _check_urls(settings: dict[str, Any], faults: Faults) -> None:
    for field in ("callbackURLs", "logoutCallbackURLs"):
        for index, url in enumerate(settings[field]):
            if not is_callback(url):
                faults.add(f"{field}[{index}]", "callback_url_pattern")
    if settings["launchURL"] is not None and not is_url(settings["launchURL"]):
        faults.add("launchURL", "invalid_format")
    if settings["backchannelLogoutURL"] and not is_url(settings["backchannelLogoutURL"]):
        faults.add("backchannelLogoutURL", "invalid_format")


def _identity(call: Call, item: Members) -> dict[str, Any]:
    """An entry as it is kept: unknown members dropped, nothing judged but the keys of a newer server."""
    named = {name: item.text(name) or "" for name in ("issuer", "subject", "audience", "jwks")}
    keys = known_keys(item) if call.fake.level >= (2, 15) else []
    return named | {"replayProtection": item.flag("replayProtection"), "publicKeys": keys}


def list_all(call: Call) -> Answer:
    columns = {"name": lambda client: bytewise(client.settings["name"])}
    rows = list(call.store.clients.values())
    return json_answer(
        page(rows, call.query, lambda client: [client.settings["name"]], columns, call.fake.shown.client_of_list)
    )


def create(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    id = body.text("id") or ""
    settings = written(call, body, faults)
    if id and not 2 <= len(id) <= 128:
        faults.add("id", "too_short" if len(id) < 2 else "too_long")
    elif id and not _ID.fullmatch(id):
        faults.add("id", "client_id")
    faults.throw()
    if id in call.store.clients:
        raise Problem(409, "client_id_already_exists")
    client = Client(id or new_id(), settings)
    call.store.clients[client.id] = client
    fetch_logos(call, client, body)
    answer = call.fake.shown.client(client)
    if call.fake.level >= (2, 17) and not client.public and call.fake.config["autoCreateOidcClientSecret"] == "true":
        answer |= {"createdSecret": minted(call, client, None, None)}
        answer["credentials"] = call.fake.shown.client(client)["credentials"]
    return json_answer(answer, 201)


def read(call: Call) -> Answer:
    return json_answer(call.fake.shown.client(found(call)))


def read_meta(call: Call) -> Answer:
    return json_answer(call.fake.shown.meta(found(call)))


def replace(call: Call) -> Answer:
    body, faults = as_members(call.json()), Faults()
    settings = written(call, body, faults)
    faults.throw()
    client = found(call)
    if client.type == "cimd":
        settings = client.settings | {name: settings[name] for name in OWNED_BY_ADMIN}
    client.settings = settings
    if not settings["isGroupRestricted"]:
        client.groups.clear()
    client.pkce_supported = client.pkce_supported and settings["pkceEnabled"] and not settings["isPublic"]
    fetch_logos(call, client, body)
    return json_answer(call.fake.shown.client(client, groups_fresh=True))


def delete(call: Call) -> Answer:
    call.store.delete_client(found(call).id)
    return NOTHING


def refresh(call: Call) -> Answer:
    """Only a metadata-document client can be refreshed; another, or none, is bad input and never 404."""
    client = call.store.clients.get(call.params["id"])
    if client is None and call.params["id"].startswith("https://"):
        raise missing(NOUN)
    if client is None or client.type != "cimd":
        raise refused()
    client.refreshed += 1
    document = call.fake.documents.get(client.id)
    if document is None:
        raise refused(("client_id", "invalid_value"))
    apply_document(client, document)
    return json_answer(call.fake.shown.client(client))


def apply_document(client: Client, document: dict[str, Any]) -> None:
    """What a metadata document owns of its client."""
    client.settings |= {
        "name": document.get("client_name", client.id)[:50],
        "callbackURLs": list(document.get("redirect_uris", ())),
        "isPublic": True,
        "pkceEnabled": True,
    }


def set_groups(call: Call) -> Answer:
    ids = as_members(call.json()).texts("userGroupIds")
    if ids is None:
        raise refused(("userGroupIds", "required"))
    client = found(call)
    client.groups = {id for id in ids if id in call.store.groups}
    return json_answer(call.fake.shown.client_without_groups(client))
