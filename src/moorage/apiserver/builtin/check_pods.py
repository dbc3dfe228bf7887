"""Rules of pod specs and pod templates, as far as embedded.md point 7 promises them.

Enters: pod specs, defaulted. Leaves: complaints. Must not know the workload around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from moorage.apiserver.builtin.check_containers import check_container, check_hooks
from moorage.apiserver.builtin.check_volumes import check_volumes
from moorage.apiserver.builtin.fields import Errors, annotation_keys, complaints, labels, one_of
from moorage.core import names
from moorage.core.meta import JsonObject
from moorage.schema import forbidden, invalid, required

RESTARTS = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_FIXED = (
    "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,"
    "`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),"
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)"
)


def check_template(path: str, template: Mapping[str, Any]) -> Errors:
    """Complaints about a pod template."""
    meta = template.get("metadata") or {}
    yield from labels(f"{path}.labels", meta.get("labels"))
    yield from annotation_keys(f"{path}.annotations", meta.get("annotations"))
    yield from check_pod_spec(f"{path}.spec", template.get("spec") or {})


def check_pod(obj: JsonObject, old: JsonObject | None) -> Errors:
    """Complaints about a pod; an update may change little of its spec."""
    yield from check_pod_spec("spec", obj["spec"])
    for name in ("containers", "initContainers"):
        for index, container in enumerate(obj["spec"].get(name) or ()):
            image = container.get("image") or ""
            if image != image.strip():
                yield invalid(f"spec.{name}[{index}].image", image, "must not have leading or trailing whitespace")
    if old is not None:
        yield from _fixed(obj["spec"], old["spec"])


def _fixed(spec: Mapping[str, Any], old: Mapping[str, Any]) -> Errors:
    for name, what in (("containers", "containers"), ("initContainers", "init containers")):
        if len(spec.get(name) or ()) != len(old.get(name) or ()):
            yield forbidden(f"spec.{name}", f"pod updates may not add or remove {what}")
            return
    if _fixed_parts(spec) != _fixed_parts(old):
        yield forbidden("spec", _FIXED)


def _fixed_parts(spec: Mapping[str, Any]) -> JsonObject:
    free = (
        "activeDeadlineSeconds",
        "tolerations",
        "terminationGracePeriodSeconds",
        "containers",
        "initContainers",
        "ephemeralContainers",
    )
    parts = {name: value for name, value in spec.items() if name not in free}
    for name in ("containers", "initContainers"):
        parts[name] = [{**item, "image": ""} for item in spec.get(name) or ()]
    return parts


def check_pod_spec(path: str, spec: Mapping[str, Any]) -> Errors:
    """Complaints about a pod spec."""
    yield from check_volumes(f"{path}.volumes", spec.get("volumes"))
    yield from _containers(path, spec)
    if spec.get("hostNetwork"):
        yield from _host_ports(path, spec)
    yield from one_of(f"{path}.restartPolicy", spec.get("restartPolicy"), *RESTARTS)
    yield from one_of(f"{path}.dnsPolicy", spec.get("dnsPolicy"), *_DNS)
    yield from labels(f"{path}.nodeSelector", spec.get("nodeSelector"))
    if account := spec.get("serviceAccountName"):
        yield from complaints(f"{path}.serviceAccountName", account, names.dns1123_subdomain(account))
    if node := spec.get("nodeName"):
        yield from complaints(f"{path}.nodeName", node, names.dns1123_subdomain(node))
    deadline = spec.get("activeDeadlineSeconds")
    if isinstance(deadline, int) and not 1 <= deadline <= 2**31 - 1:
        yield invalid(f"{path}.activeDeadlineSeconds", deadline, "must be between 1 and 2147483647, inclusive")
    for name in ("hostname", "subdomain"):
        if value := spec.get(name):
            yield from complaints(f"{path}.{name}", value, names.dns1123_label(value))
    yield from _sysctls(path, spec)


def _containers(path: str, spec: Mapping[str, Any]) -> Errors:
    volumes, taken = frozenset(item.get("name") or "" for item in spec.get("volumes") or ()), set[str]()
    containers = spec.get("containers") or ()
    if not containers:
        yield required(f"{path}.containers")
    for index, container in enumerate(containers):
        here = f"{path}.containers[{index}]"
        yield from check_container(here, container, volumes, taken)
        yield from check_hooks(here, container)
    for index, container in enumerate(spec.get("initContainers") or ()):
        here = f"{path}.initContainers[{index}]"
        yield from check_container(here, container, volumes, taken)
        if container.get("restartPolicy") == "Always":
            yield from check_hooks(here, container)
        else:
            for name in ("lifecycle", "livenessProbe", "readinessProbe", "startupProbe"):
                if container.get(name) is not None:
                    yield forbidden(f"{here}.{name}", "may not be set for init containers without restartPolicy=Always")


def _host_ports(path: str, spec: Mapping[str, Any]) -> Errors:
    for index, container in enumerate(spec.get("containers") or ()):
        for number, item in enumerate(container.get("ports") or ()):
            if item.get("hostPort") != item.get("containerPort"):
                where = f"{path}.containers[{index}].ports[{number}].hostPort"
                yield invalid(where, item.get("hostPort"), "must match `containerPort` when `hostNetwork` is true")


def _sysctls(path: str, spec: Mapping[str, Any]) -> Errors:
    context = spec.get("securityContext") or {}
    for name in ("runAsUser", "runAsGroup", "fsGroup"):
        value = context.get(name)
        if isinstance(value, int) and not 0 <= value <= 2**31 - 1:
            yield invalid(f"{path}.securityContext.{name}", value, "must be between 0 and 2147483647, inclusive")
