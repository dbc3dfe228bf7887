"""When a CronJob runs, and what becomes of what it started. Pure; the time is given.

Enters: a CronJob, its Jobs. Leaves: the verdict. Times are wall times of the CronJob's zone, daylight saving handled by
cronsim. Source: Kubernetes documentation, "CronJob".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from moorage.core.errors import InputError
from moorage.core.meta import JsonObject, ref_of
from moorage.node.controllers.job_rules import finished
from moorage.node.times import parse, stamp

_MACROS = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}  # fmt: skip
_TOO_MANY = 100


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do now. `run_for`: the scheduled time of the Job to make; `after`: seconds until the next look."""

    status: JsonObject
    run_for: datetime | None = None
    delete: tuple[JsonObject, ...] = ()
    after: float | None = None
    events: tuple[tuple[str, str, str], ...] = ()


def judge(cron: JsonObject, jobs: Sequence[JsonObject], at: datetime) -> Verdict:
    """The verdict on a CronJob with these Jobs.

    Raises:
        InputError: the schedule or the time zone cannot be read.
    """
    active = [job for job in jobs if finished(job) is None]
    old = _history(cron, jobs)
    if cron["spec"].get("suspend"):
        return Verdict(_status(cron, jobs, active), delete=old)
    upcoming = next(iter(_times(cron, at)))
    after = (upcoming - at).total_seconds()
    due, events = _due(cron, at)
    policy = cron["spec"].get("concurrencyPolicy", "Allow")
    if due is None or (policy == "Forbid" and active):
        held = (("Normal", "JobAlreadyActive", "Not starting job because prior execution is running"),)
        return Verdict(_status(cron, jobs, active), None, old, after, held if due else events)
    replaced = tuple(active) if policy == "Replace" else ()
    return Verdict(_status(cron, jobs, active), due, (*old, *replaced), after, events)


def job_name(cron: JsonObject, due: datetime) -> str:
    """The name of the Job for a scheduled time: a second one cannot be made for the same time."""
    return f"{cron['metadata']['name'][:52]}-{int(due.timestamp()) // 60}"


def _zone(cron: JsonObject) -> ZoneInfo:
    name = cron["spec"].get("timeZone") or "Etc/UTC"
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise InputError(f"timeZone {name!r}", "is not a time zone of this machine") from error


def _times(cron: JsonObject, since: datetime) -> CronSim:
    """Scheduled times after `since`."""
    text = cron["spec"]["schedule"].strip()
    zone = _zone(cron)
    for prefix in ("TZ=", "CRON_TZ="):
        if text.startswith(prefix):
            name, _, text = text.removeprefix(prefix).partition(" ")
            zone = ZoneInfo(name)
    try:
        return CronSim(_MACROS.get(text, text.replace("?", "*")), since.astimezone(zone))
    except CronSimError as error:
        raise InputError(f"schedule {text!r}", str(error)) from error


def _due(cron: JsonObject, at: datetime) -> tuple[datetime | None, tuple[tuple[str, str, str], ...]]:
    """The latest scheduled time that was not served yet, if it may still start."""
    last = (cron.get("status") or {}).get("lastScheduleTime") or cron["metadata"]["creationTimestamp"]
    since = parse(str(last))
    limit = cron["spec"].get("startingDeadlineSeconds")
    if limit is not None:
        since = max(since, at - timedelta(seconds=int(limit)))
    due, missed = None, 0
    for moment in _times(cron, since):
        if moment > at:
            break
        due, missed = moment, missed + 1
        if missed > _TOO_MANY:
            due = _latest(cron, at)
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            return due, (("Warning", "TooManyMissedTimes", text),)
    return due, ()


def _latest(cron: JsonObject, at: datetime) -> datetime | None:
    """The last scheduled time up to `at`, found backwards."""
    text = cron["spec"]["schedule"].strip()
    moments = CronSim(_MACROS.get(text, text), at.astimezone(_zone(cron)) + timedelta(seconds=1), reverse=True)
    return next(iter(moments), None)


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
