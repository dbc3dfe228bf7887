"""Bare pods, as `kubectl run` makes them: given to this node, which is the only one.

Enters: pods without a node. Leaves: bindings. Pods of our own controllers have their node from the start. Those that name another
scheduler, or are held back by scheduling gates, are left alone.
"""

from __future__ import annotations

from moorage.core.meta import JsonObject, is_terminating
from moorage.kube.resources import PODS
from moorage.node.api import Api
from moorage.node.controllers.loop import Controller
from moorage.runtime.room import Event

_OURS = (None, "", "default-scheduler")


def controller(node: str) -> Controller:
    """The controller that binds pods to a node."""

    async def reconcile(api: Api, pod: JsonObject) -> float | None:
        if waits_for_a_node(pod):
            await api.bind(pod, node)
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            api.tell(pod, Event("Normal", "Scheduled", f"Successfully assigned {name} to {node}"))
        return None

    return Controller(PODS, reconcile)


def waits_for_a_node(pod: JsonObject) -> bool:
    """Whether nobody has given the pod to a node yet, and that is for us to do."""
    spec = pod["spec"]
    free = not spec.get("nodeName") and not spec.get("schedulingGates")
    return bool(free and spec.get("schedulerName") in _OURS and not is_terminating(pod))
