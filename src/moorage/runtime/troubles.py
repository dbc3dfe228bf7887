"""Why pods do not work, in the words of their containers: one line for each Job, and one for the pods of no Job.

Enters: pods as they stand on the wire, and how a line is made fit to be shown. Leaves: sentences for conditions. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from moorage.core.meta import JsonObject, is_terminating

SERVING: Final = ""
"""Stands for pods of no Job where others are called by the name of their Job."""
_JOB: Final = "batch.kubernetes.io/job-name"
_ORDINARY: Final = frozenset({"PodInitializing", "CrashLoopBackOff"})
_CREATING: Final = "ContainerCreating"
"""Says something only when a volume cannot be mounted."""


def troubles(pods: Iterable[JsonObject], clean: Callable[[str], str]) -> dict[str, str]:
    """What the newest pod that has something to say says, by name of its Job. Ready and ended-well pods say nothing.

    Args:
        clean: shortens a text and blots secrets out.
    """
    found = dict[str, str]()
    for pod in sorted(pods, key=lambda item: str(item["metadata"].get("creationTimestamp", "")), reverse=True):
        owner = str((pod["metadata"].get("labels") or {}).get(_JOB, SERVING))
        if owner not in found and not _works(pod) and (said := next(_said(pod), "")):
            found[owner] = clean(said)
    return found


def _works(pod: JsonObject) -> bool:
    status = pod.get("status") or {}
    ready = any(item["type"] == "Ready" and item["status"] == "True" for item in status.get("conditions") or ())
    return ready or is_terminating(pod) or status.get("phase") == "Succeeded"


def _said(pod: JsonObject) -> Iterator[str]:
    """The last words of containers that failed, then what containers wait for."""
    status = pod.get("status") or {}
    states = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for item in states:
        for state in (item.get("state") or {}, item.get("lastState") or {}):
            ended = state.get("terminated") or {}
            if ended.get("exitCode") and (lines := str(ended.get("message") or "").strip().splitlines()):
                yield lines[-1]
    for item in states:
        waiting = (item.get("state") or {}).get("waiting") or {}
        if waiting.get("message") and waiting.get("reason") not in _ORDINARY:
            yield f"{'FailedMount' if waiting['reason'] == _CREATING else waiting['reason']}: {waiting['message']}"
