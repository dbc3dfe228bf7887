"""What a namespace that only uses an instance may not make of a client: its own, when others made it.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. Who takes a client over ends its secret, sets its callback URLs and opens it. One of a
metadata document is everybody's who uses the application: whoever has it decides on consent, access and groups for all of them.
"""

from __future__ import annotations

from moorage.pocketid.powers import may_not, taken_back
from moorage.pocketid.rest_types import Client

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


def _is_ours(seen: Seen, found: Client) -> bool:
    """By the recorded id, as long as it was seen at this server; by an id or a first name that follows from our uid."""
    status = seen.client.status
    if (
        found.id == seen.known_id
        or found.id == own_id(seen)
        or is_newborn(seen, found)
        or (seen.way is not None and found.id == seen.way.client_id)
    ):
        return True
    bound = status.instance
    if bound is not None and seen.instance is not None and found.id == status.client_id:
        return bound.url.rstrip("/") == seen.instance.url
    return False
