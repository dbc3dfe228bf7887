"""Pocket-ID: OIDC clients, their secrets, and what belongs to them.

`KINDS`, `ADMISSIONS` and `RULES` are light; `ROOMS` brings the HTTP stack. Each is made when first asked for, so that `moorage lint`
stays quick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from moorage.runtime.system import System

if TYPE_CHECKING:
    from moorage.runtime.install import Access
    from moorage.runtime.room import Room
    from moorage.schema import Admission, Kind

    KINDS: tuple[Kind[Any], ...]
    ADMISSIONS: tuple[Admission, ...]
    ROOMS: tuple[Room[Any, Any], ...]
    RULES: tuple[Access, ...]

SYSTEM: Final = System(
    __name__,
    {
        "PocketIDInstance": "instance",
        "PocketIDUser": "user",
        "PocketIDUserGroup": "usergroup",
        "PocketIDAPI": "api",
        "PocketIDOIDCClient": "oidcclient",
    },
    access="access",
)
__getattr__ = SYSTEM.constant
__all__ = ["ADMISSIONS", "KINDS", "ROOMS", "RULES", "SYSTEM"]
