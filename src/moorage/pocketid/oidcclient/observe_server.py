"""Looks for the client at the server; writes nothing.

Enters: a snapshot with its REST client, the shared lists. Leaves: what the look came to. By the recorded id, by the declared id, else by the
exact name. What the list, which is of a moment ago, does not have is asked for once more before it counts as gone.
Source: spec/pocketid.md 3.4, 3.9, 3.10; case B74.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from moorage.core.meta import Key
from moorage.core.secret import SecretText
from moorage.kube.errors import NotFound as NoObject
from moorage.kube.resources import SECRETS
from moorage.pocketid.reach import Lists, data_text, keeper_of, lists_of
from moorage.pocketid.rest import CIMD, Access, Client, NotFound, PocketID, PocketIDError, RateLimited, nfc
from moorage.pocketid.rest_errors import SHORTEST_WAIT
from moorage.runtime.world import World

from .lookups import Absent, Ambiguous, Found, Lookup, Place, Unknown
from .powers import is_another, is_proven
from .rotation import moment
from .seen import Seen
from .seen_parts import Apis, Scim
from .wanted import drawn_id, is_newborn, own_id

YOUNG: Final = 10.0
"""Seconds that a list may be old when a client is looked up by its name: what it lacks is created."""


async def look(seen: Seen, remote: PocketID, lists: Lists) -> Lookup:
    """The client, its absence, or a look that failed."""
    try:
        found = await _look(seen, remote, lists)
        if (
            isinstance(found, Found)
            and not found.fresh
            and (not found.client.whole or _must_be_fresh(seen, found.client))
        ):
            return Found(await fetch(remote, lists, found.client.id), fresh=True)
        return found
    except NotFound:
        return Unknown("the client went away while it was looked at", SHORTEST_WAIT)
    except PocketIDError as error:
        return unknown(error)


def _must_be_fresh(seen: Seen, client: Client) -> bool:
    """Groups are in no list; and what says that a client is ours is not taken from a list of a moment ago."""
    strange = is_another(seen.after(look=Found(client)))
    return strange or seen.groups.restricted is not False or is_newborn(seen, client)


def unknown(error: PocketIDError) -> Unknown:
    """A look that failed, and when to try again."""
    if isinstance(error, RateLimited):
        return Unknown(str(error), error.wait)
    return Unknown(str(error))


async def fetch(remote: PocketID, lists: Lists, id: str) -> Client:
    """The client as it is now, noted in the shared list.

    Raises:
        NotFound: there is none; the list forgets it.
    """
    try:
        client = await remote.get_oidc_client(id)
    except NotFound:
        lists.clients.forget(id)
        raise
    lists.clients.note(client)
    return client


async def _look(seen: Seen, remote: PocketID, lists: Lists) -> Lookup:
    listed = await lists.clients.get(remote.reader, remote.outline_oidc_clients, seen.now, seen.settings.resync)
    known, declared = seen.known_id, seen.client.spec.client_id
    lost = False
    way = seen.way.client_id if seen.way is not None else None
    for id in dict.fromkeys(item for item in (known or way or own_id(seen), declared) if item):
        if id in listed:
            return Found(listed[id])
        if id != known and not seen.client.spec.is_document:
            continue  # a create tells whether the id is taken
        try:
            return Found(await fetch(remote, lists, id), fresh=True)
        except NotFound:
            lost = lost or id == known
    if declared is not None:
        return Absent(lost)
    return await _named(seen, remote, lists, lost=lost)


async def look_there(seen: Seen, place: Place | None, remote: PocketID, lists: Lists) -> Found | Ambiguous | Absent:
    """What is there of the resource, at a former instance or at the one that it is bound to: found is what only our own create can have made, and nobody else has by now.

    Args:
        place: the former instance; None: the present one, of a resource on its way out.

    Raises:
        PocketIDError: nobody answered.
    """
    doubted = seen.is_doubted if place is None else place.unproven
    id = place.id if place is not None else seen.known_id
    if id:
        try:
            client = await fetch(remote, lists, id)
        except NotFound:
            return Absent()
        proven = not doubted or is_proven(seen, client, home=place is None or place.home)
        return Found(client, fresh=True) if proven else Ambiguous((id,))
    assert seen.instance is not None or place is not None
    key = place.key if place is not None else seen.instance.key if seen.instance is not None else seen.key
    listed = (await lists.clients.get(remote.reader, remote.outline_oidc_clients, seen.now, YOUNG)).values()
    drawn = drawn_id(seen.client.metadata.uid, key)
    ours = (item for item in listed if item.id == drawn or is_newborn(seen, item))
    at = place.key if place is not None else None
    if (found := next((item for item in ours if seen.claimed(item.id, at) is None), None)) is not None:
        return Found(found) if found.whole else Found(await fetch(remote, lists, found.id), fresh=True)
    trusted = seen.trusted if place is None else place.trusted
    like = tuple(item.id for item in listed if _is_like(seen, item)) if trusted else ()
    return Ambiguous(like) if like else Absent()


def _is_like(seen: Seen, client: Client) -> bool:
    """Whether it has what the resource declares to know it by, as its own would, and so would that of anybody else."""
    declared = seen.client.spec.client_id
    if declared is not None:
        return client.id == declared
    return client.client_type != CIMD and nfc(client.name) == nfc(seen.shown_name) and seen.claimed(client.id) is None


async def _named(seen: Seen, remote: PocketID, lists: Lists, *, lost: bool) -> Lookup:
    """The one client of exactly that name; those of metadata documents are not meant.

    The list is younger than the resource: who makes a client by hand and declares it at once means that one.
    """
    made = moment(seen.client.metadata.creation_timestamp)
    age = YOUNG if made is None else (seen.now - made).total_seconds()
    await lists.clients.get(remote.reader, remote.outline_oidc_clients, seen.now, min(YOUNG, age))
    found = [item for item in lists.clients.named(nfc(seen.shown_name)) if item.client_type != CIMD]
    free = [item for item in found if seen.claimed(item.id) is None]
    match free or found:
        case []:
            return Absent(lost)
        case [only]:
            return Found(only)
        case several:
            return Ambiguous(tuple(sorted(item.id for item in several)))


async def look_aside(world: World, seen: Seen, remote: PocketID) -> Seen:
    """What only a read of its own shows; nothing for a client without such features, and for one made just now nobody is asked."""
    lists = lists_of(world, remote.url)
    return seen.after(scim=await _scim(world, seen, remote), apis=await _apis(seen, remote, lists))


async def _apis(seen: Seen, remote: PocketID, lists: Lists) -> Apis:
    """What the client holds; asked when its access is ours, or a document's client is looked at."""
    if not (seen.client.owns_access or seen.is_document):
        return seen.apis
    assert isinstance(seen.look, Found)
    try:
        grants = () if seen.created else await remote.list_api_client_grants(seen.look.client.id)
        return replace(seen.apis, grants=grants, narrowed=_narrowed(seen, seen.look.client, lists))
    except PocketIDError as error:
        return replace(seen.apis, grants=unknown(error))


def _narrowed(seen: Seen, client: Client, lists: Lists) -> dict[str, tuple[Access, Access]]:
    """What was sent for this client and came out as less, as long as the client is of the same kind: it is not sent again for a while."""
    return {
        api: (item.sent, item.granted)
        for (id, api), item in lists.narrowed.items()
        if id == client.id and item.public == client.is_public and item.until > seen.now
    }


async def _scim(world: World, seen: Seen, remote: PocketID) -> Scim:
    """The provider; asked when one is declared, was made by us, or may be left from a pass that was cut short."""
    spec, status = seen.client.spec, seen.client.status
    if spec.scim is None and not status.scim_provider_id and (_is_told(seen) or seen.known_id is None):
        return Scim()
    assert isinstance(seen.look, Found)
    token, fault = await _token(world, seen)
    try:
        provider = None if seen.created else await remote.get_oidc_client_scim_service_provider(seen.look.client.id)
    except PocketIDError as error:
        return Scim(look=unknown(error))
    return Scim(True, provider, token, fault)


def _is_told(seen: Seen) -> bool:
    """Whether a pass over this declaration came to its end: Ready, of this generation. Before, one may have been cut short."""
    return seen.told is not None and seen.told.is_true


async def _token(world: World, seen: Seen) -> tuple[SecretText, str]:
    """The bearer token, or why there is none; without a reference it is empty."""
    ref = seen.client.spec.scim.token_secret_ref if seen.client.spec.scim else None
    if ref is None:
        return SecretText(""), ""
    try:
        secret = await world.client.get(SECRETS, Key(seen.key.namespace, ref.name))
    except NoObject:
        secret = {}
    if secret and (why := keeper_of(world, secret)):
        return SecretText(""), f"scim.tokenSecretRef: {why}"
    found = data_text(secret, ref.key)
    missing = f"scim.tokenSecretRef names {ref.name}/{ref.key}, which does not exist, is empty or no text"
    return SecretText(found), "" if found else missing
