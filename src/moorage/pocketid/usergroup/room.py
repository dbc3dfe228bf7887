"""The controller of PocketIDUserGroup: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. Clients wake it both ways: those that name a group hold it, those that it lists
are shown by it. Source: spec/pocketid.md 2.2, 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject, Key
from moorage.core.outcome import Outcome
from moorage.kube.resources import SECRETS
from moorage.pocketid import metrics
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.sibling_report import counted
from moorage.pocketid.user.types import KIND as USER
from moorage.pocketid.waking import instance_watch, named_keys, names_index, own_key
from moorage.runtime.room import Caches, Report, Room, Watch, by_index, nobody

from .apply import apply
from .decide import decide
from .observe import BY_NAMED_GROUP, observe
from .report import report
from .seen import Plan, Seen
from .types import FINALIZER, KIND


def _users_of(group: JsonObject) -> Iterable[JsonObject]:
    return (group["spec"].get("users") or {}).get("userRefs") or ()


def _clients_of(group: JsonObject) -> Iterable[JsonObject]:
    return group["spec"].get("allowedOIDCClients") or ()


def _groups_of(client: JsonObject) -> Iterable[JsonObject]:
    return client["spec"].get("allowedUserGroups") or ()


_NAMING: Final = names_index(CLIENT.resource, BY_NAMED_GROUP, _groups_of)
_LISTING: Final = names_index(KIND.resource, "pocketid-group-by-listed-client", _clients_of)
_HAVING: Final = names_index(KIND.resource, "pocketid-group-by-user", _users_of)
_LISTED_BY: Final = by_index(KIND.resource, _LISTING.name, own_key)
_NAMED_BY: Final = named_keys(_NAMING)


def _of_client(client: JsonObject, caches: Caches) -> Iterable[Key]:
    """Groups that the client names, and groups that list it."""
    return {*_NAMED_BY(client, caches), *_LISTED_BY(client, caches)}


def _reported(seen: Seen, outcome: Outcome) -> Report:
    """The report, and its members in numbers."""
    said = report(seen, outcome)
    if (count := said.status.get("totalUserCount")) is not None:
        metrics.members(seen.resource.key, count)
    return said


ROOM: Final[Room[Seen, Plan]] = Room(
    name="pocketidusergroup",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=counted(KIND, _reported),
    watches=(
        instance_watch(KIND),
        Watch(CLIENT.resource, _of_client),
        Watch(USER.resource, by_index(KIND.resource, _HAVING.name, own_key)),
        Watch(SECRETS, nobody),
    ),
    indices=(_NAMING, _LISTING, _HAVING),
)
