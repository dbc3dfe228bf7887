"""Job: pods until enough have succeeded, or too many have failed.

Enters: a Job and its pods. Leaves: pods and status. The rules are in `job_rules.py`; here are the reads and writes.
"""

from __future__ import annotations

from moorage.core.meta import JsonObject, is_terminating
from moorage.kube.resources import JOBS, PODS
from moorage.node.api import Api
from moorage.node.controllers.job_rules import Verdict, free_indexes, judge
from moorage.node.controllers.loop import Controller
from moorage.node.controllers.templates import pod_from
from moorage.node.times import now
from moorage.runtime.room import Event

_INDEX = "batch.kubernetes.io/job-completion-index"


def controller(node: str, first_backoff: float = 10.0) -> Controller:
    """The Job controller of a node. `first_backoff`: seconds between a first failure and the next pod."""

    async def reconcile(api: Api, job: JsonObject) -> float | None:
        if is_terminating(job):
            return None
        verdict = judge(job, api.owned(PODS, job), now(), first_backoff)
        return await _perform(api, job, verdict, node)

    return Controller(JOBS, reconcile, (PODS,))


async def _perform(api: Api, job: JsonObject, verdict: Verdict, node: str) -> float | None:
    if verdict.delete_job:
        await api.delete(JOBS, job, propagation="Foreground")
        return None
    for pod in verdict.delete:
        await api.delete(PODS, pod)
    indexes = free_indexes(job, api.owned(PODS, job))
    for number in range(verdict.make):
        made = await api.create(PODS, _pod(job, node, indexes[number] if number < len(indexes) else None))
        api.tell(job, Event("Normal", "SuccessfulCreate", f"Created pod: {made['metadata']['name']}"))
    status = {**verdict.status}
    if verdict.make:
        status["active"] = int(status.get("active", 0)) + verdict.make
    await api.set_status(JOBS, job, status)
    for event in verdict.events:
        api.tell(job, event)
    return verdict.after


def _pod(job: JsonObject, node: str, index: int | None) -> JsonObject:
    pod = pod_from(job["spec"]["template"], job, node)
    meta = job["metadata"]
    named = {"job-name": meta["name"], "controller-uid": meta["uid"]}
    for name, value in named.items():
        pod["metadata"]["labels"] |= {name: value, f"batch.kubernetes.io/{name}": value}
    if job["spec"].get("completionMode") == "Indexed" and index is not None:
        pod["metadata"]["annotations"][_INDEX] = str(index)
        pod["metadata"]["labels"][_INDEX] = str(index)
        pod["metadata"]["generateName"] = f"{meta['name'][:50]}-{index}-"
        for container in [*pod["spec"]["containers"], *(pod["spec"].get("initContainers") or ())]:
            container["env"] = [*(container.get("env") or ()), {"name": "JOB_COMPLETION_INDEX", "value": str(index)}]
    return pod
