"""The Keystone room: its doors put together."""

from __future__ import annotations

from functools import partial
from typing import Final

from moorage.runtime.room import Room

from .apply import apply
from .decide import decide
from .observe import INDICES, WATCHES, Memory, observe
from .plan import Plan
from .report import report
from .seen import Seen
from .types import KIND


def room() -> Room[Seen, Plan]:
    """A controller for Keystones with a memory of its own. It has no finalizer: children go by garbage collection."""
    memory = Memory()
    return Room(
        name="keystone",
        kind=KIND,
        finalizer=None,
        observe=partial(observe, memory),
        decide=decide,
        apply=partial(apply, memory),
        report=report,
        watches=WATCHES,
        indices=INDICES,
    )


ROOM: Final[Room[Seen, Plan]] = room()
"""The controller of this process."""
