"""The controller of PocketIDUser: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. A watch on Secrets, so that a changed value is taken over at once, and a Secret of
ours that somebody edits or deletes comes back. Source: spec/pocketid.md 2.4.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject, Key
from moorage.kube.resources import SECRETS
from moorage.pocketid.sibling_report import counted
from moorage.pocketid.waking import instance_watch, names_index, own_key
from moorage.runtime.room import Caches, Index, Room, Watch, by_index, owned

from .apply import apply
from .decide import decide
from .observe import KEYS_BY_USER, observe, owner_of_keys
from .report import report
from .seen import Plan, Seen
from .types import FINALIZER, KIND

_VALUES: Final = ("username", "firstName", "lastName", "email", "displayName")


def _secrets_of(user: JsonObject) -> Iterable[JsonObject]:
    """Secrets that are read; `names_index` takes {name}."""
    spec = user["spec"]
    if spec.get("userInfoSecretRef"):
        yield {"name": spec["userInfoSecretRef"]["name"]}
    for name in _VALUES:
        source = (spec.get(name) or {}).get("valueFrom") or {}
        if "secretKeyRef" in source:
            yield {"name": source["secretKeyRef"]["name"]}


_READING: Final = names_index(KIND.resource, "pocketid-user-by-secret", _secrets_of)
_READ_BY: Final = by_index(KIND.resource, _READING.name, own_key)
_OWNING: Final = owned(KIND)


def _of_secret(secret: JsonObject, caches: Caches) -> Iterable[Key]:
    return {*_READ_BY(secret, caches), *_OWNING(secret, caches)}


ROOM: Final[Room[Seen, Plan]] = Room(
    name="pocketiduser",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=counted(KIND, report),
    watches=(instance_watch(KIND), Watch(SECRETS, _of_secret)),
    indices=(_READING, Index(SECRETS, KEYS_BY_USER, owner_of_keys)),
)
