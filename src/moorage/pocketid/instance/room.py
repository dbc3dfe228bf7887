"""The controller of PocketIDInstance: its doors and what wakes it.

Enters: nothing. Leaves: ROOM. It performs nothing itself. A watch on Secrets, so that a new API key is tried at once and a changed secret reaches
the server at once. The finalizer keeps the instance until what is deleted beside it is deleted at the server (ADR 0018); children go by garbage
collection, and what outlives the instance has no owner.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from moorage.core.meta import JsonObject
from moorage.core.outcome import Outcome
from moorage.kube.resources import DEPLOYMENTS, PVCS, SECRETS, SERVICES
from moorage.pocketid import metrics
from moorage.pocketid.reach import key_source
from moorage.runtime.room import Index, Report, Room, Watch, by_index, owned

from .apply import apply
from .decide import decide
from .observe import observe
from .observe_bound import BY_INSTANCE, HELD_KEYS, OBJECTS, has_left, held_in, instance_of, waits_for_the_last
from .observe_deployed import brought, claim, made
from .plan import Plan
from .report import report
from .seen import Seen
from .types import FINALIZER, KIND

BY_SECRET: Final = "pocketid-instance-by-secret"  # noqa: S105 - the name of an index
BY_CLAIM: Final = "pocketid-instance-by-claim"


def _secrets_of(instance: JsonObject) -> Iterable[str]:
    """The API key, and of a deployed server all Secrets, ours and those that it names."""
    if (instance["spec"].get("external")) is not None:
        yield str(key_source(instance)[0])
        return
    parsed = KIND.parse(instance)
    yield from (f"{parsed.metadata.namespace}/{name}" for name in {*made(parsed), *brought(parsed)})


def _claim_of(instance: JsonObject) -> Iterable[str]:
    if instance["spec"].get("external") is None:
        yield f"{instance['metadata']['namespace']}/{claim(KIND.parse(instance))}"


def _own_name(obj: JsonObject) -> str:
    return f"{obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"


def _reported(seen: Seen, outcome: Outcome) -> Report:
    """The report, and the same in numbers."""
    said, spec = report(seen, outcome), seen.instance.spec
    metrics.ready(KIND.kind, seen.instance.key, all(item.is_true for item in said.conditions))
    if "version" in said.status:
        how = "External" if spec.external is not None else spec.deployment_type
        metrics.instance(seen.instance.key, said.status["version"], how, spec.app_url or seen.url)
    return said


ROOM: Final[Room[Seen, Plan]] = Room(
    name="pocketidinstance",
    kind=KIND,
    finalizer=FINALIZER,
    observe=observe,
    decide=decide,
    apply=apply,
    report=_reported,
    watches=(
        Watch(SECRETS, by_index(KIND.resource, BY_SECRET, _own_name)),
        Watch(PVCS, by_index(KIND.resource, BY_CLAIM, _own_name)),
        Watch(SERVICES, owned(KIND)),
        Watch(DEPLOYMENTS, owned(KIND)),
        *(Watch(kind.resource, waits_for_the_last, has_left) for kind in OBJECTS),
    ),
    indices=(
        Index(KIND.resource, BY_SECRET, _secrets_of),
        Index(KIND.resource, BY_CLAIM, _claim_of),
        Index(SECRETS, HELD_KEYS, held_in),
        *(Index(kind.resource, BY_INSTANCE, instance_of) for kind in OBJECTS),
    ),
)
