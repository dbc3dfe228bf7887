"""The controller of PocketIDOIDCClient: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. Secrets that people refer to are not watched (decisions, Pocket-ID 4): a declared
secret or a key set is read again on every pass. Source: spec/pocketid.md 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject, Key, key_of
from moorage.core.outcome import Outcome
from moorage.kube.resources import SECRETS
from moorage.pocketid.api.types import KIND as API
from moorage.pocketid.usergroup.types import KIND as USER_GROUP
from moorage.pocketid.waking import instance_watch, named_keys, names_index, own_key
from moorage.runtime.room import Caches, Index, Report, Room, Watch, by_index, owned

from . import metrics
from .apply import apply
from .decide import decide
from .observe import observe
from .observe_references import BY_LISTED
from .plans import Plan
from .report import report
from .rivals import BY_CLAIM, claims
from .seen import Seen
from .types import FINALIZER, KIND

BY_GROUP: Final = "pocketid-client-by-group"
BY_API: Final = "pocketid-client-by-api"


def _clients_of(group: JsonObject) -> Iterable[JsonObject]:
    return group["spec"].get("allowedOIDCClients") or ()


def _groups_of(client: JsonObject) -> Iterable[JsonObject]:
    return client["spec"].get("allowedUserGroups") or ()


def _apis_of(client: JsonObject) -> Iterable[JsonObject]:
    return [item["apiRef"] for item in client["spec"].get("apiAccess") or ()]


_LISTING: Final = names_index(USER_GROUP.resource, BY_LISTED, _clients_of)
_NAMING: Final = names_index(KIND.resource, BY_GROUP, _groups_of)
_USING: Final = names_index(KIND.resource, BY_API, _apis_of)
_OWNER: Final = owned(KIND)
_NAMED_BY: Final = by_index(KIND.resource, _NAMING.name, own_key)
_LISTED_BY: Final = named_keys(_LISTING)


def _by_group(group: JsonObject, caches: Caches) -> Iterable[Key]:
    """Clients that name the group, and those that the group lists."""
    return [*_NAMED_BY(group, caches), *_LISTED_BY(group, caches)]


def _reference_changed(old: JsonObject | None, new: JsonObject | None) -> bool:
    """What clients read of a group or an API: the declaration, the ids, whether it is Ready."""
    return old is None or new is None or _read(old) != _read(new)


def _read(obj: JsonObject) -> object:
    meta, status = obj["metadata"], obj.get("status") or {}
    said = [(item["type"], item["status"]) for item in status.get("conditions") or ()]
    ids = tuple(status.get(name) for name in ("groupID", "apiID", "resource", "permissions", "instance"))
    return meta.get("generation"), meta.get("deletionTimestamp"), ids, said


def _rivals(client: JsonObject, caches: Caches) -> Iterable[Key]:
    """Others that claim the same client: one that goes frees it."""
    for claim in claims(client):
        for item in caches.list(KIND.resource, index=BY_CLAIM, value=claim):
            if item["metadata"].get("uid") != client["metadata"].get("uid"):
                yield key_of(item)


def _claim_changed(old: JsonObject | None, new: JsonObject | None) -> bool:
    return old is None or new is None or _claims(old) != _claims(new)


def _claims(obj: JsonObject) -> object:
    """What `claims` follows from, and whether it is given up."""
    meta, status = obj["metadata"], obj.get("status") or {}
    has = status.get("clientID"), status.get("moving")
    return meta.get("uid"), meta.get("generation"), has, bool(meta.get("deletionTimestamp"))


def _by_secret(secret: JsonObject, caches: Caches) -> Iterable[Key]:
    """The client whose Secret somebody changed; what it says of itself matters as much as what it holds."""
    return () if (SECRETS, key_of(secret)) in caches.writing else _OWNER(secret, caches)


def _reported(seen: Seen, outcome: Outcome) -> Report:
    """The report, and the same in numbers."""
    said = report(seen, outcome)
    metrics.observe(seen, ready=all(item.is_true for item in said.conditions))
    return said


ROOM: Final[Room[Seen, Plan]] = Room(
    name="pocketidoidcclient",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=_reported,
    watches=(
        instance_watch(KIND),
        Watch(USER_GROUP.resource, _by_group, _reference_changed),
        Watch(API.resource, by_index(KIND.resource, _USING.name, own_key), _reference_changed),
        Watch(SECRETS, _by_secret),
        Watch(KIND.resource, _rivals, _claim_changed),
    ),
    indices=(
        Index(KIND.resource, BY_CLAIM, claims),
        _NAMING,
        _USING,
        _LISTING,
    ),
    rounds=80,
)
