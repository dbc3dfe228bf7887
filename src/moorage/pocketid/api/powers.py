"""What a namespace that only uses an instance may not make of an API: its own, when others made it.

Enters: a snapshot. Leaves: why it may not, or nothing. Pure. It would delete permissions that others use, and their grants with them, open it to
clients with a metadata document, and delete it with the resource.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from moorage.pocketid import powers
from moorage.pocketid.powers import Birth, taken_over
from moorage.pocketid.sibling import Answer

from .seen import Seen

BIRTH: Final = Birth("API", "apiID", attrgetter("name"))


def overreach(seen: Seen) -> str:
    """Why the namespace of this API may not have it; "" when it may."""
    return taken_over(seen, BIRTH)


def id_is_written_down(seen: Seen) -> Answer:
    """Before it gets its name."""
    return powers.id_is_written_down(seen, BIRTH)
