"""What a namespace that only uses an instance may not make of a client: its own, when others made it.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. Who takes a client over ends its secret, sets its callback URLs and opens it. One of a
metadata document is everybody's who uses the application: whoever has it decides on consent, access and groups for all of them.
"""

from __future__ import annotations

from moorage.pocketid.powers import is_birthmark, may_not, taken_back
from moorage.pocketid.rest_types import Client

from . import render
from .lookups import Place
from .rotation import stamp
from .secrets import prefix
from .seen import Seen
from .wanted import is_newborn, own_id


def overreach(seen: Seen) -> str:
    """Why the namespace of this client may not have what was found; "" when it may."""
    found = seen.found
    if seen.instance is None or seen.trusted or seen.created or (found is not None and _is_ours(seen, found)):
        return ""
    if seen.is_document:
        return may_not(
            f"client {seen.client.spec.client_id} would be managed for everybody who uses that application",
            seen.key.namespace,
            seen.instance.key,
        )
    if found is None:
        return ""
    asked = f"client {found.name!r} (id {found.id}) exists already, and would be taken over"
    return may_not(asked, seen.key.namespace, seen.instance.key, taken_back("clientID"))


def adopts(seen: Seen) -> bool:
    """Whether the client was found, not made, and is ours from this pass on."""
    found = seen.found
    return found is not None and seen.adopted and not is_newborn(seen, found) and not overreach(seen)


def is_another(seen: Seen) -> bool:
    """Whether the recorded client was deleted, and another one was made by hand under the same declared id: ids of secrets are drawn.

    It has secrets, none of which we know, or none at all, and is called otherwise or leads elsewhere than what the status saw. Either alone is no proof: people
    replace secrets, and edit settings, of the client that is ours. Where nobody looked for a while, what is not proven to be ours is another:
    name and addresses are what the namespace chose.
    """
    found, status = seen.found, seen.client.status
    if found is None or seen.client.spec.client_id is None or is_proven(seen, found, home=not seen.moved):
        return False
    if seen.is_doubted:
        return found.id == (seen.way.client_id if seen.moved and seen.way is not None else seen.known_id)
    if found.id != seen.known_id or not _had_secrets(seen, found) or _begins_like_ours(seen, found):
        return False
    there = found.raw
    saw = (status.name, status.callback_urls or (), status.logout_callback_urls or ())
    return saw != (found.name, tuple(there.get("callbackURLs") or ()), tuple(there.get("logoutCallbackURLs") or ()))


def is_proven(seen: Seen, client: Client, *, home: bool) -> bool:
    """Whether it has what nobody else can have given it: a secret of an id or a time that we know, or its first name.

    Args:
        home: it is looked at where the resource is at home, of which the status tells the times.
    """
    status, mark = seen.client.status, seen.client.status.client_secret
    if is_newborn(seen, client):
        return True
    times = {row.created for row in status.secrets or ()} if home else set()
    ids = {mark.id, mark.first} if mark is not None else set()
    if any(row.id in ids or stamp(row.created_at) in times for row in client.secrets):
        return True
    marked = render.stored(seen.client, seen.kept.live, seen.kept.former).history.mark.partition(" ")[0]
    return any(row.id == marked for row in client.secrets)


def _had_secrets(seen: Seen, found: Client) -> bool:
    """Whether the recorded client had a secret of ours that can be missed; elsewhere than where all may be had also whether this one has and that one had none.

    While the status has the first name, a secret may have been made since.
    """
    status = seen.client.status
    if status.client_secret is not None and any(row.current for row in status.secrets or ()):
        return True
    settled = status.name is not None and not is_birthmark(status.name, seen.client.metadata.uid)
    return not seen.trusted and settled and bool(found.secrets)


def _begins_like_ours(seen: Seen, found: Client) -> bool:
    """Whether a secret begins like the stored or the declared value: nobody can guess how that of somebody else begins."""
    stored = render.stored(seen.client, seen.kept.live, seen.kept.former)
    values = (stored.value, seen.declared.value if seen.declared else None)
    begins = {prefix(value) for value in values if value} - {""}
    return any(row.prefix in begins for row in found.secrets)


def _is_ours(seen: Seen, found: Client) -> bool:
    """By the recorded id, as long as it was seen at this server; by an id or a first name that follows from our uid."""
    if seen.another:
        return False
    if (
        found.id == seen.known_id
        or found.id == own_id(seen)
        or is_newborn(seen, found)
        or (seen.way is not None and found.id == seen.way.client_id)
    ):
        return True
    return any(_is_that_of(seen, place, found) for place in seen.places)


def _is_that_of(seen: Seen, place: Place, found: Client) -> bool:
    """Whether the status tells of this client from an instance that the selected one believes, at its address; at another it is one by a secret of ours.

    Whoever may create an instance has it name any address, with a key that may not even read what is there.
    """
    if not place.home or not place.believed or seen.instance is None or found.id != place.id:
        return False
    same = place.where.url.rstrip("/") == seen.instance.url and not place.unproven
    return same or is_proven(seen, found, home=True)
