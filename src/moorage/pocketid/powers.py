"""What a namespace that only uses an instance may not have: what is at the server already, whoever made it.

Enters: a snapshot. Leaves: one sentence why it may not, with the ways out, or nothing. Pure. Who takes over a group lets people into every client
that is restricted to it; who takes over an API deletes permissions that others use, and in the end the API. Groups and APIs have ids that the
server draws, so one that we made is known by its birthmark until its id stands in the status: a crash between the two loses nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from moorage.core.meta import Key

from .sibling import Answer, Record, Sibling

_MARKS: Final = uuid.UUID("2b0f6a52-7f0e-4a57-9c1d-3a1c6f1f7d04")
"""Space of the birthmarks; any constant would do."""
_LENGTH: Final = 36
"""Characters of a birthmark."""


@dataclass(frozen=True, slots=True)
class Birth:
    """How a counterpart is known as ours from its making on.

    Args:
        word: what it is, in sentences.
        field: where the status keeps its id.
        called: what people read of it, which may be changed at any time: the place of the birthmark.
    """

    word: str
    field: str
    called: Callable[[Any], str]


def not_trusted(seen: Sibling[Any, Any], asked: str, further: str = "") -> str:
    """Why the namespace of a resource may not have what is asked of its instance, with the ways out; "" where the instance trusts it."""
    instance = seen.bond.instance
    if instance is None or seen.bond.trusts:
        return ""
    return may_not(asked, seen.resource.metadata.namespace, Key(instance.namespace, instance.name), further)


def may_not(asked: str, space: str, instance: Key, further: str = "") -> str:
    """What is asked, which namespace may not have it, and the ways out."""
    return (
        f"{asked}, which namespace {space} may not: {further}declare it in namespace {instance.namespace},"
        f" or name {space} in spec.adminNamespaces of PocketIDInstance {instance}"
    )


def taken_back(field: str) -> str:
    """The ways out where something is there: one for what was made here before, and the status is lost, or the resource was deleted and it stayed."""
    return f"take another name, have what is there deleted in Pocket-ID, have its id written into status.{field} (kubectl edit --subresource=status) if it was made here before, "


def first_name(seen: Sibling[Any, Any], declared: str) -> str:
    """What people read of a counterpart that is created now: its birthmark, where ours must be told from those of others."""
    return declared if seen.bond.trusts else birthmark(seen)


def taken_over(seen: Sibling[Any, Any], birth: Birth) -> str:
    """Why a counterpart is not for this namespace: it exists, and this resource did not make it; "" when it may be had."""
    there = seen.found
    if there is None or there.id == seen.known or is_newborn(seen, birth):
        return ""
    asked = f"{birth.word} {there.name!r} exists already, and would be taken over"
    return not_trusted(seen, asked, taken_back(birth.field))


def id_is_written_down(seen: Sibling[Any, Any], birth: Birth) -> Answer:
    """Before the birthmark goes: from then on the id says that it is ours."""
    there = seen.found
    if there is None or not is_newborn(seen, birth):
        return None
    recorded = seen.resource.status.to_wire().get(birth.field)
    return (
        None if recorded == there.id else Record(((birth.field, there.id),), "its id, by which it is known from now on")
    )


def is_newborn(seen: Sibling[Any, Any], birth: Birth) -> bool:
    """Whether what was found is called as only we call what we make."""
    return seen.found is not None and is_birthmark(birth.called(seen.found), seen.resource.metadata.uid)


def birthmark(seen: Sibling[Any, Any]) -> str:
    """What only this resource calls anything."""
    return birthmark_of(seen.resource.metadata.uid)


def birthmark_of(uid: str) -> str:
    """It follows from the uid of a resource: nobody else calls anything so."""
    return str(uuid.uuid5(_MARKS, uid))


def is_birthmark(text: str, uid: str) -> bool:
    """Whether it is that of a resource; nearly nothing is as long as one, so one is seldom drawn."""
    return len(text) == _LENGTH and text == birthmark_of(uid)
