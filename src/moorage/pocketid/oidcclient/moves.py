"""What the status is to say of a client that is on its way to another instance, so that whatever is made there is known and can be left again.

Enters: a snapshot. Leaves: an entry of `status.moving`, or nothing. Pure. It is written before anything is made. Source: spec/pocketid.md 3.3, 7.2.
"""

from __future__ import annotations

from moorage.pocketid.references import BoundInstance

from .lookups import Absent, Found
from .powers import overreach
from .seen import Seen
from .types_status import Elsewhere
from .wanted import own_id


def stop_of(seen: Seen) -> Elsewhere | None:
    """What the status is to say of the instance that the client is on its way to; None when it goes nowhere.

    An id that a person chose tells of a client only once it was seen there and is ours: before, it may be anybody's.
    """
    instance = seen.instance
    if not seen.left_behind or instance is None or seen.held_back or overreach(seen):
        return seen.way
    if isinstance(seen.look, Found):
        id: str | None = seen.look.client.id
    elif isinstance(seen.look, Absent) and not (seen.client.spec.is_document or seen.groups.faults):
        id = own_id(seen)
    else:
        return seen.way
    where = BoundInstance(namespace=instance.key.namespace, name=instance.key.name, url=instance.url)
    return Elsewhere(instance=where, client_id=id)
