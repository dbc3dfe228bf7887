"""Keystone: the kinds, their admissions, their controllers, what they may do.

`KINDS`, `ADMISSIONS` and `RULES` are light; `ROOMS` brings the HTTP stack. Each is made when first asked for, so that `moorage lint`
stays quick.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from moorage.runtime.install import Access
    from moorage.runtime.room import Room
    from moorage.schema import Admission, Kind

    KINDS: tuple[Kind[Any], ...]
    ADMISSIONS: tuple[Admission, ...]
    ROOMS: tuple[Room[Any, Any], ...]
    RULES: tuple[Access, ...]

_LAZY = ("ADMISSIONS", "KINDS", "ROOMS", "RULES")
__all__ = ["ADMISSIONS", "KINDS", "ROOMS", "RULES", "admissions_of"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = {"KINDS": _kinds, "ADMISSIONS": _admissions, "ROOMS": _rooms, "RULES": _rules}[name]()
    globals()[name] = found
    return found


def admissions_of(kinds: Collection[str]) -> tuple[Admission, ...]:
    """The admissions of these kinds only, so that a caller does not load the others; all of them when one name is not ours."""
    found: list[Admission] = []
    for kind in sorted(kinds):
        match kind:
            case "Keystone":
                from .service.admission import ADMISSION as SERVICE

                found.append(SERVICE)
            case "KeystoneIdentityBackend":
                from .backend.admission import ADMISSION as BACKEND

                found.append(BACKEND)
            case _:
                return _admissions()
    return tuple(found)


def _kinds() -> tuple[Kind[Any], ...]:
    from .backend.types import KIND as BACKEND
    from .service.types import KIND as SERVICE

    return (SERVICE, BACKEND)


def _admissions() -> tuple[Admission, ...]:
    from .backend.admission import ADMISSION as BACKEND
    from .service.admission import ADMISSION as SERVICE

    return (SERVICE, BACKEND)


def _rooms() -> tuple[Room[Any, Any], ...]:
    from .backend.room import ROOM as BACKEND
    from .service.room import ROOM as SERVICE

    return (SERVICE, BACKEND)


def _rules() -> tuple[Access, ...]:
    from .service.access import ACCESS

    return ACCESS
