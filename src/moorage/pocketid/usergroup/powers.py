"""What a namespace that only uses an instance may not make of a group: its own, when others made it.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. Who takes over a group adds people to it, and every client that is restricted to
the group lets them in. A group that we made is younger than its resource, and empty until its id stands in the status: a crash between the two
loses nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from moorage.pocketid.rest_types import Group
from moorage.pocketid.sibling import not_trusted

from .seen import Seen

SKEW: Final = timedelta(minutes=10)


def overreach(seen: Seen) -> str:
    """Why the namespace of this group may not have it; "" when it may."""
    group = seen.found
    if group is None or seen.known == group.id or not (_is_used(group) or _is_older(group, seen)):
        return ""
    return not_trusted(seen, f"group {group.name!r} exists already, and would be taken over")


def _is_used(group: Group) -> bool:
    return bool(group.users or group.user_count or group.ldap_id)


def _is_older(group: Group, seen: Seen) -> bool:
    """Than its resource, by more than two clocks differ."""
    made, declared = group.created_at, seen.resource.metadata.creation_timestamp
    return made is not None and declared is not None and made + SKEW < datetime.fromisoformat(declared)
