"""Rules of Deployments, ReplicaSets, Jobs and CronJobs.

Enters: defaulted objects and the stored ones. Leaves: complaints. Source: API reference of apps/v1, batch/v1; recorded refusals.
"""

from __future__ import annotations

import zoneinfo
from collections.abc import Mapping
from typing import Any

from moorage.apiserver.builtin.check_pods import check_template
from moorage.apiserver.builtin.cron import complaint
from moorage.apiserver.builtin.fields import (
    IMMUTABLE,
    Errors,
    at_most_all,
    non_negatives,
    one_of,
    percent_or_number,
    selector,
    selects,
    unchanged,
)
from moorage.core.meta import JsonObject
from moorage.schema import ErrorType, FieldError, forbidden, invalid, required
from moorage.schema.fielderror import Verbatim, go_json

_UNMATCHED = "`selector` does not match template `labels`"
_UID_LABEL = "batch.kubernetes.io/controller-uid"


def _labels(spec: Mapping[str, Any]) -> Any:
    return ((spec.get("template") or {}).get("metadata") or {}).get("labels")


def _selection(spec: Mapping[str, Any], kind: str) -> Errors:
    """A selector that is there, is not empty and matches the template."""
    wanted = spec.get("selector")
    if wanted is None:
        yield required("spec.selector")
    else:
        yield from selector("spec.selector", wanted)
        if not wanted.get("matchLabels") and not wanted.get("matchExpressions"):
            yield invalid("spec.selector", wanted, f"empty selector is invalid for {kind}")
    if wanted is None or not selects(wanted, _labels(spec)):
        yield invalid("spec.template.metadata.labels", _labels(spec), _UNMATCHED)


def _always(spec: Mapping[str, Any]) -> Errors:
    pod = spec["template"]["spec"]
    if pod.get("restartPolicy") != "Always":
        yield from one_of("spec.template.spec.restartPolicy", pod.get("restartPolicy"), "Always")
    if pod.get("activeDeadlineSeconds") is not None:
        yield forbidden(
            "spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in ReplicaSet is not Supported"
        )


def check_deployment(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a Deployment."""
    spec = obj["spec"]
    yield from non_negatives(spec, "spec", "replicas")
    yield from _selection(spec, "deployment")
    yield from check_template("spec.template", spec["template"])
    yield from _always(spec)
    yield from _strategy(spec.get("strategy") or {})
    yield from non_negatives(spec, "spec", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        yield invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds")
    if old is not None:
        yield from unchanged("spec.selector", spec.get("selector"), old["spec"].get("selector"))
        yield from _counts(obj, old, "updatedReplicas", "readyReplicas", "availableReplicas")


def _counts(obj: JsonObject, old: JsonObject, *fields: str) -> Errors:
    """A status that changes tells of no more replicas than there are."""
    status = obj.get("status") or {}
    if status == (old.get("status") or {}):
        return
    yield from non_negatives(status, "status", "replicas", *fields)
    for name in fields:
        if status.get(name, 0) > status.get("replicas", 0):
            yield invalid(f"status.{name}", status[name], "cannot be greater than status.replicas")
    if status.get("availableReplicas", 0) > status.get("readyReplicas", 0):
        yield invalid("status.availableReplicas", status["availableReplicas"], "cannot be greater than readyReplicas")


def _strategy(strategy: Mapping[str, Any]) -> Errors:
    rolling, path = strategy.get("rollingUpdate"), "spec.strategy.rollingUpdate"
    match strategy.get("type"):
        case "Recreate":
            if rolling is not None:
                yield forbidden(path, "may not be specified when strategy `type` is 'Recreate'")
        case "RollingUpdate":
            yield from _rolling(path, rolling or {})
        case other:
            shown = {"Type": other, "RollingUpdate": rolling}
            detail = 'supported values: "Recreate", "RollingUpdate"'
            yield FieldError("spec.strategy", ErrorType.NOT_SUPPORTED, detail, Verbatim(go_json(shown)))


def _rolling(path: str, rolling: Mapping[str, Any]) -> Errors:
    for name in ("maxUnavailable", "maxSurge"):
        yield from percent_or_number(f"{path}.{name}", rolling.get(name, 0))
    if all(rolling.get(name) in (0, "0%") for name in ("maxUnavailable", "maxSurge")):
        yield invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable"), "may not be 0 when `maxSurge` is 0")
    yield from at_most_all(f"{path}.maxUnavailable", rolling.get("maxUnavailable"))


def check_replica_set(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a ReplicaSet."""
    spec = obj["spec"]
    yield from non_negatives(spec, "spec", "replicas", "minReadySeconds")
    yield from _selection(spec, "replica set")
    yield from check_template("spec.template", spec["template"])
    yield from _always(spec)
    if old is not None:
        yield from unchanged("spec.selector", spec.get("selector"), old["spec"].get("selector"))
        yield from _counts(obj, old, "fullyLabeledReplicas", "readyReplicas", "availableReplicas")


def check_job(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a Job."""
    spec = obj["spec"]
    yield from _generated_selector(obj, created=old is None)
    yield from _job_spec("spec", spec)
    if old is not None:
        yield from _job_update(spec, old["spec"])


def _generated_selector(obj: JsonObject, *, created: bool) -> Errors:
    spec, wanted = obj["spec"], obj["spec"].get("selector")
    if wanted is None:
        yield required("spec.selector")
    else:
        own = {_UID_LABEL: obj["metadata"].get("uid")}
        if not spec.get("manualSelector") and wanted != {"matchLabels": own}:
            yield invalid("spec.selector", wanted, "`selector` not auto-generated")
            if not created and not selects(wanted, _labels(spec)):
                yield invalid("spec.template.metadata.labels", _labels(spec), _UNMATCHED)
        yield from selector("spec.selector", wanted)
    if wanted is None or not selects(wanted, _labels(spec)):
        yield invalid("spec.template.metadata.labels", _labels(spec), _UNMATCHED)


def _job_spec(path: str, spec: Mapping[str, Any]) -> Errors:
    numbers = ("parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished")
    yield from non_negatives(spec, path, *numbers)
    mode = spec.get("completionMode")
    if mode is not None:
        yield from one_of(f"{path}.completionMode", mode, "NonIndexed", "Indexed")
    if mode == "Indexed" and spec.get("completions") is None:
        yield required(f"{path}.completions", f"when completion mode is {mode}")
    template = spec["template"]
    yield from check_template(f"{path}.template", template)
    if template["spec"].get("restartPolicy") not in ("OnFailure", "Never"):
        yield required(f"{path}.template.spec.restartPolicy", 'valid values: "OnFailure", "Never"')


def _job_update(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if spec.get("completions") != old.get("completions") and not elastic:
        yield invalid("spec.completions", spec.get("completions"), IMMUTABLE)
    yield from unchanged("spec.selector", spec.get("selector"), old.get("selector"))
    if not old.get("suspend"):
        yield from unchanged("spec.template", spec.get("template"), old.get("template"))
    yield from unchanged("spec.completionMode", spec.get("completionMode"), old.get("completionMode"))


def check_cron_job(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a CronJob; its name leaves room for the suffix of its Jobs."""
    spec, name = obj["spec"], obj["metadata"].get("name") or ""
    if old is None and len(name) > 52:
        yield invalid("metadata.name", name, "must be no more than 52 characters")
    yield from _schedule(spec.get("schedule") or "")
    yield from non_negatives(spec, "spec", "startingDeadlineSeconds")
    if "timeZone" in spec:
        yield from _time_zone(spec["timeZone"])
    yield from one_of("spec.concurrencyPolicy", spec.get("concurrencyPolicy"), "Allow", "Forbid", "Replace")
    job = spec["jobTemplate"]["spec"]
    path = "spec.jobTemplate.spec"
    yield from _job_spec(path, job)
    if job.get("selector") is not None:
        yield invalid(f"{path}.selector", job["selector"], "`selector` will be auto-generated")
    if job.get("manualSelector"):
        yield from one_of(f"{path}.manualSelector", job["manualSelector"], "nil", "false")
    yield from non_negatives(spec, "spec", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")


def _schedule(schedule: str) -> Errors:
    path = "spec.schedule"
    if not schedule:
        yield required(path)
    elif "TZ" in schedule:
        yield invalid(path, schedule, "cannot use TZ or CRON_TZ in schedule, use timeZone field instead")
    elif wrong := complaint(schedule):
        yield invalid(path, schedule, wrong)


def _time_zone(zone: str) -> Errors:
    path = "spec.timeZone"
    if not zone:
        yield invalid(path, zone, "timeZone must be nil or non-empty string")
    elif zone.lower() == "local":
        text = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        yield invalid(path, zone, text)
    elif not _known_zone(zone):
        yield invalid(path, zone, f"unknown time zone {zone}")


def _known_zone(zone: str) -> bool:
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
