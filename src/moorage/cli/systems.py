"""The systems of this version, all kinds of all of them. A further system is one line here.

Enters: nothing. Leaves: `KINDS`, `ADMISSIONS`, `ROOMS` and `RULES` of all systems, each made when first asked for; kinds are light, rooms
bring the HTTP stack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from moorage import keystone, pocketid
from moorage.runtime.system import CONSTANTS, System

if TYPE_CHECKING:
    from moorage.runtime.install import Access
    from moorage.runtime.room import Room
    from moorage.schema import Admission, Kind

    KINDS: tuple[Kind[Any], ...]
    ADMISSIONS: tuple[Admission, ...]
    ROOMS: tuple[Room[Any, Any], ...]
    RULES: tuple[Access, ...]

SYSTEMS: Final[tuple[System, ...]] = (keystone.SYSTEM, pocketid.SYSTEM)
__all__ = ["ADMISSIONS", "KINDS", "ROOMS", "RULES", "SYSTEMS", "admissions_of", "reasons_of"]


def __getattr__(name: str) -> Any:
    if name not in CONSTANTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = tuple(chain.from_iterable(system.constant(name) for system in SYSTEMS))
    globals()[name] = found
    return found


def admissions_of(kinds: Collection[str]) -> tuple[Admission, ...]:
    """The admissions of these kinds only, so that a caller does not load the others; all of them when one name is not ours."""
    ours = {kind for system in SYSTEMS for kind in system.folders}
    wanted = kinds if ours.issuperset(kinds) else ours
    return tuple(chain.from_iterable(system.admissions_of(wanted) for system in SYSTEMS))


def reasons_of(kind: str) -> Mapping[str, Collection[str]]:
    """Conditions of one of our kinds and the reasons that each may have."""
    return next(system.reasons(kind) for system in SYSTEMS if kind in system.folders)
