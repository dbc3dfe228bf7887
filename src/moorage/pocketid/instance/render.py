"""The children of a deployed instance: Secrets, volume, Service, workload, route.

Enters: a declared instance, its keys as they are held. Leaves: wire objects. Nothing is written and nothing is compared with what lives. Pure.
Source: spec/pocketid.md 2.1.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final

from moorage.core.meta import JsonObject
from moorage.core.secret import SecretText

from . import merging, pods
from .children import DATA, ENCRYPTION_KEY, SETTINGS, child, kept_child, name_of, selector
from .environment import host_of
from .types import KEY_SUFFIX, KEY_TOKEN, PORT, PocketIDInstance

GATEWAY: Final = "gateway.networking.k8s.io/v1"


def address(instance: PocketIDInstance) -> str:
    """Where the operator reaches the server; other workloads may as well."""
    scheme = "https" if instance.spec.tls is not None else "http"
    return f"{scheme}://{instance.metadata.name}.{instance.metadata.namespace}.svc:{PORT}"


def _data(values: Mapping[str, str]) -> dict[str, str]:
    return {name: base64.b64encode(values[name].encode()).decode() for name in sorted(values)}


def encryption_key(instance: PocketIDInstance, key: SecretText) -> JsonObject:
    """The Secret that holds the key for as long as there is data. It is immutable: nothing but a person who deletes it takes it away."""
    data = _data({KEY_TOKEN: key.reveal()})
    return {
        **kept_child(instance, "v1", "Secret", ENCRYPTION_KEY),
        "type": "Opaque",
        "immutable": True,
        "data": data,
    }


def api_key(instance: PocketIDInstance, key: SecretText) -> JsonObject:
    """The Secret with the key that the operator works with."""
    return {**child(instance, "v1", "Secret", KEY_SUFFIX), "type": "Opaque", "data": _data({KEY_TOKEN: key.reveal()})}


def settings(instance: PocketIDInstance, values: Mapping[str, str]) -> JsonObject | None:
    """The Secret that the pod takes its secret variables from, those that the resource names and those that stand in it; None without any."""
    if not values:
        return None
    return {**child(instance, "v1", "Secret", SETTINGS), "type": "Opaque", "data": _data(values)}


def volume_claim(instance: PocketIDInstance) -> JsonObject | None:
    """The volume with the data; None when there is none, or when a person brings it."""
    wanted = instance.spec.volume
    if not wanted.enabled or wanted.existing_claim is not None:
        return None
    spec: JsonObject = {
        "accessModes": list(wanted.access_modes),
        "resources": {"requests": {"storage": wanted.size}},
    }
    if wanted.storage_class is not None:
        spec["storageClassName"] = wanted.storage_class
    return {**kept_child(instance, "v1", "PersistentVolumeClaim", DATA), "spec": spec}


def service(instance: PocketIDInstance) -> JsonObject:
    """The Service in front of the pod.

    Raises:
        TemplateFault: `serviceTemplate` does not fit.
    """
    ports = [{"name": pods.PUBLIC, "port": PORT, "targetPort": pods.PUBLIC, "protocol": "TCP"}]
    metrics = instance.spec.metrics
    if metrics is not None and metrics.enabled:
        ports.append({"name": pods.METRICS, "port": metrics.port, "targetPort": pods.METRICS, "protocol": "TCP"})
    base = child(instance, "v1", "Service")
    spec = {"type": "ClusterIP", "selector": selector(instance.metadata.name), "ports": ports}
    made = merging.merged({**base, "spec": spec}, instance.spec.service_template, merging.SERVICE)
    return _as_ours(base, made)


def workload(instance: PocketIDInstance, image: str, keys: pods.Keys) -> JsonObject:
    """The Deployment or StatefulSet: one pod, since two servers on one SQLite file, or of two versions on one database, harm the data.

    Raises:
        TemplateFault: `podTemplate` does not fit.
    """
    kind, chosen = instance.spec.deployment_type, selector(instance.metadata.name)
    spec: JsonObject = {
        "replicas": 1,
        "revisionHistoryLimit": 3,
        "selector": {"matchLabels": chosen},
        "template": pods.template(instance, image, keys),
    }
    if kind == "Deployment":
        spec["strategy"] = {"type": "Recreate"}
    else:
        spec["serviceName"] = instance.metadata.name
    return {**child(instance, "apps/v1", kind), "spec": spec}


def route_name(instance: PocketIDInstance) -> str | None:
    """The name of the HTTPRoute that is wanted; None when none is."""
    wanted = instance.spec.route
    return (wanted.name or name_of(instance)) if wanted is not None and wanted.enabled else None


def route(instance: PocketIDInstance, name: str) -> JsonObject:
    """The HTTPRoute of that name.

    Raises:
        TemplateFault: its template does not fit.
    """
    wanted = instance.spec.route
    assert wanted is not None
    base = child(instance, GATEWAY, "HTTPRoute")
    meta = {**base["metadata"], "name": name, "labels": {**(wanted.labels or {}), **base["metadata"]["labels"]}}
    if wanted.annotations:
        meta["annotations"] = {**meta.get("annotations", {}), **wanted.annotations}
    spec: JsonObject = {"rules": [{"backendRefs": [{"name": name_of(instance), "port": PORT}]}]}
    if wanted.parent_refs:
        spec["parentRefs"] = list(wanted.parent_refs)
    host = host_of(instance.spec.app_url)
    if hostnames := list(wanted.hostnames or ([host] if host else ())):
        spec["hostnames"] = hostnames
    base = {**base, "metadata": meta}
    return _as_ours(base, merging.merged({**base, "spec": spec}, wanted.template, merging.PLAIN))


def _as_ours(base: JsonObject, made: JsonObject) -> JsonObject:
    """With the name, owner and labels by which we find it again, whatever a template says; kind and version, too."""
    ours, found = base["metadata"], made["metadata"]
    meta = {**found, "labels": {**(found.get("labels") or {}), **ours["labels"]}}
    meta |= {name: ours[name] for name in ("name", "namespace", "ownerReferences")}
    return {**made, "apiVersion": base["apiVersion"], "kind": base["kind"], "metadata": meta}
