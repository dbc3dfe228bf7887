"""What a namespace that only uses an instance may not make of a group: its own, when people are in it already.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. Who takes over a group adds people to it, and every client that is restricted to
the group lets them in. A group that we made is empty until its id stands in the status, so a crash between the two loses nothing.
"""

from __future__ import annotations

from moorage.pocketid.sibling import not_trusted

from .seen import Seen


def overreach(seen: Seen) -> str:
    """Why the namespace of this group may not have it; "" when it may."""
    group = seen.found
    if group is None or seen.known == group.id or not (group.users or group.user_count or group.ldap_id):
        return ""
    return not_trusted(seen, f"group {group.name!r} exists already and has members, who would share it")
