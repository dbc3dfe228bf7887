"""Paths of fields while a walk is under way: cheap to extend, made into text only for a complaint.

Enters: a parent path and a property name or an index. Leaves: text such as `spec.groups[0].name`.
"""

from __future__ import annotations

from typing import Any, TypeAlias


class MapKey(str):
    """The key of a map in a path that is shown as `[key]`."""

    __slots__ = ()


Path: TypeAlias = tuple[Any, str | int] | None
"""None is the object as a whole; else (path of the parent, property name or index)."""


def path_text(path: Path, base: str = "") -> str:
    """The dotted form below `base`."""
    parts: list[str] = []
    while path is not None:
        path, step = path
        parts.append(f"[{step}]" if isinstance(step, int | MapKey) else f".{step}")
    text = base + "".join(reversed(parts))
    return text.removeprefix(".")
