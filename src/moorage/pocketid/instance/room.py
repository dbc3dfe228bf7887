"""The controller of PocketIDInstance: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. A watch on Secrets, so that a new API key is tried at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NoReturn

from moorage.core.meta import JsonObject
from moorage.core.outcome import Outcome
from moorage.kube.resources import SECRETS
from moorage.pocketid import metrics
from moorage.pocketid.reach import key_source
from moorage.runtime.room import Index, Report, Room, Watch, by_index

from .apply import apply
from .decide import decide
from .observe import observe
from .report import report
from .seen import Seen
from .types import KIND

BY_KEY: Final = "pocketid-instance-by-key"


def _secret_of(instance: JsonObject) -> Iterable[str]:
    yield str(key_source(instance)[0])


def _own_name(secret: JsonObject) -> str:
    return f"{secret['metadata'].get('namespace', '')}/{secret['metadata']['name']}"


def _reported(seen: Seen, outcome: Outcome) -> Report:
    """The report, and the same in numbers."""
    said = report(seen, outcome)
    metrics.ready(KIND.kind, seen.instance.key, all(item.is_true for item in said.conditions))
    return said


ROOM: Final[Room[Seen, NoReturn]] = Room(
    name="pocketidinstance",
    kind=KIND,
    finalizer=None,
    observe=observe,
    decide=decide,
    apply=apply,
    report=_reported,
    watches=(Watch(SECRETS, by_index(KIND.resource, BY_KEY, _own_name)),),
    indices=(Index(KIND.resource, BY_KEY, _secret_of),),
)
