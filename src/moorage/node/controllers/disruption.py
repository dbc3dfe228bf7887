"""PodDisruptionBudget: the status only; nothing on one machine evicts pods.

Enters: a budget and the pods of its namespace. Leaves: its status. Source: Kubernetes documentation, "Disruptions".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from moorage.core.meta import JsonObject, key_of
from moorage.core.selectors import from_wire
from moorage.kube.resources import PDBS, PODS
from moorage.node.api import Api
from moorage.node.controllers.loop import Controller
from moorage.node.controllers.templates import is_active
from moorage.node.network.services import is_ready
from moorage.node.times import now, stamp


def controller() -> Controller:
    """The controller of budgets; pods wake it through `wake_for`."""
    return Controller(PDBS, _reconcile)


def wake_for(api: Api, budgets: Controller, pod: JsonObject) -> None:
    """Wakes the budgets of the pod's namespace."""
    for budget in api.list(PDBS, pod["metadata"]["namespace"]):
        budgets.queue.add(key_of(budget))


async def _reconcile(api: Api, budget: JsonObject) -> float | None:
    selector = from_wire(budget["spec"].get("selector"))
    pods = [
        pod
        for pod in api.list(PODS, budget["metadata"]["namespace"])
        if is_active(pod) and selector.matches(pod["metadata"].get("labels"))
    ]
    await api.set_status(PDBS, budget, status_of(budget, pods, stamp(now())))
    return None


def status_of(budget: JsonObject, pods: Sequence[JsonObject], at: str) -> JsonObject:
    """The status of a budget over these pods."""
    total, healthy = len(pods), sum(map(is_ready, pods))
    spec = budget["spec"]
    if "maxUnavailable" in spec:
        needed = total - _share(spec["maxUnavailable"], total)
    else:
        needed = _share(spec.get("minAvailable", 1), total)
    allowed = max(healthy - max(needed, 0), 0)
    state = "True" if allowed else "False"
    reason = "SufficientPods" if allowed else "InsufficientPods"
    old = ((budget.get("status") or {}).get("conditions") or [{}])[0]
    since = old["lastTransitionTime"] if old.get("status") == state else at
    generation = budget["metadata"].get("generation", 1)
    condition = {
        "type": "DisruptionAllowed",
        "status": state,
        "reason": reason,
        "message": "",
        "lastTransitionTime": since,
    }
    return {
        "currentHealthy": healthy,
        "desiredHealthy": max(needed, 0),
        "disruptionsAllowed": allowed,
        "expectedPods": total,
        "observedGeneration": generation,
        "conditions": [{**condition, "observedGeneration": generation}],
    }


def _share(value: int | str, total: int) -> int:
    return value if isinstance(value, int) else math.ceil(int(value.rstrip("%")) * total / 100)
