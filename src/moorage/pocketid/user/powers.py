"""What a namespace that only uses an instance may not make of a user: an administrator, or itself out of a person who exists.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. An administrator's API key opens every client and every user of the server,
and who sets a person's mail address receives that person's login codes: whoever may write PocketIDUsers in an admitted namespace would be
administrator otherwise. A user that we made is known by its id, which nobody else can have.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from moorage.pocketid import powers
from moorage.pocketid.powers import Birth, birthmark, not_trusted, taken_back
from moorage.pocketid.rest_types import User
from moorage.pocketid.sibling import Answer

from .seen import Seen

_BIRTH: Final = Birth("user", "userID", attrgetter("display_name"))


def overreach(seen: Seen) -> str:
    """Why the namespace of this user may not have it as declared; "" when it may."""
    there = seen.found
    if seen.resource.spec.admin:
        return not_trusted(seen, "spec.admin makes an administrator")
    if there is not None and there.is_admin:
        return not_trusted(seen, f"user {there.username!r} is an administrator")
    if there is not None and there.id != seen.known and not _is_made_here(seen, there):
        return not_trusted(
            seen, f"user {there.username!r} exists already, and would be taken over", taken_back("userID")
        )
    return ""


def id_is_written_down(seen: Seen) -> Answer:
    """Before a user with a declared id gets the name that people see."""
    return powers.id_is_written_down(seen, _BIRTH)


def _is_made_here(seen: Seen, user: User) -> bool:
    """Whether a user can only be ours, whatever the status remembers; a declared id may be anybody's, a birthmark may not."""
    drawn = seen.resource.spec.user_id is None and user.id == seen.wanted_id
    return drawn or user.display_name == birthmark(seen)
