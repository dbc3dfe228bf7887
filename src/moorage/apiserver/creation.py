"""managedFields of created objects, remembered by their shape.

The fields that a create owns follow from which fields there are, not from their values, unless there are lists of objects:
controllers create thousands of objects of few shapes. Pure but for its memory, which is bounded.
"""

from __future__ import annotations

from typing import Any

from moorage.core.meta import JsonObject

_MOST = 2048
Shape = tuple[Any, ...]


class HasObjects(Exception):
    """The value holds a list of objects, whose fields are named by their values."""


def shape_of(value: Any) -> Any:
    """What of a value decides about its fields.

    Raises:
        HasObjects: values within lists of objects decide, too.
    """
    if isinstance(value, dict):
        return tuple([(name, shape_of(item)) for name, item in value.items()])
    if isinstance(value, list):
        if any(isinstance(item, dict | list) for item in value):
            raise HasObjects
        return ("", *value)
    return value is None


class CreatedFields:
    """Entries of managedFields by writer and shape."""

    def __init__(self) -> None:
        self._known: dict[Shape, JsonObject] = {}

    def find(self, key: Shape, now: str) -> list[JsonObject] | None:
        """The managedFields of a create like one that was seen before."""
        entry = self._known.get(key)
        return None if entry is None else [{**entry, "time": now}]

    def note(self, key: Shape, entries: list[JsonObject]) -> None:
        """Remember what a create came to."""
        if len(self._known) >= _MOST:
            self._known.clear()
        if len(entries) == 1:
            self._known[key] = entries[0]
