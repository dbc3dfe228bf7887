"""What a declaration says besides types: CEL rules and printer columns.

Enters: literals in a room's `types.py`. Leaves: their entries in a CRD. It evaluates nothing.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from moorage.core.meta import JsonObject

ColumnType = Literal["string", "integer", "number", "boolean", "date"]


class Rule(NamedTuple):
    """One `x-kubernetes-validations` entry. A rule that names `oldSelf` holds between the stored and the new value.

    Args:
        expression: CEL over `self` (and `oldSelf`) that must be true.
        message: the sentence shown when it is not.
        field_path: JSON path below this node that the complaint names, such as `.name`.
    """

    expression: str
    message: str = ""
    field_path: str = ""

    def to_wire(self) -> JsonObject:
        """The CRD entry, keys in a fixed order."""
        wire: JsonObject = {"rule": self.expression}
        if self.message:
            wire["message"] = self.message
        if self.field_path:
            wire["fieldPath"] = self.field_path
        return wire


class Column(NamedTuple):
    """One printer column. `priority` 0 is shown always, more only with `-o wide`."""

    name: str
    type: ColumnType
    json_path: str
    priority: int = 0

    def to_wire(self) -> JsonObject:
        """The `additionalPrinterColumns` entry, keys in a fixed order."""
        wire: JsonObject = {"name": self.name, "type": self.type, "jsonPath": self.json_path}
        if self.priority:
            wire["priority"] = self.priority
        return wire
