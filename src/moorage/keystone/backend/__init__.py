"""Kind KeystoneIdentityBackend: one external identity backend of a Keystone.

`ADMISSION` and `KIND` are light; `ROOM` loads the controller, so it is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .admission import ADMISSION
from .types import KIND

if TYPE_CHECKING:
    from .room import ROOM

__all__ = ["ADMISSION", "KIND", "ROOM"]


def __getattr__(name: str) -> Any:
    if name == "ROOM":
        from .room import ROOM

        return ROOM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
