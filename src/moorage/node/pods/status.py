"""The status of a pod, from what its containers do.

Enters: the pod as the API server has it and a view of its containers. Leaves: the whole `status` to store. It must not
read a clock or a disk. Source: Kubernetes documentation, "Pod Lifecycle"; API reference, PodStatus.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from moorage.core.meta import JsonObject

Phase = Literal["Pending", "Running", "Succeeded", "Failed"]


@dataclass(frozen=True, slots=True)
class Seen:
    """One container as it is now. `state` and `last` have at most one of waiting, running, terminated."""

    state: JsonObject
    last: JsonObject = field(default_factory=dict)
    ready: bool = False
    started: bool = False
    restarts: int = 0
    image_id: str = ""
    container_id: str = ""

    @property
    def exit_code(self) -> int | None:
        """The code of a container that ended and is not to be restarted now."""
        ended = self.state.get("terminated")
        return int(ended["exitCode"]) if ended else None


@dataclass(frozen=True, slots=True)
class View:
    """All that the status is made from. `failed`: (reason, message) when the node itself ended the pod."""

    containers: Mapping[str, Seen]
    pod_ip: str
    host_ip: str
    now: str
    failed: tuple[str, str] | None = None
    notes: Sequence[JsonObject] = ()


CREATING: JsonObject = {"waiting": {"reason": "ContainerCreating"}}
INITIALIZING: JsonObject = {"waiting": {"reason": "PodInitializing"}}


def is_sidecar(container: JsonObject) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.get("restartPolicy") == "Always"


def restarts(pod: JsonObject, container: JsonObject, code: int) -> bool:
    """Whether a container of this pod is started again after it ended with `code`."""
    policy = pod["spec"].get("restartPolicy", "Always")
    if is_sidecar(container):
        return True
    if container in (pod["spec"].get("initContainers") or ()):
        return policy != "Never" and code != 0
    return policy == "Always" or (policy == "OnFailure" and code != 0)


def initialized(pod: JsonObject, containers: Mapping[str, Seen]) -> bool:
    """Whether every init container ended well, and every sidecar has started."""
    for container in pod["spec"].get("initContainers") or ():
        seen = containers.get(container["name"])
        done = seen is not None and (seen.started if is_sidecar(container) else seen.exit_code == 0)
        if not done:
            return False
    return True


def phase_of(pod: JsonObject, view: View) -> Phase:
    """Where the pod is in its life."""
    if view.failed is not None:
        return "Failed"
    for container in pod["spec"].get("initContainers") or ():
        code = _final_code(pod, container, view)
        if code not in (None, 0) and not is_sidecar(container):
            return "Failed"
    codes = [_final_code(pod, container, view) for container in pod["spec"]["containers"]]
    if all(code is not None for code in codes):
        return "Failed" if any(codes) else "Succeeded"
    if not initialized(pod, view.containers):
        return "Pending"
    unborn = [_never_ran(view.containers.get(container["name"])) for container in pod["spec"]["containers"]]
    return "Pending" if any(unborn) else "Running"


def pod_status(pod: JsonObject, view: View) -> JsonObject:
    """The status to store; times of unchanged conditions and the start time are kept."""
    before: JsonObject = pod.get("status") or {}
    phase = phase_of(pod, view)
    status: JsonObject = {
        "phase": phase,
        "conditions": _conditions(pod, view, phase, before.get("conditions") or []),
        "hostIP": view.host_ip,
        "hostIPs": [{"ip": view.host_ip}],
        "startTime": before.get("startTime") or view.now,
        "qosClass": before.get("qosClass", "BestEffort"),
        "containerStatuses": _statuses(pod["spec"]["containers"], view),
    }
    if pod["spec"].get("initContainers"):
        status["initContainerStatuses"] = _statuses(pod["spec"]["initContainers"], view)
    if view.pod_ip:
        status |= {"podIP": view.pod_ip, "podIPs": [{"ip": view.pod_ip}]}
    if view.failed is not None:
        status |= {"reason": view.failed[0], "message": view.failed[1]}
    return status


def _final_code(pod: JsonObject, container: JsonObject, view: View) -> int | None:
    seen = view.containers.get(container["name"])
    code = seen.exit_code if seen else None
    return None if code is None or restarts(pod, container, code) else code


def _never_ran(seen: Seen | None) -> bool:
    return seen is None or ("waiting" in seen.state and not seen.last)


def _statuses(containers: Sequence[JsonObject], view: View) -> list[JsonObject]:
    return [_status(container, view.containers.get(container["name"]) or Seen(CREATING)) for container in containers]


def _status(container: JsonObject, seen: Seen) -> JsonObject:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": seen.image_id,
        "containerID": seen.container_id,
        "state": seen.state,
        "lastState": seen.last,
        "ready": seen.ready,
        "started": seen.started,
        "restartCount": seen.restarts,
    }


def _conditions(pod: JsonObject, view: View, phase: Phase, before: Sequence[JsonObject]) -> list[JsonObject]:
    spec = pod["spec"]
    ready_init = phase == "Succeeded" or initialized(pod, view.containers)
    wanted: list[dict[str, Any]] = [
        {"type": "PodReadyToStartContainers", "status": "True" if view.pod_ip else "False"},
        _initialized_condition(spec, view, ready_init),
        _ready_condition("Ready", pod, view, phase),
        _ready_condition("ContainersReady", pod, view, phase),
        {"type": "PodScheduled", "status": "True"},
        *view.notes,
    ]
    old = {item["type"]: item for item in before}
    return [_dated(item, old.get(item["type"]), view.now) for item in wanted]


def _initialized_condition(spec: JsonObject, view: View, ready: bool) -> JsonObject:
    if ready:
        return {"type": "Initialized", "status": "True"}
    waiting = [
        item["name"]
        for item in spec.get("initContainers") or ()
        if (seen := view.containers.get(item["name"])) is None
        or not (seen.started if is_sidecar(item) else seen.exit_code == 0)
    ]
    message = f"containers with incomplete status: [{' '.join(waiting)}]"
    return {"type": "Initialized", "status": "False", "reason": "ContainersNotInitialized", "message": message}


def _ready_condition(type_: str, pod: JsonObject, view: View, phase: Phase) -> JsonObject:
    if phase in ("Succeeded", "Failed"):
        return {"type": type_, "status": "False", "reason": "PodCompleted" if phase == "Succeeded" else "PodFailed"}
    watched = [*pod["spec"]["containers"], *filter(is_sidecar, pod["spec"].get("initContainers") or ())]
    unready = [item["name"] for item in watched if not (view.containers.get(item["name"]) or Seen({})).ready]
    if unready or phase == "Pending":
        message = f"containers with unready status: [{' '.join(unready)}]"
        return {"type": type_, "status": "False", "reason": "ContainersNotReady", "message": message}
    return {"type": type_, "status": "True"}


def _dated(wanted: JsonObject, old: JsonObject | None, now: str) -> JsonObject:
    same = old is not None and old.get("status") == wanted["status"]
    since = old["lastTransitionTime"] if same and old is not None and old.get("lastTransitionTime") else now
    return {**wanted, "lastTransitionTime": since}
