"""What a namespace that only uses an instance may not make of a user: an administrator, or itself out of a person who exists.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. An administrator's API key opens every client and every user of the server,
and who sets a person's mail address receives that person's login codes: whoever may write PocketIDUsers in an admitted namespace would be
administrator otherwise. A user that we made is known by its id, which nobody else can have.
"""

from __future__ import annotations

from moorage.pocketid.powers import not_trusted

from .seen import Seen


def overreach(seen: Seen) -> str:
    """Why the namespace of this user may not have it as declared; "" when it may."""
    there = seen.found
    if seen.resource.spec.admin:
        return not_trusted(seen, "spec.admin makes an administrator")
    if there is not None and there.is_admin:
        return not_trusted(seen, f"user {there.username!r} is an administrator")
    if there is not None and there.id != seen.known and not is_made_here(seen, there.id):
        return not_trusted(seen, f"user {there.username!r} exists already, and would be taken over")
    return ""


def is_made_here(seen: Seen, id: str) -> bool:
    """Whether a user can only be ours, whatever the status remembers; a declared id may be anybody's."""
    return seen.resource.spec.user_id is None and id == seen.wanted_id
