"""The memory of the backend room: one for each World, empty after a restart, never needed for correctness.

Enters: a world. Leaves: tokens, last probes of directories, names and looks of a moment ago.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from moorage.keystone.identity import Tokens
from moorage.net.sessions import Sessions
from moorage.runtime.world import World

from .directory import Probes
from .recent import Looks, Names


@dataclass(frozen=True)
class Memory:
    """What outlives a pass."""

    tokens: Tokens
    probes: Probes = field(default_factory=Probes)
    names: Names = field(default_factory=Names)
    looks: Looks = field(default_factory=Looks)


_MEMORIES: Final[WeakKeyDictionary[Sessions, Memory]] = WeakKeyDictionary()


def memory_of(world: World) -> Memory:
    """The memory that belongs to this world."""
    found = _MEMORIES.get(world.http)
    if found is None:
        found = _MEMORIES[world.http] = Memory(Tokens(world.now))
    return found
