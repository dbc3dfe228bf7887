"""Defaulting and validation of PocketIDUserGroup: what bounds and CEL of `types.py` cannot say.

Enters: an object, its stored form and its siblings. Leaves: the completed object, or a verdict. Pure.
Source: spec/pocketid.md 2.2, 4.6; decisions, Admission 1, 4, 5.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

from moorage.core.meta import JsonObject
from moorage.pocketid.judgement import Check, Finding, admission, beside, claims, limit, one_line, selector
from moorage.pocketid.usergroup.types import KIND, PocketIDUserGroup
from moorage.schema.fielderror import duplicate
from moorage.schema.review import Review

FRIENDLY_LIMIT: Final = 50
"""Characters of a friendly name that Pocket-ID admits."""


def server_limits(group: PocketIDUserGroup, _review: Review) -> Iterator[Finding]:
    """Names that are derived keep Pocket-ID's bounds, too."""
    yield from limits(group)
    yield from claims(group.spec.custom_claims)
    yield from one_line("spec.name", group.spec.name)
    yield from one_line("spec.friendlyName", group.spec.friendly_name)


def limits(group: PocketIDUserGroup) -> Iterator[str]:
    """What Pocket-ID will refuse of the names, a sentence each; of a pass it is the error."""
    name = group.spec.name or group.metadata.name
    if len(name) < 2:
        yield "metadata.name: Pocket-ID wants names of at least 2 characters: set spec.name"
    if group.spec.friendly_name is None:
        yield from limit("spec.friendlyName (it is the name unless it is set)", name, FRIENDLY_LIMIT)


def siblings(group: PocketIDUserGroup, review: Review) -> Iterator[Finding]:
    """Two resources never claim one group; the later one is told."""
    wanted = _name(review.object)
    path = "spec.name" if group.spec.name else "metadata.name"
    for other in beside(review):
        if _name(other) == wanted:
            yield duplicate(path, wanted, f"is claimed by PocketIDUserGroup {other['metadata']['name']} already")


def meets(obj: JsonObject) -> Iterator[str]:
    """The name."""
    yield _name(obj)


def _name(obj: JsonObject) -> str:
    """The name as Pocket-ID keeps it: NFC."""
    return unicodedata.normalize("NFC", str(obj["spec"].get("name") or obj["metadata"]["name"]))


CHECKS: Final[tuple[Check[PocketIDUserGroup], ...]] = (server_limits, selector, siblings)
ADMISSION: Final = admission(KIND, CHECKS, meets)
