"""The client as it is declared, in the server's own words, and what of it differs from what the server has.

Enters: a snapshot. Leaves: members of the write DTO, the body of a create, the body of an update (the server's own object with what is
declared in it). Pure. Callback lists that are not declared are the server's; members of a metadata document are never touched.
Source: spec/pocketid.md 3.6, 3.8, 3.15, 4.2, 4.12; decisions, Pocket-ID 1 and 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID, uuid5

from moorage.core.meta import JsonObject, Key
from moorage.pocketid.powers import birthmark_of, is_birthmark
from moorage.pocketid.rest_types import Client, nfc
from moorage.pocketid.rest_version import Feature, Support

from .identities import held_with_keys, same_identities
from .secret_snapshot import Mode, mode_of
from .seen import Seen
from .seen_parts import Fault

_OURS: Final = UUID("6f1dc4f5-55c7-4c8e-9d53-7d2a6f0b9a41")
"""The name space of ids that are drawn by us; any constant would do."""
_EMPTY: Final[Mapping[str, Any]] = {
    "description": "",
    "callbackURLs": [],
    "logoutCallbackURLs": [],
    "backchannelLogoutURL": "",
    "launchURL": None,
}
"""What an absent member means."""


def members(seen: Seen, client: Client | None = None) -> JsonObject:
    """The members of a write that are managed, by their JSON names; a client of a metadata document has fewer.

    Args:
        client: as the server has it; None when it is made.
    """
    spec = seen.client.spec
    shared: JsonObject = {
        "description": nfc(spec.description or ""),
        "launchURL": spec.launch_url,
        "requiresReauthentication": spec.requires_reauthentication,
        "requiresPushedAuthorizationRequests": spec.requires_pushed_authorization_requests,
        "skipConsent": spec.skip_consent,
        "accessTokenDurationMinutes": spec.access_token_duration_minutes,
        "refreshTokenDurationMinutes": spec.refresh_token_duration_minutes,
    }
    if seen.groups.restricted is not None:
        shared["isGroupRestricted"] = seen.groups.restricted
    if seen.is_document:
        return shared
    return shared | _own(seen, client)


def _own(seen: Seen, client: Client | None) -> JsonObject:
    """What a client has that no document defines."""
    spec = seen.client.spec
    own: JsonObject = {
        "name": nfc(seen.shown_name),
        "isPublic": spec.is_public,
        "pkceEnabled": spec.is_public or spec.pkce_enabled,
    }
    if spec.callback_urls is not None:
        own["callbackURLs"] = list(spec.callback_urls)
    if spec.logout_callback_urls is not None:
        own["logoutCallbackURLs"] = list(spec.logout_callback_urls)
    if supports(seen, Feature.BACKCHANNEL_LOGOUT):
        own["backchannelLogoutURL"] = spec.backchannel_logout_url or ""
    if not isinstance(seen.identities, Fault):
        own["credentials"] = {"federatedIdentities": _identities(seen, client)}
    return own


def _identities(seen: Seen, client: Client | None) -> list[JsonObject]:
    """Those that can be sent, and what the server holds of the others; none while their keys cannot be read."""
    known = () if isinstance(seen.identities, Fault) else seen.identities
    sent = (item if sendable(seen, item) else _held(item, client) for item in known)
    return [dict(item) for item in sent if item is not None]


def sendable(seen: Seen, identity: JsonObject) -> bool:
    """A server that drops the keys would trust the issuer's own address in their place: such an identity is not sent, unless it is there with keys."""
    return "publicKeys" not in identity or supports(seen, Feature.PUBLIC_KEYS)


def _held(identity: JsonObject, client: Client | None) -> JsonObject | None:
    return None if client is None else held_with_keys(identity, client.federated_identities)


def unsent(seen: Seen) -> bool:
    """Whether an identity is not at the server as it is declared, because it cannot be sent."""
    known = () if isinstance(seen.identities, Fault) else seen.identities
    held = ((item, _held(item, seen.found)) for item in known if not sendable(seen, item))
    return any(there is None or not same_identities([item], [there]) for item, there in held)


def supports(seen: Seen, feature: Feature) -> bool:
    """Whether it is worth sending: the version has it, or does not tell and nothing was dropped so far."""
    version = seen.instance.version if seen.instance else None
    if feature in seen.lacks:
        return False
    return version is None or version.supports(feature) is not Support.NO


def create_body(seen: Seen) -> JsonObject:
    """A create: everything that is declared; without a logo, since the server commits before it downloads one.

    A group that is still to come closes the client to everybody until it is there.
    """
    body = {"callbackURLs": [], "logoutCallbackURLs": [], **members(seen), "name": first_name(seen)}
    if seen.groups.restricted is None:
        body["isGroupRestricted"] = True
    id = seen.client.spec.client_id or own_id(seen)
    return body | ({"id": id} if id else {})


def own_id(seen: Seen) -> str | None:
    """The id of a client that must be known as ours, when the resource declares none; else None, and Pocket-ID draws one.

    It is drawn from the uid of the resource, so that a client that is found under it was made by us, whatever became of the pass that made it:
    only then a first secret that is never replaced is ours to make, and a namespace that the instance does not trust may have the client, and one
    that was made on the way to another instance can be told from others when the way ends elsewhere.
    """
    if _by_chance(seen) or seen.client.spec.client_id or seen.instance is None:
        return None
    return drawn_id(seen.client.metadata.uid, seen.instance.key)


def drawn_id(uid: str, instance: Key) -> str:
    """The id that we draw for the client of a resource at an instance."""
    return str(uuid5(_OURS, f"{uid} {instance}"))


def _by_chance(seen: Seen) -> bool:
    """Whether nothing depends on who made the client that is made now."""
    return seen.trusted and mode_of(seen.client) is not Mode.KEPT and not seen.moving


def first_name(seen: Seen) -> str:
    """The name that a client is made under: its birthmark, where it must be known as ours and its id was chosen by a person.

    Anybody may make a client of a chosen id while our create waits, is refused or goes unanswered; nobody else calls one so.
    """
    by_id = seen.client.spec.client_id is None or _by_chance(seen)
    return nfc(seen.shown_name) if by_id else birthmark_of(seen.client.metadata.uid)


def is_newborn(seen: Seen, client: Client) -> bool:
    """Whether it has the name that only we make a client under; it gets the declared one once the status has its id."""
    return is_birthmark(client.name, seen.client.metadata.uid)


def differing(seen: Seen, client: Client) -> tuple[str, ...]:
    """Names of managed members that the server has otherwise."""
    there = {**_EMPTY, **{name: value for name, value in client.raw.items() if value is not None}}
    found = [name for name, value in members(seen, client).items() if there.get(name) != value]
    if "credentials" in found and same_identities(_identities(seen, client), client.federated_identities):
        found.remove("credentials")
    return tuple(found)


def update_body(seen: Seen, client: Client) -> JsonObject:
    """The server's own object with what is declared in it; identities go into the credentials that are there."""
    managed = members(seen, client)
    credentials = managed.pop("credentials", None)
    body = client.body(managed)
    if credentials is not None:
        body["credentials"] = {**(body.get("credentials") or {}), **credentials}
    return body
