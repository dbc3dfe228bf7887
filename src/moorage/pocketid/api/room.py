"""The controller of PocketIDAPI: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. Source: spec/pocketid.md 2.3, 3.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject
from moorage.kube.resources import SECRETS
from moorage.pocketid.oidcclient.rivals import BY_CLAIM, claims
from moorage.pocketid.oidcclient.types import KIND as CLIENT
from moorage.pocketid.sibling_report import counted
from moorage.pocketid.waking import instance_watch, named_keys, names_index
from moorage.runtime.room import Index, Room, Watch, nobody

from .apply import apply
from .decide import decide
from .observe import BY_NAMED_API, observe
from .report import report
from .seen import Plan, Seen
from .types import FINALIZER, KIND


def _apis_of(client: JsonObject) -> Iterable[JsonObject]:
    return [item["apiRef"] for item in client["spec"].get("apiAccess") or ()]


_NAMING: Final = names_index(CLIENT.resource, BY_NAMED_API, _apis_of)

ROOM: Final[Room[Seen, Plan]] = Room(
    name="pocketidapi",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=counted(KIND, report),
    watches=(instance_watch(KIND), Watch(CLIENT.resource, named_keys(_NAMING)), Watch(SECRETS, nobody)),
    indices=(_NAMING, Index(CLIENT.resource, BY_CLAIM, claims)),
)
