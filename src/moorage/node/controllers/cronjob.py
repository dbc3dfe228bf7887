"""CronJob: a Job for each scheduled time.

Enters: a CronJob and its Jobs. Leaves: Jobs and status. The rules are in `cron_rules.py`; here are the reads and writes.
"""

from __future__ import annotations

from datetime import datetime

from moorage.core.errors import InputError
from moorage.core.jsoncopy import copied
from moorage.core.meta import JsonObject, is_terminating, owner_reference, ref_of
from moorage.kube.errors import AlreadyExists
from moorage.kube.resources import CRON_JOBS, JOBS
from moorage.node.api import Api
from moorage.node.controllers.cron_rules import Verdict, job_name, judge, scheduled
from moorage.node.controllers.loop import Controller
from moorage.node.times import now, stamp
from moorage.runtime.room import Event


def controller() -> Controller:
    """The CronJob controller."""
    return Controller(CRON_JOBS, _reconcile, (JOBS,))


async def _reconcile(api: Api, cron: JsonObject) -> float | None:
    if is_terminating(cron):
        return None
    try:
        verdict = judge(cron, api.owned(JOBS, cron), now())
    except InputError as error:
        api.tell(cron, Event("Warning", "UnparseableSchedule", str(error)))
        return None
    return await _perform(api, cron, verdict)


async def _perform(api: Api, cron: JsonObject, verdict: Verdict) -> float | None:
    for job in verdict.delete:
        await api.delete(JOBS, job)
    status = verdict.status
    if verdict.run_for is not None:
        try:
            made = await api.create(JOBS, _job(cron, verdict.run_for))
            api.tell(cron, Event("Normal", "SuccessfulCreate", f"Created job {made['metadata']['name']}"))
        except AlreadyExists:
            api.tell(cron, Event("Normal", "JobExists", f"Job {job_name(cron, verdict.run_for)} is there already"))
        status = scheduled(status, verdict.run_for)
    await api.set_status(CRON_JOBS, cron, status)
    for event in verdict.events:
        api.tell(cron, event)
    return verdict.after


def _job(cron: JsonObject, due: datetime) -> JsonObject:
    template = cron["spec"]["jobTemplate"]
    meta = template.get("metadata") or {}
    notes = {**(meta.get("annotations") or {}), "batch.kubernetes.io/cronjob-scheduled-timestamp": stamp(due)}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": job_name(cron, due),
            "namespace": cron["metadata"]["namespace"],
            "labels": dict(meta.get("labels") or {}),
            "annotations": notes,
            "ownerReferences": [owner_reference(ref_of(cron))],
        },
        "spec": copied(template["spec"]),
    }
