"""Whose object it is: nothing foreign is ever seized. Pure."""

from __future__ import annotations

from moorage.core.errors import WireError
from moorage.core.meta import JsonObject, Key, Ref, ResourceType, controller_of, key_of


class ForeignObject(WireError):
    """An object of the wanted name exists and belongs to somebody else; it is not touched."""

    code = "foreign_object"

    def __init__(self, rt: ResourceType, key: Key, owner: Ref | None) -> None:
        whose = f"{owner.kind} {owner.key.name}" if owner else "nobody we know"
        super().__init__(f"{rt.kind} {key}", f"it exists and is controlled by {whose}", "Delete or rename it")
        self.resource, self.key, self.owner = rt, key, owner


def refuse_foreign(rt: ResourceType, live: JsonObject, wanted: JsonObject) -> None:
    """Refuse to write over a live object that the controller named by `wanted` does not control.

    Raises:
        ForeignObject: somebody else, or nobody, controls it. A `wanted` that names no controller is never refused.
    """
    ours = controller_of(wanted)
    if ours is None:
        return
    theirs = controller_of(live)
    if theirs is None or theirs.uid != ours.uid:
        raise ForeignObject(rt, key_of(live), theirs)
