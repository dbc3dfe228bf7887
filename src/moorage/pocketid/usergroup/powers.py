"""What a namespace that only uses an instance may not make of a group: its own, when others made it.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. Empty or not: a client may be restricted to a group that nobody is in yet.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from moorage.pocketid import powers
from moorage.pocketid.powers import Birth, taken_over
from moorage.pocketid.sibling import Answer

from .seen import Seen

BIRTH: Final = Birth("group", "groupID", attrgetter("friendly_name"))


def overreach(seen: Seen) -> str:
    """Why the namespace of this group may not have it; "" when it may."""
    return taken_over(seen, BIRTH)


def id_is_written_down(seen: Seen) -> Answer:
    """Before it gets the name that people see."""
    return powers.id_is_written_down(seen, BIRTH)
