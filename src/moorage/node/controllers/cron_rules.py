"""When a CronJob runs, and what becomes of what it started. Pure; the time is given.

Enters: a CronJob, its Jobs. Leaves: the verdict. Times are wall times of the CronJob's zone; `core/cron.py` reads the schedule.
Source: Kubernetes documentation, "CronJob".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from moorage.core import cron as schedules
from moorage.core.meta import JsonObject, ref_of
from moorage.node.controllers.job_rules import finished
from moorage.node.times import parse, stamp
from moorage.runtime.room import Event

_TOO_MANY = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do now. `run_for`: the scheduled time of the Job to make; `after`: seconds until the next look."""

    status: JsonObject
    run_for: datetime | None = None
    delete: tuple[JsonObject, ...] = ()
    after: float | None = None
    events: tuple[Event, ...] = ()


def judge(cron: JsonObject, jobs: Sequence[JsonObject], at: datetime) -> Verdict:
    """The verdict on a CronJob with these Jobs.

    Raises:
        InputError: the schedule or the time zone cannot be read.
    """
    active = [job for job in jobs if finished(job) is None]
    old = _history(cron, jobs)
    if cron["spec"].get("suspend"):
        return Verdict(_status(cron, jobs, active), delete=old)
    upcoming = _schedule(cron).next(at, _made(cron))
    after = (upcoming - at).total_seconds()
    due, events = _due(cron, at)
    policy = cron["spec"].get("concurrencyPolicy", "Allow")
    if due is None or (policy == "Forbid" and active):
        held = (Event("Normal", "JobAlreadyActive", "Not starting job because prior execution is running"),)
        return Verdict(_status(cron, jobs, active), None, old, after, held if due else events)
    replaced = tuple(active) if policy == "Replace" else ()
    return Verdict(_status(cron, jobs, active), due, (*old, *replaced), after, events)


def job_name(cron: JsonObject, due: datetime) -> str:
    """The name of the Job for a scheduled time: a second one cannot be made for the same time."""
    return f"{cron['metadata']['name'][:52]}-{int(due.timestamp()) // 60}"


def _schedule(cron: JsonObject) -> schedules.Schedule:
    spec = cron["spec"]
    return schedules.read(spec["schedule"], schedules.time_zone(spec.get("timeZone") or "Etc/UTC"))


def _made(cron: JsonObject) -> datetime:
    return parse(str(cron["metadata"]["creationTimestamp"]))


def _due(cron: JsonObject, at: datetime) -> tuple[datetime | None, tuple[Event, ...]]:
    """The latest scheduled time that was not served yet, if it may still start."""
    last = (cron.get("status") or {}).get("lastScheduleTime")
    since = parse(str(last)) if last else _made(cron)
    limit = cron["spec"].get("startingDeadlineSeconds")
    if limit is not None:
        since = max(since, at - timedelta(seconds=int(limit)))
    schedule, due, missed = _schedule(cron), None, 0
    for moment in schedule.after(since, _made(cron)):
        if moment > at:
            break
        due, missed = moment, missed + 1
        if missed > _TOO_MANY:
            due = schedule.latest(at, _made(cron))
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            return due, (Event("Warning", "TooManyMissedTimes", text),)
    return due, ()


def _status(cron: JsonObject, jobs: Sequence[JsonObject], active: Sequence[JsonObject]) -> JsonObject:
    before: JsonObject = cron.get("status") or {}
    status: JsonObject = {}
    if active:
        status["active"] = [_reference(job) for job in active]
    if before.get("lastScheduleTime"):
        status["lastScheduleTime"] = before["lastScheduleTime"]
    ends = [str(job["status"]["completionTime"]) for job in jobs if (job.get("status") or {}).get("completionTime")]
    if latest := max([*ends, str(before.get("lastSuccessfulTime") or "")]):
        status["lastSuccessfulTime"] = latest
    return status


def _reference(job: JsonObject) -> JsonObject:
    found = ref_of(job)
    return {
        "apiVersion": found.api_version,
        "kind": found.kind,
        "namespace": found.key.namespace,
        "name": found.key.name,
        "uid": found.uid,
        "resourceVersion": job["metadata"].get("resourceVersion", ""),
    }


def scheduled(status: JsonObject, due: datetime) -> JsonObject:
    """The status after a Job was made for `due`."""
    return {**status, "lastScheduleTime": stamp(due.astimezone(parse("1970-01-01T00:00:00+00:00").tzinfo))}


def _history(cron: JsonObject, jobs: Sequence[JsonObject]) -> tuple[JsonObject, ...]:
    """Ended Jobs beyond the history limits, oldest first."""
    found: list[JsonObject] = []
    limits = (("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1))
    for type_, field, default in limits:
        ended = [job for job in jobs if (condition := finished(job)) is not None and condition["type"] == type_]
        ended.sort(key=lambda job: (str(job["metadata"]["creationTimestamp"]), str(job["metadata"]["name"])))
        keep = int(cron["spec"].get(field, default))
        found += ended[: max(len(ended) - keep, 0)]
    return tuple(found)
