"""The cells of built-in kinds, as kubectl users know them.

Enters: an object and the time. Leaves: cells in the order of records/kubernetes/tables.json, without name and age where those are
filled in alike for all kinds. Must not look at the clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias

from moorage.apiserver.table.podcells import readiness_gates, summarize
from moorage.core.durations import format_age
from moorage.core.meta import JsonObject
from moorage.core.selectors import text_of

Cells: TypeAlias = list[Any]
_NONE, _UNKNOWN = "<none>", "<unknown>"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def parse_time(text: str) -> datetime | None:
    """The time of an RFC 3339 text, or None."""
    try:
        found = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else None


def since(text: str | None, now: datetime, missing: str = _UNKNOWN) -> str:
    """The age of a time, or a word where there is none."""
    found = parse_time(text) if text else None
    if found is None:
        return missing
    seconds = (now - found).total_seconds()
    return "<invalid>" if seconds < -1 else format_age(seconds)


def age(obj: JsonObject, now: datetime) -> str:
    """The age of an object."""
    return since(obj["metadata"].get("creationTimestamp"), now)


def selector_text(selector: JsonObject | None) -> str:
    """A selector as one word."""
    return text_of(selector) or _NONE


def labels_text(labels: JsonObject | None) -> str:
    """Labels as one word."""
    return ",".join(f"{name}={value}" for name, value in sorted((labels or {}).items())) or _NONE


def _containers(template: JsonObject) -> Cells:
    found = (template.get("spec") or {}).get("containers") or ()
    return [",".join(str(item.get(name, "")) for item in found) for name in ("name", "image")]


def _name(obj: JsonObject) -> str:
    return str(obj["metadata"].get("name", ""))


def pod(obj: JsonObject, now: datetime) -> Cells:
    found, spec, status = summarize(obj), obj.get("spec") or {}, obj.get("status") or {}
    restarts = str(found.restarts)
    if found.restarts and found.last_restart:
        restarts += f" ({since(found.last_restart, now)} ago)"
    address = status.get("podIP") or next((item.get("ip") for item in status.get("podIPs") or ()), "")
    places = [address, spec.get("nodeName"), status.get("nominatedNodeName")]
    head = [_name(obj), f"{found.ready}/{found.total}", found.reason, restarts, age(obj, now)]
    return [*head, *(place or _NONE for place in places), readiness_gates(obj)]


def deployment(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    counts = [status.get("updatedReplicas", 0), status.get("availableReplicas", 0)]
    return [
        _name(obj),
        ready,
        *counts,
        age(obj, now),
        *_containers(spec["template"]),
        selector_text(spec.get("selector")),
    ]


def replica_set(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [_name(obj), *counts, age(obj, now), *_containers(spec["template"]), selector_text(spec.get("selector"))]


def _job_status(obj: JsonObject) -> str:
    held = {
        item.get("type") for item in (obj.get("status") or {}).get("conditions") or () if item.get("status") == "True"
    }
    for kind in ("Complete", "Failed"):
        if kind in held:
            return kind
    if obj["metadata"].get("deletionTimestamp"):
        return "Terminating"
    for kind in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if kind in held:
            return kind
    return "Running"


def job(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    done, parallel = status.get("succeeded", 0), spec.get("parallelism") or 0
    if spec.get("completions") is not None:
        progress = f"{done}/{spec['completions']}"
    else:
        progress = f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"
    start, end = parse_time(status.get("startTime", "")), parse_time(status.get("completionTime", ""))
    duration = format_age(((end or now) - start).total_seconds()) if start else ""
    head = [_name(obj), _job_status(obj), progress, duration, age(obj, now)]
    return [*head, *_containers(spec["template"]), selector_text(spec.get("selector"))]


def cron_job(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    job_spec = spec["jobTemplate"]["spec"]
    zone, suspended = spec.get("timeZone") or _NONE, "True" if spec.get("suspend") else "False"
    last = since(status.get("lastScheduleTime"), now, _NONE)
    head = [_name(obj), spec.get("schedule", ""), zone, suspended, len(status.get("active") or ()), last, age(obj, now)]
    return [*head, *_containers(job_spec["template"]), selector_text(job_spec.get("selector"))]


def _service_port(item: JsonObject) -> str:
    node = f":{item['nodePort']}" if item.get("nodePort") else ""
    return f"{item.get('port')}{node}/{item.get('protocol', 'TCP')}"


def _external(obj: JsonObject) -> str:
    spec, outer = obj["spec"], obj["spec"].get("externalIPs") or []
    match spec.get("type"):
        case "ExternalName":
            return str(spec.get("externalName") or _NONE)
        case "LoadBalancer":
            found = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
            places = [str(item.get("ip") or item.get("hostname") or "") for item in found] + outer
            return ",".join(places) or "<pending>"
        case _:
            return ",".join(outer) or _NONE


def service(obj: JsonObject, now: datetime) -> Cells:
    spec = obj["spec"]
    address = spec.get("clusterIP") or _NONE
    ports = ",".join(map(_service_port, spec.get("ports") or ())) or _NONE
    head = [_name(obj), spec.get("type", ""), address, _external(obj), ports, age(obj, now)]
    return [*head, labels_text(spec.get("selector"))]


def config_map(obj: JsonObject, now: datetime) -> Cells:
    return [_name(obj), len(obj.get("data") or ()) + len(obj.get("binaryData") or ()), age(obj, now)]


def secret(obj: JsonObject, now: datetime) -> Cells:
    return [_name(obj), obj.get("type", ""), len(obj.get("data") or ()), age(obj, now)]


def namespace(obj: JsonObject, now: datetime) -> Cells:
    return [_name(obj), (obj.get("status") or {}).get("phase", ""), age(obj, now)]


def claim(obj: JsonObject, now: datetime) -> Cells:
    spec, status = obj["spec"], obj.get("status") or {}
    phase = "Terminating" if obj["metadata"].get("deletionTimestamp") else status.get("phase", "")
    volume = spec.get("volumeName") or ""
    capacity = str((status.get("capacity") or {}).get("storage", "0")) if volume else ""
    modes = ",".join(_MODES.get(mode, mode) for mode in status.get("accessModes") or ()) if volume else ""
    head = [_name(obj), phase, volume, capacity, modes, spec.get("storageClassName") or ""]
    return [
        *head,
        spec.get("volumeAttributesClassName") or "<unset>",
        age(obj, now),
        spec.get("volumeMode") or "<unset>",
    ]


def endpoints(obj: JsonObject, now: datetime) -> Cells:
    found = [place for subset in obj.get("subsets") or () for place in _places(subset)]
    more = f" + {len(found) - 3} more..." if len(found) > 3 else ""
    return [_name(obj), ",".join(found[:3]) + more or _NONE, age(obj, now)]


def _places(subset: JsonObject) -> Iterable[str]:
    addresses = [str(item.get("ip")) for item in subset.get("addresses") or ()]
    ports = subset.get("ports") or ()
    if not ports:
        return addresses
    return [f"[{ip}]:{port['port']}" if ":" in ip else f"{ip}:{port['port']}" for port in ports for ip in addresses]


def event(obj: JsonObject, now: datetime) -> Cells:
    """Both views of an Event."""
    about = obj.get("involvedObject") or obj.get("regarding") or {}
    source = obj.get("source") or obj.get("deprecatedSource") or {}
    first = obj.get("firstTimestamp") or obj.get("deprecatedFirstTimestamp") or obj.get("eventTime")
    last, count = (
        obj.get("lastTimestamp") or obj.get("deprecatedLastTimestamp"),
        obj.get("count") or obj.get("deprecatedCount"),
    )
    if series := obj.get("series"):
        last, count = last or series.get("lastObservedTime"), series.get("count", count)
    what = (
        f"{about.get('kind', '').lower()}/{about.get('name', '')}"
        if about.get("name")
        else about.get("kind", "").lower()
    )
    component = source.get("component") or obj.get("reportingComponent") or obj.get("reportingController") or ""
    host = source.get("host") or obj.get("reportingInstance") or ""
    head = [since(last or first, now), obj.get("type", ""), obj.get("reason", ""), what, about.get("fieldPath", "")]
    text = (obj.get("message") or obj.get("note") or "").strip()
    return [*head, ", ".join(filter(None, (component, host))), text, since(first, now), count or 1, _name(obj)]


def lease(obj: JsonObject, now: datetime) -> Cells:
    return [_name(obj), (obj.get("spec") or {}).get("holderIdentity") or "", age(obj, now)]


def disruption_budget(obj: JsonObject, now: datetime) -> Cells:
    spec = obj["spec"]
    bounds = [str(spec[name]) if spec.get(name) is not None else "N/A" for name in ("minAvailable", "maxUnavailable")]
    return [_name(obj), *bounds, (obj.get("status") or {}).get("disruptionsAllowed", 0), age(obj, now)]


def network_policy(obj: JsonObject, now: datetime) -> Cells:
    return [_name(obj), selector_text((obj.get("spec") or {}).get("podSelector")), age(obj, now)]


def dated(obj: JsonObject, now: datetime) -> Cells:
    """Name and creation time: roles and CRDs."""
    del now
    return [_name(obj), obj["metadata"].get("creationTimestamp")]


def plain(obj: JsonObject, now: datetime) -> Cells:
    """Name and age: every kind that has nothing else to say."""
    return [_name(obj), age(obj, now)]


def binding(obj: JsonObject, now: datetime) -> Cells:
    role, subjects = obj.get("roleRef") or {}, obj.get("subjects") or ()
    users = ", ".join(item["name"] for item in subjects if item["kind"] == "User")
    groups = ", ".join(item["name"] for item in subjects if item["kind"] == "Group")
    accounts = ", ".join(
        f"{item.get('namespace', '')}/{item['name']}" for item in subjects if item["kind"] == "ServiceAccount"
    )
    return [_name(obj), f"{role.get('kind')}/{role.get('name')}", age(obj, now), users, groups, accounts]


def webhooks(obj: JsonObject, now: datetime) -> Cells:
    return [_name(obj), len(obj.get("webhooks") or ()), age(obj, now)]


CELLS: dict[tuple[str, str], Callable[[JsonObject, datetime], Cells]] = {
    ("", "Pod"): pod,
    ("", "ConfigMap"): config_map,
    ("", "Secret"): secret,
    ("", "Namespace"): namespace,
    ("", "Service"): service,
    ("", "PersistentVolumeClaim"): claim,
    ("", "Endpoints"): endpoints,
    ("", "Event"): event,
    ("events.k8s.io", "Event"): event,
    ("apps", "Deployment"): deployment,
    ("apps", "ReplicaSet"): replica_set,
    ("batch", "Job"): job,
    ("batch", "CronJob"): cron_job,
    ("coordination.k8s.io", "Lease"): lease,
    ("policy", "PodDisruptionBudget"): disruption_budget,
    ("networking.k8s.io", "NetworkPolicy"): network_policy,
    ("rbac.authorization.k8s.io", "Role"): dated,
    ("rbac.authorization.k8s.io", "ClusterRole"): dated,
    ("rbac.authorization.k8s.io", "RoleBinding"): binding,
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): binding,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): dated,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): webhooks,
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): webhooks,
}
"""Cell makers by group and kind; kinds not named here are `plain`."""
