"""What a Job needs next. Pure; the time is given.

Enters: a Job, its pods. Leaves: the verdict (how many pods to make, which to take away, the status). It must not read a
clock. Source: Kubernetes documentation, "Jobs": completions, parallelism, back-off limit, deadline, suspend, TTL.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from moorage.core.meta import JsonObject, is_terminating
from moorage.node.controllers.templates import is_active
from moorage.node.network.services import is_ready
from moorage.node.times import age, parse, stamp
from moorage.runtime.room import Event

_FIRST_BACKOFF, _LONGEST_BACKOFF = 10.0, 600.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What to do now. `after`: seconds until the next look; `delete_job`: its TTL is over."""

    status: JsonObject
    make: int = 0
    delete: tuple[JsonObject, ...] = ()
    after: float | None = None
    delete_job: bool = False
    events: tuple[Event, ...] = ()


def judge(job: JsonObject, pods: Sequence[JsonObject], at: datetime, first_backoff: float = _FIRST_BACKOFF) -> Verdict:
    """The verdict on a Job with these pods, ended and ending ones included."""
    if finished(job) is not None:
        return _after_end(job, pods, at)
    count = _count(job, pods)
    if reason := _failure(job, count, at):
        return _ended(job, count, at, ("Failed", *reason))
    if _completed(job, count):
        return _ended(job, count, at, ("Complete", "CompletionsReached", "Reached expected number of succeeded pods"))
    if job["spec"].get("suspend"):
        return _suspended(job, count, at)
    wait = _backoff(count, at, first_backoff)
    make, surplus = _missing(job, count)
    status = _status(job, count, at)
    left = _deadline_left(job, status, at)
    if wait > 0 and make:
        return Verdict(status, 0, surplus, _sooner(wait, left))
    return Verdict(status, make, surplus, left)


def finished(job: JsonObject) -> JsonObject | None:
    """The Complete or Failed condition of a Job that has ended."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    found: JsonObject | None = next(
        (item for item in conditions if item["type"] in ("Complete", "Failed") and item["status"] == "True"), None
    )
    return found


@dataclass(frozen=True, slots=True)
class _Count:
    active: tuple[JsonObject, ...]
    succeeded: int
    failed: int
    last_failure: str
    indexes: frozenset[int]


def _count(job: JsonObject, pods: Sequence[JsonObject]) -> _Count:
    phases = [(pod, (pod.get("status") or {}).get("phase")) for pod in pods]
    good = [pod for pod, phase in phases if phase == "Succeeded"]
    bad = [pod for pod, phase in phases if phase == "Failed" or (is_terminating(pod) and phase != "Succeeded")]
    ends = [_ended_at(pod) for pod in bad]
    active = tuple(pod for pod in pods if is_active(pod))
    restarts = sum(map(_restarts, active))
    done = {index for pod in good if (index := index_of(pod)) is not None}
    known: JsonObject = job.get("status") or {}
    succeeded = len(done) if _indexed(job) else max(len(good), int(known.get("succeeded", 0)))
    failed = max(len(bad) + restarts, int(known.get("failed", 0)))
    return _Count(active, succeeded, failed, max(ends, default=""), frozenset(done))


def index_of(pod: JsonObject) -> int | None:
    """The completion index of a pod of an Indexed Job."""
    text = (pod["metadata"].get("annotations") or {}).get("batch.kubernetes.io/job-completion-index")
    return int(text) if text is not None else None


def _indexed(job: JsonObject) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def free_indexes(job: JsonObject, pods: Sequence[JsonObject]) -> list[int]:
    """Indexes without an active or succeeded pod, lowest first."""
    count = _count(job, pods)
    taken = count.indexes | {index for pod in count.active if (index := index_of(pod)) is not None}
    return [index for index in range(int(job["spec"].get("completions") or 1)) if index not in taken]


def _restarts(pod: JsonObject) -> int:
    """Restarts count as failures where the pod restarts its containers itself."""
    if pod["spec"].get("restartPolicy") != "OnFailure":
        return 0
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return sum(int(item.get("restartCount", 0)) for item in statuses)


def _ended_at(pod: JsonObject) -> str:
    status = pod.get("status") or {}
    ends = [
        str(ended["finishedAt"])
        for item in status.get("containerStatuses") or ()
        if (ended := (item.get("state") or {}).get("terminated")) and ended.get("finishedAt")
    ]
    return max(ends, default=str(status.get("startTime") or pod["metadata"].get("creationTimestamp", "")))


def _failure(job: JsonObject, count: _Count, at: datetime) -> tuple[str, str] | None:
    limit = int(job["spec"].get("backoffLimit", 6))
    if count.failed > limit:
        return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    deadline = job["spec"].get("activeDeadlineSeconds")
    began = (job.get("status") or {}).get("startTime")
    if deadline is not None and began and age(str(began), at) >= deadline and not job["spec"].get("suspend"):
        return "DeadlineExceeded", "Job was active longer than specified deadline"
    return None


def _completed(job: JsonObject, count: _Count) -> bool:
    completions = job["spec"].get("completions")
    if completions is None:
        return count.succeeded > 0 and not count.active
    return count.succeeded >= int(completions)


def _missing(job: JsonObject, count: _Count) -> tuple[int, tuple[JsonObject, ...]]:
    """How many pods to make, and which are too many."""
    parallel = int(job["spec"].get("parallelism", 1))
    completions = job["spec"].get("completions")
    if completions is None:
        wanted = 0 if count.succeeded else parallel
        wanted = max(wanted, len(count.active)) if count.succeeded else wanted
    else:
        wanted = min(parallel, int(completions) - count.succeeded)
    less = len(count.active) - wanted
    return max(-less, 0), count.active[:less] if less > 0 else ()


def _backoff(count: _Count, at: datetime, first: float) -> float:
    """Seconds that the next pod has to wait after the last failure."""
    if not count.failed or not count.last_failure:
        return 0.0
    delay = min(first * 2.0 ** (count.failed - 1), _LONGEST_BACKOFF)
    return delay - age(count.last_failure, at)


def _deadline_left(job: JsonObject, status: JsonObject, at: datetime) -> float | None:
    deadline = job["spec"].get("activeDeadlineSeconds")
    began = status.get("startTime")
    return None if deadline is None or not began else max(float(deadline) - age(str(began), at), 0.05)


def _sooner(first: float, second: float | None) -> float:
    return first if second is None else min(first, second)


def _status(job: JsonObject, count: _Count, at: datetime) -> JsonObject:
    before: JsonObject = job.get("status") or {}
    began = None if job["spec"].get("suspend") else before.get("startTime") or stamp(at)
    facts: dict[str, Any] = {
        "active": len(count.active),
        "ready": sum(map(is_ready, count.active)),
        "succeeded": count.succeeded,
        "failed": count.failed,
    }
    status = {name: value for name, value in facts.items() if value or name == "ready"}
    status |= {"terminating": 0, "uncountedTerminatedPods": {}}
    if began:
        status["startTime"] = began
    if _indexed(job) and count.indexes:
        status["completedIndexes"] = _ranges(sorted(count.indexes))
    if before.get("conditions"):
        status["conditions"] = before["conditions"]
    return status


def _ranges(numbers: list[int]) -> str:
    """`0-2,5` for 0, 1, 2, 5."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and groups[-1][-1] == number - 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return ",".join(str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in groups)


def _condition(job: JsonObject, wanted: JsonObject, at: datetime) -> list[JsonObject]:
    old = [item for item in (job.get("status") or {}).get("conditions") or () if item["type"] != wanted["type"]]
    return [*old, {**wanted, "lastProbeTime": stamp(at), "lastTransitionTime": stamp(at)}]


def _ended(job: JsonObject, count: _Count, at: datetime, what: tuple[str, str, str]) -> Verdict:
    type_, reason, message = what
    status = _status(job, count, at) | {"ready": 0}
    status.pop("active", None)
    conditions = job
    for name in ("SuccessCriteriaMet" if type_ == "Complete" else "FailureTarget", type_):
        wanted = {"type": name, "status": "True", "reason": reason, "message": message}
        status["conditions"] = _condition(conditions, wanted, at)
        conditions = {"status": status}
    if type_ == "Complete":
        status["completionTime"] = stamp(at)
    event = Event("Normal", "Completed", "Job completed") if type_ == "Complete" else Event("Warning", reason, message)
    return Verdict(status, 0, count.active, _ttl_left(job, {"status": status}, at), events=(event,))


def _suspended(job: JsonObject, count: _Count, at: datetime) -> Verdict:
    status = _status(job, count, at)
    wanted = {"type": "Suspended", "status": "True", "reason": "JobSuspended", "message": "Job suspended"}
    old = next((item for item in status.get("conditions") or () if item["type"] == "Suspended"), None)
    if old is None or old["status"] != "True":
        status["conditions"] = _condition(job, wanted, at)
    return Verdict(status, 0, count.active)


def _after_end(job: JsonObject, pods: Sequence[JsonObject], at: datetime) -> Verdict:
    left = _ttl_left(job, job, at)
    still = tuple(pod for pod in pods if is_active(pod))
    return Verdict(dict(job["status"]), 0, still, left, delete_job=left is not None and left <= 0)


def _ttl_left(job: JsonObject, ended: JsonObject, at: datetime) -> float | None:
    ttl, condition = job["spec"].get("ttlSecondsAfterFinished"), finished(ended)
    if ttl is None or condition is None:
        return None
    return float(ttl) - (at - parse(str(condition["lastTransitionTime"]))).total_seconds()
