"""Key repositories as Keystone reads them, and the plan of their rotation.

Key 0 is staged: every node knows it one rotation before anybody signs with it. The highest is the primary and signs. Those
between only read. A rotation makes the staged key the primary, adds a fresh staged key and drops the oldest; the
primary of before is always kept, so whatever it signed stays readable.
Pure: fresh keys and the time come in as values. Source: keystone `fernet_rotate`; spec/keystone.md 1.3; ADR 0010.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from moorage.core import cron
from moorage.core.meta import JsonObject

ROTATED_AT: Final = "moorage.internal/rotated-at"
ROTATES: Final = "moorage.internal/rotates"
_FORM: Final = re.compile(r"[A-Za-z0-9_-]{43}=")
LEAST: Final = 2
"""Fewest keys of a working repository: the staged one and the primary."""

Keys = Mapping[str, str]
"""Keys by index, "0" to "n", each 44 characters of URL-safe base64 over 32 bytes."""


def initial(staged: str, primary: str) -> dict[str, str]:
    """A new repository of two fresh keys, as `keystone-manage fernet_setup` makes it."""
    return {"0": staged, "1": primary}


def rotate(keys: Keys, fresh: str, most: int) -> dict[str, str]:
    """The repository after one rotation, at most `most` keys; `most` below 3 counts as 3."""
    indexes = sorted(int(index) for index in keys)
    rotated = {index: keys[str(index)] for index in indexes if index}
    rotated[indexes[-1] + 1] = keys["0"]
    while len(rotated) + 1 > max(most, 3):
        del rotated[min(rotated)]
    rotated[0] = fresh
    return {str(index): rotated[index] for index in sorted(rotated)}


def problem(keys: Keys, most: int | None = None) -> str:
    """Why these keys cannot serve, in one phrase without a key; "" when they can."""
    if most is not None and not LEAST + 1 <= len(keys) <= max(most, 3) + 1:
        return f"{len(keys)} keys, wanted 3 to {max(most, 3) + 1}"
    if len(keys) < LEAST:
        return f"{len(keys)} keys, wanted at least {LEAST}"
    if any(not (index.isascii() and index.isdecimal() and str(int(index)) == index) for index in keys):
        return "a key index is no plain number"
    if "0" not in keys:
        return 'the staged key "0" is missing'
    for index in sorted(keys, key=int):
        if not _is_key(keys[index]):
            return f'key "{index}" is not URL-safe base64 of 32 bytes'
    return "" if len(set(keys.values())) == len(keys) else "two keys are equal"


def _is_key(text: str) -> bool:
    if not _FORM.fullmatch(text):
        return False
    try:
        return len(base64.b64decode(text, altchars=b"-_", validate=True)) == 32
    except (binascii.Error, ValueError):
        return False


def keys_of(secret: JsonObject) -> dict[str, str]:
    """The keys of a live Secret; bytes that are no text become replacement characters, which no key holds."""
    data = secret.get("data") or {}
    return {index: base64.b64decode(value).decode(errors="replace") for index, value in data.items()}


def primary(keys: Keys) -> int:
    """Index of the primary key."""
    return max(int(index) for index in keys)


def next_rotation(schedule: str, since: datetime) -> datetime:
    """The first time that the schedule names after `since`, UTC. However long ago that was, it is one rotation.

    Raises:
        InputError: the schedule is no cron expression.
    """
    return cron.read(schedule).next(since)


def rotated_at(secret: JsonObject) -> datetime:
    """When a repository was last rotated, else made.

    Raises:
        ValueError: neither time can be read.
    """
    meta = secret["metadata"]
    text = (meta.get("annotations") or {}).get(ROTATED_AT) or meta.get("creationTimestamp") or ""
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def version_of(secret: JsonObject) -> str:
    """What a staged rotation was derived from: uid and resourceVersion of the repository, nothing of its content."""
    return f"{secret['metadata'].get('uid', '')}.{secret['metadata'].get('resourceVersion', '')}"


@dataclass(frozen=True, slots=True)
class Commit:
    """Make the staged keys the repository, then remove the staging Secret."""

    keys: Keys = field(repr=False)


@dataclass(frozen=True, slots=True)
class Discard:
    """Remove a staging Secret that does not belong to the present repository, or cannot be used."""

    why: str


def staged_step(repository: JsonObject, staging: JsonObject, most: int) -> Commit | Discard:
    """What becomes of a staging Secret that exists: validated and committed, or discarded with its reason.

    The staged set must follow from the present one: the primary stays and the staged key becomes the new primary.
    """
    origin = (staging["metadata"].get("annotations") or {}).get(ROTATES)
    if origin != version_of(repository):
        return Discard("it belongs to another version of the repository")
    staged, present = keys_of(staging), keys_of(repository)
    if why := problem(staged, most):
        return Discard(why)
    if present[str(primary(present))] not in staged.values():
        return Discard("it drops the primary key")
    if staged[str(primary(staged))] != present["0"]:
        return Discard("its primary is not the staged key of before")
    return Commit(staged)


def due(repository: JsonObject, schedule: str, suspend: bool, now: datetime) -> bool:
    """Whether a rotation is to be staged now."""
    return not suspend and next_rotation(schedule, rotated_at(repository)) <= now
