"""Kind Keystone: an OpenStack Identity service.

`KIND` and `ADMISSION` are light; `ROOM` loads the controller. Each is loaded when it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .admission import ADMISSION
    from .room import ROOM
    from .types import KIND

__all__ = ["ADMISSION", "KIND", "ROOM"]
_HOMES = {"ADMISSION": "admission", "KIND": "types", "ROOM": "room"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
