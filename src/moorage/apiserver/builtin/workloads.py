"""Defaults and lifecycle of Deployments, ReplicaSets, Jobs and CronJobs.

Enters: objects as decoded; they are changed in place. Must not check anything. Source: API reference of apps/v1 and batch/v1.
"""

from __future__ import annotations

from moorage.apiserver.builtin.pods import default_pod_spec, fill
from moorage.apiserver.builtin.structs import nulls
from moorage.core.meta import JsonObject

_JOB_LABELS = ("batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name")


def _template(spec: JsonObject) -> JsonObject:
    template: JsonObject = spec.setdefault("template", {})
    template.setdefault("metadata", {})
    default_pod_spec(template.setdefault("spec", {}))
    return template


def default_deployment(obj: JsonObject) -> None:
    """One replica, rolling update by quarters, ten old revisions, ten minutes to make progress."""
    spec = obj.setdefault("spec", {})
    fill(spec, {"replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600})
    strategy = spec.setdefault("strategy", {})
    strategy["type"] = strategy.get("type") or "RollingUpdate"
    if strategy["type"] == "RollingUpdate":
        fill(strategy.setdefault("rollingUpdate", {}), {"maxSurge": "25%", "maxUnavailable": "25%"})
    _template(spec)
    nulls((obj.get("status") or {}).get("conditions"), "lastUpdateTime", "lastTransitionTime")


def default_replica_set(obj: JsonObject) -> None:
    """One replica."""
    spec = obj.setdefault("spec", {})
    spec.setdefault("replicas", 1)
    _template(spec)
    nulls((obj.get("status") or {}).get("conditions"), "lastTransitionTime")


def default_job(obj: JsonObject) -> None:
    """One completion, six retries; the labels of the template are those of the Job, where it has none."""
    spec = obj.setdefault("spec", {})
    template = _template(spec)
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    fill(
        spec,
        {
            "parallelism": 1,
            "backoffLimit": 6,
            "completionMode": "NonIndexed",
            "suspend": False,
            "manualSelector": False,
        },
    )
    policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", policy)
    labels = template["metadata"].get("labels")
    if labels and not obj["metadata"].get("labels"):
        obj["metadata"]["labels"] = dict(labels)
    nulls((obj.get("status") or {}).get("conditions"), "lastProbeTime", "lastTransitionTime")


def default_cron_job(obj: JsonObject) -> None:
    """Concurrent runs allowed, three successful and one failed run kept."""
    spec = obj.setdefault("spec", {})
    fill(
        spec,
        {"concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1},
    )
    job = spec.setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    _template(job.setdefault("spec", {}))


def label_job(obj: JsonObject) -> None:
    """A new Job without `manualSelector` selects its pods by its own uid; needs `metadata.uid` to be set."""
    spec, meta = obj["spec"], obj["metadata"]
    if spec.get("manualSelector"):
        return
    uid, name = meta.get("uid", ""), meta.get("name", "")
    template = spec["template"].setdefault("metadata", {})
    labels = dict(zip(_JOB_LABELS, (uid, name, uid, name), strict=True))
    template["labels"] = {**(template.get("labels") or {}), **labels}
    selector = spec.setdefault("selector", {})
    selector["matchLabels"] = {**(selector.get("matchLabels") or {}), _JOB_LABELS[0]: uid}
    meta["labels"] = meta.get("labels") or dict(template["labels"])
